//! What must hold for any text of a workflow and for any file with a declaration. The suite checks it, too, without the fuzzer.

#![allow(unreachable_pub, reason = "in the suite, it is part of a program")]

use std::fmt::Write;

use compeval::declaration::Declaration;
use compeval::exit::Explain;
use compeval::expression::{Expression, ExpressionNode, Labels, Sharing, Style, Text, parse};
use compeval::sweep::SWEEP_INPUTS;
use compeval::task::NodeId;

/// A workflow is refused at a place in its text, or is printed so that it is read as the same again.
pub fn check_workflow(source: &str) {
    let ends = 1 + source.matches('\n').count();
    let parsed = match parse(source) {
        Ok(parsed) => parsed,
        Err(mistake) => {
            let line = source.split('\n').nth(mistake.position.line - 1).unwrap();
            assert!((1..=2 + line.chars().count()).contains(&mistake.position.column));
            let excerpt = mistake.excerpt.to_string();
            let (line, pointer) = excerpt.split_once('\n').unwrap();
            assert!(
                !line.contains(char::is_control) && pointer.trim_end_matches('^').ends_with(' ')
            );
            assert!(!mistake.to_string().is_empty() && mistake.fault.hint() != Some(String::new()));
            return;
        }
    };
    let nodes = parsed.text.expression.nodes();
    let positions = parsed.positions();
    assert_eq!(positions.len(), nodes.len());
    for (at, position) in positions.into_iter().enumerate() {
        assert_eq!(position, parsed.position(NodeId::at(at)));
        for file in &nodes[at].files {
            for line in 0..=file.rows.len() {
                let line = parsed.line_of_file(NodeId::at(at), &file.name, line);
                assert!((1..=ends).contains(&line), "line {line} of {}", file.name);
            }
        }
    }
    for mistake in parsed.unreadable() {
        assert!((1..=ends).contains(&mistake.position.line) && mistake.fault.hint().is_some());
    }
    for (number, definition) in parsed.text.definitions.iter().enumerate() {
        assert!(parsed.line_of_definition(number) <= ends);
        assert!(definition.nodes.iter().all(|node| node.index() < nodes.len()));
    }
    let once = printed(&parsed.text);
    let again = parse(&once).unwrap();
    assert_eq!(printed(&again.text), once);
    assert_eq!(again.text.inputs, parsed.text.inputs);
    assert_eq!(again.text.computations.len(), parsed.text.computations.len());
    for (computation, again) in parsed.text.computations.iter().zip(&again.text.computations) {
        let file = computation.file();
        assert_eq!(file.contents, again.file().contents);
        assert_eq!(file.lines.len(), file.contents.lines().count());
        assert!(file.lines.iter().all(|line| (1..=ends).contains(line)));
        Declaration::parse(file.contents.as_bytes()).unwrap();
    }
    assert_eq!(needed(&again.text.expression), needed(&parsed.text.expression));
}

fn printed(text: &Text) -> String {
    let mut printed = Vec::new();
    let style = Style { sharing: Sharing::Label, labels: Labels::Show };
    text.write(style, &mut printed).unwrap();
    String::from_utf8(printed).unwrap()
}

/// The nodes that the root needs, each after those that it reads, as they are printed: without resources, and without the labels
/// of a sweep that say no more than its places.
fn needed(expression: &Expression) -> Vec<ExpressionNode> {
    let mut numbers = vec![None; expression.nodes().len()];
    let mut nodes = Vec::new();
    let mut stack: Vec<_> = expression.root().into_iter().map(|root| (root, 0)).collect();
    while let Some((id, next)) = stack.pop() {
        let node = &expression[id];
        if numbers[id.index()].is_some() {
            continue;
        }
        if let Some(input) = node.inputs.get(next) {
            stack.extend([(id, next + 1), (input.node, 0)]);
            continue;
        }
        let mut node = node.clone();
        if !node.kind.has_files() {
            node.files.clear();
        }
        for (at, input) in node.inputs.iter_mut().enumerate() {
            input.node = NodeId::at(numbers[input.node.index()].unwrap());
            let is_place = input.label.as_deref() == SWEEP_INPUTS.get(at).copied();
            if node.kind.has_files() && is_place {
                input.label = None;
            }
        }
        numbers[id.index()] = Some(nodes.len());
        nodes.push(node);
    }
    nodes
}

/// The files of a directory that a declaration stands for.
const FILES: [&str; 5] = ["inputs", "outputs", "access", "resources", "nondeterministic"];

/// A declaration is refused at a line, or says the same when its lines are written again.
pub fn check_declaration(contents: &[u8]) {
    let ends = 1 + contents.iter().filter(|byte| **byte == b'\n').count();
    let declaration = match Declaration::parse(contents) {
        Ok(declaration) => declaration,
        Err(errors) => {
            assert!(!errors.is_empty() && errors.is_sorted_by_key(|(line, _)| *line));
            for (line, error) in errors {
                assert!(line <= ends && !error.to_string().contains(char::is_control), "{error:?}");
                assert!(error.hint().is_some_and(|hint| !hint.contains(char::is_control)));
            }
            return;
        }
    };
    let mut again = String::new();
    for file in FILES {
        let mut before = 1;
        for (line, text) in declaration.file(file).unwrap_or_default() {
            assert!((before..=ends).contains(&line) && text.trim() == text, "{text:?}");
            before = line;
            let is_name = matches!(file, "inputs" | "outputs");
            assert!(!(is_name && text.is_empty()));
            let quote = if is_name && !text.contains('\'') { "'" } else { "" };
            writeln!(again, "#CE {file} {quote}{text}{quote}").unwrap();
        }
    }
    // Without names, one of both is declared and empty.
    again += "#CE inputs\n#CE outputs\n";
    let again = Declaration::parse(again.as_bytes());
    let again = again.unwrap_or_else(|errors| panic!("{errors:?} in what was accepted"));
    let texts = |declaration: &Declaration, file| {
        let lines = declaration.file(file)?.into_iter();
        Some(lines.map(|(_, text)| text).collect::<Vec<_>>())
    };
    for file in FILES {
        assert_eq!(texts(&again, file), texts(&declaration, file), "{file}");
    }
}
