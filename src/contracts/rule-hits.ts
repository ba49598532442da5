/** Owns: how often a rule of policy decided. Where several did together, they are one line, with commas. */

export interface RuleHits { readonly rule: string; readonly hits: number }

export function hitsOf(ruleId: string, all: readonly RuleHits[]): number {
  return all.filter(({ rule }) => rule.split(",").includes(ruleId)).reduce((sum, { hits }) => sum + hits, 0);
}
