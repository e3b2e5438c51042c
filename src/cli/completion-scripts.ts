// Completion scripts: shell functions that call `reprise complete` for the candidates.

export const SHELLS = ["bash", "zsh", "fish"] as const;
export type Shell = (typeof SHELLS)[number];

// Splits the line at spaces only: bash also splits at colons, which ids and store URLs can contain.
const BASH = `# reprise completion for bash. Add to ~/.bashrc:  source <(reprise completion bash)
_reprise() {
  local line="\${COMP_LINE:0:COMP_POINT}" words current kept found
  read -ra words <<< "$line"
  [[ "$line" == *[[:space:]] ]] && words+=("")
  current="\${words[-1]}"
  # bash replaces only the part of the word after the last colon.
  kept="\${current%"\${current##*:}"}"
  COMPREPLY=()
  while IFS=$'\\t' read -r found _; do
    [[ -n "$found" ]] && COMPREPLY+=("\${found#"$kept"}")
  done < <("\${words[0]}" complete -- "\${words[@]:1}" 2>/dev/null)
}
complete -o default -F _reprise reprise
`;

const ZSH = `#compdef reprise
# reprise completion for zsh. Add to ~/.zshrc:  source <(reprise completion zsh)
_reprise() {
  local -a found
  local line
  for line in "\${(@f)$("\${words[1]}" complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    [[ -n "$line" ]] && found+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  if (( \${#found} )); then _describe 'reprise' found; else _files; fi
}
if [[ "\${funcstack[1]}" == _reprise ]]; then _reprise "$@"; else compdef _reprise reprise; fi
`;

const FISH = `# reprise completion for fish. Save as ~/.config/fish/completions/reprise.fish
function __reprise_complete
    set -l words (commandline -opc) (commandline -ct)
    $words[1] complete -- $words[2..-1] 2>/dev/null
end
complete -c reprise -a '(__reprise_complete)'
`;

export const COMPLETION_SCRIPTS: Readonly<Record<Shell, string>> = { bash: BASH, zsh: ZSH, fish: FISH };
