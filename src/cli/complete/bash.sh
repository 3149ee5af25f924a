# Completions of PROGRAM for bash 4 and later: source <(ce completions bash PROGRAM)
FUNCTION() {
    local paths='' lead='' kept='' path='' quote='' at
    local -a found=()
    COMPREPLY=()
    {
        IFS= read -r paths
        IFS= read -r lead
        IFS= read -r kept
        IFS= read -r path
        IFS= read -r quote
        mapfile -t COMPREPLY
    } < <(command PROGRAM COMPLETE bash "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null)
    if [[ ! $quote ]]; then
        printf -v path %q "$path"
        [[ $path == "''" ]] && path=
        path=${path/#\\~/\~}
    fi
    case $paths in
        files) mapfile -t found < <(compgen -f -- "$path") ;;
        directories) mapfile -t found < <(compgen -d -- "$path") ;;
    esac
    if ((${#found[@]})); then
        # Bash quotes all of them.
        compopt -o filenames
        found=("${found[@]/#/"$lead"}")
        COMPREPLY+=("${found[@]#"$kept"}")
        return
    fi
    if ((${#COMPREPLY[@]} == 1)) && [[ ${COMPREPLY[0]} == *= ]]; then
        compopt -o nospace
    fi
    if [[ ! $quote ]]; then
        for at in "${!COMPREPLY[@]}"; do
            printf -v "COMPREPLY[at]" %q "${COMPREPLY[at]}"
        done
    fi
}
complete -o bashdefault -F FUNCTION PROGRAM
