#!/bin/sh
# The mean of the numbers.
value() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" input_params.txt; }
case $1 in
inputs) echo '{"PARAM-numbers": "", "RUN-all-params": ""}' ;;
status) [ -e output_params.txt ] && echo finished || echo startable ;;
start) awk '{ sum += $1 } END { printf "{\"mean\": %g}\n", sum / NR }' "$(value PARAM-numbers)" > output_params.txt ;;
*) exit 1 ;;
esac
