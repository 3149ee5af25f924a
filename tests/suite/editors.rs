//! The grammars for editors: each character of a workflow is a part of something, and of the right thing.

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use fancy_regex::Regex;
use serde_json::Value;

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
        for line in workflow.unwrap_or_default().lines() {
            seen.extend(scopes(&all, line).into_iter().map(|(_, scope)| scope));
        }
    }
    assert!(seen.len() >= 9, "{seen:?}");
    for (line, part, scope) in [
        ("# it's (a comment)", "# it's (a comment)", "comment.line.compeval"),
        ("(f 'it's' x) ; why", "'it's'", "string.quoted.single.compeval"),
        ("(f 'it's' x) ; why", "; why", "comment.line.compeval"),
        ("(a#1 #1=(g) #1#)", "a#1", "entity.name.function.compeval"),
        ("(a#1 #1=(g) #1#)", "#1=", "variable.other.shared.compeval"),
        ("sum = (add x y)[total, 01]", "sum", "entity.name.type.definition.compeval"),
        ("sum = (add x y)[total, 01]", "[total, 01]", "meta.slice.compeval"),
        ("sum = (add x y)[total, 01]", "y", "variable.other.compeval"),
        ("SWEEP((f n) :over n 1..8 -2)", "SWEEP", "keyword.control.compeval"),
        ("SWEEP((f n) :over n 1..8 -2)", ":over", "entity.name.label.compeval"),
        ("SWEEP((f n) :over n 1..8 -2)", "1..8", "constant.numeric.compeval"),
        ("SWEEP((f n) :over n 1..8 -2)", "-2", "constant.numeric.compeval"),
        ("Inputs: a, |b c| = '20'", "Inputs:", "keyword.other.inputs.compeval"),
        ("Inputs: a, |b c| = '20'", "|b c|", "string.other.bars.compeval"),
    ] {
        let found = scopes(&all, line);
        assert!(found.contains(&(part.to_owned(), scope.to_owned())), "{line}: {found:?}");
    }
}
