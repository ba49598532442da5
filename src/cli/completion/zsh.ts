/** Owns: the script for zsh: the tables of bash, a walk of its own, and what each word means beside it. */
import { shell, shellTables } from "./tables.js";
import type { Place } from "./tree.js";

export function zshScript(places: readonly Place[]): string {
  return `#compdef docket
# zsh completion of docket, written by \`docket completion zsh\`.
# Once: docket completion zsh > a folder of $fpath/_docket; for this shell: source <(docket completion zsh)
${shellTables(places)}
${WALK}`;
}

const WALK = shell`# Lines of name<TAB>about, as _describe wants them.
_docket_describe() {
  local line
  local -a offers
  for line in "\${(@f)2}"; do
    [[ -z "$line" ]] || offers+=("\${\${line%%$'\t'*}//:/\\:}:\${line#*$'\t'}")
  done
  _describe -t "$1" "$1" offers
}
_docket() {
  emulate -L zsh
  local at="" option="" found="" cur="\${words[CURRENT]}" i
  local -i position=0
  for ((i = 2; i < CURRENT; i++)); do _docket_step "\${words[i]}"; done
  if [[ -n "$option" ]]; then _docket_value "$at" "$option"
  elif [[ "$cur" == --*=* ]]; then option="\${cur%%=*}"; compset -P '*='; _docket_value "$at" "$option"
  elif [[ "$cur" == -* ]]; then _docket_flags "$at" && _docket_describe options "$found"; return
  elif _docket_commands "$at"; then ((position > 0)) || _docket_describe commands "$found"; return
  else _docket_argument "$at $position"; fi
  case "$found" in
    words:*) compadd -- \${=found#words:} ;;
    commas:*) compset -P '*,'; compadd -q -S , -- \${=found#commas:} ;;
    live:*) _docket_describe "\${found#live:}" "$("\${(Q)words[1]}" __complete "\${found#live:}" 2>/dev/null)" ;;
    files) _files ;;
    folders) _files -/ ;;
  esac
}
# Read as a file of $fpath it is the body of the function _docket; sourced, it makes itself known.
if [[ "$funcstack[1]" == _docket ]]; then _docket "$@"; else compdef _docket docket; fi
`;
