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

let b:current_syntax = 'compeval'
