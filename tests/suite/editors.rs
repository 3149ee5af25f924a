//! The grammars for editors: each character of a workflow is a part of something, and of the right thing.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fancy_regex::Regex;
use serde_json::Value;

use crate::needs::needs;

/// A pattern of a grammar for TextMate: its regular expression, and the scopes of the whole and of its groups.
struct Pattern {
    regex: Regex,
    scope: Option<String>,
    groups: Vec<(usize, String)>,
}

/// The patterns of a rule, with those that it includes, in order.
fn patterns(grammar: &Value, rule: &Value, all: &mut Vec<Pattern>) {
    for rule in rule["patterns"].as_array().into_iter().flatten() {
        if let Some(name) = rule["include"].as_str() {
            patterns(grammar, &grammar["repository"][name.trim_start_matches('#')], all);
            continue;
        }
        let groups = rule["captures"].as_object().into_iter().flatten();
        let text = |value: &Value| value["name"].as_str().unwrap().to_owned();
        all.push(Pattern {
            regex: Regex::new(rule["match"].as_str().unwrap()).unwrap(),
            scope: rule["name"].as_str().map(str::to_owned),
            groups: groups.map(|(group, value)| (group.parse().unwrap(), text(value))).collect(),
        });
    }
}

/// The scope of each piece of a line, but for white space: the earliest match counts, of several the first pattern.
fn scopes(patterns: &[Pattern], line: &str) -> Vec<(String, String)> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    while at < line.len() {
        let matches = patterns.iter().filter_map(|pattern| {
            let found = pattern.regex.captures_from_pos(line, at).unwrap()?;
            Some((found.get(0).unwrap().start(), pattern, found))
        });
        let Some((start, pattern, found)) = matches.min_by_key(|(start, ..)| *start) else { break };
        assert!(
            line[at..start].trim().is_empty(),
            "nothing knows {:?} of {line:?}",
            &line[at..start]
        );
        let whole = found.get(0).unwrap();
        pieces.extend(pattern.scope.iter().map(|scope| (whole.as_str().to_owned(), scope.clone())));
        for (group, scope) in &pattern.groups {
            pieces.push((found.get(*group).unwrap().as_str().to_owned(), scope.clone()));
        }
        assert!(whole.end() > at, "a match has characters");
        at = whole.end();
    }
    assert!(line[at..].trim().is_empty(), "nothing knows {:?} of {line:?}", &line[at..]);
    pieces
}

/// Lines with a part of each, its scope for TextMate and its group for Vim.
const PARTS: [(&str, &str, &str, &str); 16] = [
    ("# it's (a comment)", "# it's (a comment)", "comment.line.compeval", "compevalComment"),
    ("(f 'it's' x) ; why", "'it's'", "string.quoted.single.compeval", "compevalString"),
    ("(f 'it's' x) ; why", "; why", "comment.line.compeval", "compevalComment"),
    ("(a#1 #1=(g) #1#)", "a#1", "entity.name.function.compeval", "compevalCall"),
    ("(a#1 #1=(g) #1#)", "#1=", "variable.other.shared.compeval", "compevalShared"),
    (
        "sum = (add x y)[total, 01]",
        "sum",
        "entity.name.type.definition.compeval",
        "compevalDefinition",
    ),
    ("sum = (add x y)[total, 01]", "[total, 01]", "meta.slice.compeval", "compevalSlice"),
    ("sum = (add x y)[total, 01]", "y", "variable.other.compeval", "compevalName"),
    ("sum = (add x y)[total, 01]", "(", "punctuation.compeval", "compevalPunctuation"),
    ("SWEEP((f n) :over n 1..8 -2)", "SWEEP", "keyword.control.compeval", "compevalWord"),
    ("SWEEP((f n) :over n 1..8 -2)", ":over", "entity.name.label.compeval", "compevalLabel"),
    ("SWEEP((f n) :over n 1..8 -2)", "1..8", "constant.numeric.compeval", "compevalNumber"),
    ("SWEEP((f n) :over n 1..8 -2)", "-2", "constant.numeric.compeval", "compevalNumber"),
    ("Inputs: a, |b c| = '20'", "Inputs:", "keyword.other.inputs.compeval", "compevalInputs"),
    ("Inputs: a, |b c| = '20'", "|b c|", "string.other.bars.compeval", "compevalBars"),
    (
        "Inputs: \u{e4}, |b c| = '\u{20ac}'",
        "'\u{20ac}'",
        "string.quoted.single.compeval",
        "compevalString",
    ),
];

#[test]
fn a_grammar_knows_each_part_of_a_workflow() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let grammar = fs::read_to_string(project.join("editors/textmate/compeval.tmLanguage.json"));
    let grammar: Value = serde_json::from_str(&grammar.unwrap()).unwrap();
    let mut all = Vec::new();
    patterns(&grammar, &grammar["repository"]["all"], &mut all);
    let mut seen = HashSet::new();
    for example in fs::read_dir(project.join("tasks-example")).unwrap() {
        let workflow = fs::read_to_string(example.unwrap().path().join("workflow.ce"));
        // Blocks have rules of their own.
        let mut is_block = false;
        for line in workflow.unwrap_or_default().lines() {
            if line.starts_with(|first: char| !first.is_whitespace()) {
                is_block = line.contains(": ") && line.contains(" -> ");
            }
            if is_block {
                continue;
            }
            seen.extend(scopes(&all, line).into_iter().map(|(_, scope)| scope));
        }
    }
    assert!(seen.len() >= 9, "{seen:?}");
    for (line, part, scope, _) in PARTS {
        let found = scopes(&all, line);
        assert!(found.contains(&(part.to_owned(), scope.to_owned())), "{line}: {found:?}");
    }
}

/// A text with two computations, in Bash and in Python.
const COMPUTATIONS: &str = "a: x -> b # why\n    tr 'x' \"$1\"\n\nc: -> d\n    #!/usr/bin/env python3\n    import os\n\n(a (c))";

#[test]
fn a_grammar_knows_where_a_computation_begins_and_ends() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let grammar = fs::read_to_string(project.join("editors/textmate/compeval.tmLanguage.json"));
    let grammar: Value = serde_json::from_str(&grammar.unwrap()).unwrap();
    assert_eq!(grammar["patterns"][0]["include"], "#computation");
    let regex = |rule: &Value, key: &str| Regex::new(rule[key].as_str().unwrap()).unwrap();
    let rule = &grammar["repository"]["computation"]["patterns"][0];
    let (begin, end) = (regex(rule, "begin"), regex(rule, "end"));
    for line in COMPUTATIONS.lines() {
        let is_head = ["a:", "c:"].iter().any(|name| line.starts_with(name));
        assert_eq!(begin.is_match(line).unwrap(), is_head, "{line}");
        assert_eq!(end.is_match(line).unwrap(), is_head || line.starts_with('('), "{line}");
    }
    for line in ["x: = (f -> y)", "(f x -> y)", "a = b # c: d -> e", "x: y # -> z"] {
        assert!(!begin.is_match(line).unwrap(), "{line}");
    }
    let blocks = &grammar["repository"]["block"]["patterns"];
    let language = |line: &str| {
        let blocks = blocks.as_array().unwrap().iter();
        let mut fitting = blocks.filter(|rule| regex(rule, "begin").is_match(line).unwrap());
        fitting.next().unwrap()["contentName"].as_str().unwrap().rsplit('.').next().unwrap()
    };
    assert_eq!(language("    #!/usr/bin/env python3"), "python");
    assert_eq!(language("\t#!/usr/bin/Rscript"), "r");
    assert_eq!(language("  tr 'x' y"), "shell");
}

/// Writes the name of the group of each character of a text: its line, the group and the character.
const GROUPS: &str = r#"
let groups = []
for line in range(1, line('$'))
  let column = 0
  while column < strlen(getline(line))
    let char = matchstr(getline(line), '.', column)
    call add(groups, line . "\t" . synIDattr(synID(line, column + 1, 1), 'name') . "\t" . char)
    let column += strlen(char)
  endwhile
endfor
call writefile(groups, 'groups')
quitall!
"#;

/// The pieces of a text as Vim highlights it, but for white space: the line of each, counted from one, its text and its group.
fn highlighted(text: &str) -> Vec<(usize, String, String)> {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("workflow.ce"), text).unwrap();
    fs::write(dir.path().join("groups.vim"), GROUPS).unwrap();
    let vim = Path::new(env!("CARGO_MANIFEST_DIR")).join("editors/vim");
    let mut command = Command::new("vim");
    command.args(["-es", "-u", "NONE", "-i", "NONE", "-N", "--cmd", "set encoding=utf-8"]);
    command.arg("--cmd").arg(format!("set runtimepath^={}", vim.display()));
    command.args(["-c", "filetype on", "-c", "doautocmd BufRead", "-c", "syntax on", "-S"]);
    let command = command.args(["groups.vim", "workflow.ce"]).current_dir(dir.path());
    let ran = command.stdin(Stdio::null()).output().unwrap();
    let groups = fs::read_to_string(dir.path().join("groups"));
    let groups = groups.unwrap_or_else(|error| panic!("{error}: {ran:?}"));
    let mut pieces: Vec<(usize, String, String)> = Vec::new();
    for found in groups.lines() {
        let [line, group, char] = found.splitn(3, '\t').collect::<Vec<_>>().try_into().unwrap();
        let line = line.parse().unwrap();
        match pieces.last_mut() {
            Some(last) if (last.0, last.2.as_str()) == (line, group) => last.1 += char,
            _ => pieces.push((line, char.to_owned(), group.to_owned())),
        }
    }
    pieces.retain(|(_, piece, _)| !piece.trim().is_empty());
    pieces
}

#[test]
fn vim_knows_each_part_of_a_workflow() {
    needs(&["vim"]);
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tasks-example");
    let mut seen = HashSet::new();
    for example in fs::read_dir(examples).unwrap() {
        let workflow = fs::read_to_string(example.unwrap().path().join("workflow.ce"));
        for (line, piece, group) in highlighted(&workflow.unwrap_or_default()) {
            assert!(!group.is_empty(), "{line}: nothing knows {piece:?}");
            seen.insert(group);
        }
    }
    assert!(seen.len() >= 9, "{seen:?}");
    let lines: Vec<&str> = PARTS.iter().map(|(line, ..)| *line).collect();
    let found = highlighted(&lines.join("\n"));
    for (number, (line, part, _, group)) in (1..).zip(PARTS) {
        let piece = (number, part.to_owned(), group.to_owned());
        assert!(found.contains(&piece), "{line}: {piece:?} in {found:?}");
    }
    let found = highlighted(COMPUTATIONS);
    for (number, part, group) in [
        (1, "a:", "compevalHeadName"),
        (1, "->", "compevalArrow"),
        (1, "# why", "compevalComment"),
        (2, "$1", "sh"),
        (6, "import", "python"),
        (8, "a", "compevalCall"),
    ] {
        let is_it = |piece: &(usize, String, String)| {
            piece.0 == number
                && piece.1.trim().starts_with(part.trim())
                && piece.2.starts_with(group)
        };
        assert!(found.iter().any(is_it), "{part}: {found:?}");
    }
}
