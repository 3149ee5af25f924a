" Workflows of CompEval, workflow.ce: see doc/formats.md.
if exists('b:current_syntax')
  finish
endif

syntax match compevalPunctuation /[(),=]/
syntax match compevalName /[^[:space:]()|\\;,=\[\]'"#`0-9:][^[:space:]()|\\;,=\[\]'"#`]*/
syntax match compevalNumber /[+-]\?\d[^[:space:]()|\\;,=\[\]'"#`]*/
syntax match compevalDefinition /^\s*[^[:space:]()|\\;,=\[\]'"#`0-9:][^[:space:]()|\\;,=\[\]'"#`]*\ze\s*=/
syntax match compevalCall /\%((\s*\)\@<=[^[:space:]()|\\;:'#][^[:space:]()|\\;]*/
syntax match compevalWord /\<\(INPUT\|FILE\|OWN\|TEXT\|TREE\|MEMBER\|ALL\|SWEEP\|POINTS\)\ze(/
syntax match compevalLabel /:[^[:space:]()|\\;:]\+/
syntax match compevalInputs /Inputs:/
syntax match compevalSlice /\[[^\]]*\]/
syntax match compevalShared /#\d\+[=#]/
syntax match compevalString /'\([^']\|'[^[:space:]()|\\;,]\@=\)*'/
syntax region compevalBars start=/|/ skip=/\\./ end=/|/
syntax match compevalComment /;.*$/
syntax match compevalComment /#\d\@!.*$/

highlight default link compevalComment Comment
highlight default link compevalString String
highlight default link compevalBars String
highlight default link compevalInputs Keyword
highlight default link compevalWord Keyword
highlight default link compevalLabel Label
highlight default link compevalCall Function
highlight default link compevalDefinition Define
highlight default link compevalName Identifier
highlight default link compevalNumber Number
highlight default link compevalSlice Special
highlight default link compevalShared Special
highlight default link compevalPunctuation Delimiter

" A computation in the text: its head, and a block in the language that its first line names.
syntax include @compevalShell syntax/sh.vim
unlet! b:current_syntax
syntax include @compevalPython syntax/python.vim
unlet! b:current_syntax
syntax include @compevalR syntax/r.vim
unlet! b:current_syntax
syntax include @compevalPerl syntax/perl.vim
unlet! b:current_syntax
syntax region compevalComputation keepend transparent contains=compevalHead,compevalPythonBlock,compevalRBlock,compevalPerlBlock,compevalShellBlock
  \ start=/^[^[:space:]()|\\;:'#0-9][^[:space:]()|\\;]*:\s\(\s*=\)\@!\([^#;]*\s\)\?->\(\s\|$\)/ end=/^\ze\S/
syntax match compevalHead contained transparent contains=compevalHeadName,compevalArrow,compevalString,compevalComment,compevalName /^\S.*$/
syntax match compevalHeadName contained /^\S\+:/
syntax match compevalArrow contained /\s\@<=->\(\s\|$\)\@=/
syntax region compevalShellBlock contained keepend contains=@compevalShell start=/^\s\+\S/ end=/^\ze\S/
syntax region compevalPythonBlock contained keepend contains=@compevalPython start=/^\s\+#!.*python/ end=/^\ze\S/
syntax region compevalRBlock contained keepend contains=@compevalR start=/^\s\+#!.*\(Rscript\|littler\)/ end=/^\ze\S/
syntax region compevalPerlBlock contained keepend contains=@compevalPerl start=/^\s\+#!.*perl/ end=/^\ze\S/

highlight default link compevalHeadName Function
highlight default link compevalArrow Operator

let b:current_syntax = 'compeval'
