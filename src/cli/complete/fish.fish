# Completions of PROGRAM for fish: ce completions fish PROGRAM | source
function FUNCTION
    command --query PROGRAM; or return
    set -l typed (commandline -opc)
    set -l word (commandline -ct)
    set -l answer (command PROGRAM COMPLETE fish $typed[2..] "$word" 2>/dev/null)
    test (count $answer) -ge 2; or return
    string join \n -- $answer[3..]
    # The file of an input and the value of an option come after an =.
    set -l lead $answer[2]
    set -l equals (string match --all --regex = -- $lead | count)
    set -l path (string replace --regex "^([^=]*=){$equals}" '' -- "$word")
    set -l found
    switch "$answer[1]"
        case files
            set found (complete -C "'' $path")
        case directories
            set found (__fish_complete_directories "$path" '')
    end
    for file in $found
        echo -- $lead$file
    end
end
complete --command PROGRAM --no-files --arguments '(FUNCTION)'
