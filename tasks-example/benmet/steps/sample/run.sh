#!/bin/sh
# Lets a queue execute the program. The queue executes the file job, and makes the file result.
value() { sed "s/.*\"$1\":\"\([^\"]*\)\".*/\1/" input_params.txt; }
case $1 in
inputs) echo '{"PARAM-program": "", "PARAM-amount": "4", "RUN-id": ""}' ;;
status)
    if [ -e output_params.txt ]; then echo finished
    elif [ -e result ]; then echo continuable
    elif [ -e job ]; then echo pending
    else echo startable; fi
    ;;
start)
    cp "$(value PARAM-program)" program
    echo "./program $(value PARAM-amount) $(value RUN-id)" > job.new && mv job.new job
    ;;
continue) echo "{\"PARAM-numbers\": \"$(pwd)/result\"}" > output_params.txt ;;
cancel) rm -f job && echo 'the job is taken out of the queue' ;;
esac
