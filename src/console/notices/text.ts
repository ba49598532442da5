/** Owns: texts of models, tools and senders on their way into somebody else's program: what an eye cannot see is written out, and what is left out is counted. */

/** Characters that show as nothing, or change how others show; tabs and line ends stay. */
const UNSEEN = /(?![\t\n])[\p{Cc}\p{Cf}\p{Co}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

/** Text with the unseen made visible as `\uXXXX`. */
export function visible(text: string): string {
  return text.replace(UNSEEN, (char) => Array.from({ length: char.length }, (_, index) => `\\u${char.charCodeAt(index).toString(16).padStart(4, "0")}`).join(""));
}

/** A text as far as there is room. `more`: characters that are not shown. */
export interface Clipped { readonly shown: string; readonly more: number }

/** Never half a character. */
export function clip(text: string, max: number): Clipped {
  const whole = visible(text);
  if (whole.length <= max) return { shown: whole, more: 0 };
  const cut = /[\ud800-\udbff]$/.test(whole.slice(0, max)) ? max - 1 : max;
  return { shown: whole.slice(0, cut), more: whole.length - cut };
}

export function moreWords({ more }: Clipped): string { return `${String(more)} more characters: open it in the console`; }
