autocmd BufNewFile,BufRead workflow.ce setfiletype compeval
