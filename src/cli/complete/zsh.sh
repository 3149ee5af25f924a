#compdef PROGRAM
# Completions of PROGRAM for zsh, after compinit: source <(ce completions zsh PROGRAM)
_PROGRAM() {
    local -a answer whole open
    local line value
    answer=("${(@f)$(command PROGRAM COMPLETE zsh "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
    for line in "${(@)answer[3,-1]}"; do
        value=${${${line%%$'\t'*}//\\/\\\\}//:/\\:}
        [[ $line == *$'\t'?* ]] && line=$value:${line#*$'\t'} || line=$value
        [[ $value == *[=/] ]] && open+=("$line") || whole+=("$line")
    done
    local found=1
    _describe -V value whole -- open -S '' && found=0
    # All up to the value of an option, or to the file of an input.
    if [[ -n $answer[2] ]]; then
        compset -P ${#${answer[2]//[^=]}} '*='
    fi
    case $answer[1] in
        files) _files && found=0 ;;
        directories) _files -/ && found=0 ;;
    esac
    return found
}
if [[ $funcstack[1] == _PROGRAM ]]; then
    _PROGRAM "$@"
else
    compdef _PROGRAM PROGRAM
fi
