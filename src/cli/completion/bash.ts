/**
 * Owns: the script for bash, 3.2 and later, without any package of the distribution. Nothing that was typed and no name that the console gave is ever expanded
 * by the shell: `compgen -W` would, and is not used.
 */
import { shell, shellTables } from "./tables.js";
import type { Place } from "./tree.js";

export function bashScript(places: readonly Place[]): string {
  return `# bash completion of docket, written by \`docket completion bash\`.
# For this shell: source <(docket completion bash)
${shellTables(places)}
${WALK}`;
}

const WALK = shell`_docket() {
  local IFS=$' \t\n' at="" option="" found="" word glued=0 position=0 i last cur head before="" prefix="" raw="\${COMP_WORDS[COMP_CWORD]}"
  local -a typed
  COMPREPLY=() typed=()
  # Readline breaks words at = and :, here they are put together again.
  for ((i = 1; i <= COMP_CWORD; i++)); do
    word="\${COMP_WORDS[i]}"
    if [[ \${#typed[@]} -gt 0 && ( $glued == 1 || "$word" == [=:] ) ]]; then typed[\${#typed[@]}-1]+="$word"; else typed+=("$word"); fi
    if [[ "$word" == [=:] ]]; then glued=1; else glued=0; fi
  done
  last=$((\${#typed[@]} - 1))
  cur="\${typed[last]}"
  if [[ "$raw" == [=:] ]]; then head="$cur"; else head="\${cur%"$raw"}"; fi
  for ((i = 0; i < last; i++)); do _docket_step "\${typed[i]}"; done
  if [[ -n "$option" ]]; then _docket_value "$at" "$option"
  elif [[ "$cur" == --*=* ]]; then prefix="\${cur%%=*}="; cur="\${cur#*=}"; _docket_value "$at" "\${prefix%=}"
  elif [[ "$cur" == -* ]]; then _docket_flags "$at"; found="lines:$found"
  elif _docket_commands "$at"; then if ((position == 0)); then found="lines:$found"; else found=""; fi
  else _docket_argument "$at $position"; fi
  case "$found" in
    lines:*) while IFS=$'\t' read -r word _; do _docket_offer "$word"; done <<< "\${found#lines:}" ;;
    words:*) for word in \${found#words:}; do _docket_offer "$word"; done ;;
    commas:*) if [[ "$cur" == *,* ]]; then before="\${cur%,*},"; fi; for word in \${found#commas:}; do _docket_offer "$before$word"; done; compopt -o nospace 2>/dev/null ;;
    live:*) while IFS=$'\t' read -r word _; do word="$(printf %q "$word")"; _docket_offer "$word"; done < <("\${COMP_WORDS[0]}" __complete "\${found#live:}" 2>/dev/null) ;;
    files) compopt -o filenames 2>/dev/null; while IFS= read -r word; do _docket_offer "$word"; done < <(compgen -f -- "$cur") ;;
    folders) compopt -o filenames 2>/dev/null; while IFS= read -r word; do _docket_offer "$word"; done < <(compgen -d -- "$cur") ;;
  esac
  return 0
}
# Takes a word among the answers, where it goes on with what was typed; of that word readline has the part after the last break only.
_docket_offer() {
  if [[ "$1" == "$cur"* && -n "$1" ]]; then word="$prefix$1"; COMPREPLY+=("\${word#"$head"}"); fi
}
complete -F _docket docket
`;
