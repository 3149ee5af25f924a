#!/bin/sh
# Builds the program of the repository numbers.
value() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" input_params.txt; }
case $1 in
inputs) echo '{"REPO-PATH-numbers": "", "REPO-GITCOMMITHASH-numbers": "", "PARAM-factor": "3"}' ;;
status) [ -e output_params.txt ] && echo finished || echo startable ;;
start)
    mkdir -p built
    sed "s/FACTOR/$(value PARAM-factor)/" "$(value REPO-PATH-numbers)numbers.sh" > built/numbers
    chmod +x built/numbers
    echo "{\"PARAM-program\": \"$(pwd)/built/numbers\"}" > output_params.txt
    ;;
*) exit 1 ;;
esac
