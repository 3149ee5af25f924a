//! The text of an expression: whatever stands in it, it is refused at a place in it, or is printed so
//! that it is read as the same again.
#![no_main]

use compeval::expression::{
    Labels, Sharing, Signature, Signatures, Style, Text, WorkflowDirectories, drop_default_labels,
    parse,
};
use libfuzzer_sys::fuzz_target;

const STYLE: Style = Style { sharing: Sharing::Label, labels: Labels::Show };

fn printed(text: &Text) -> String {
    let mut printed = Vec::new();
    text.write(STYLE, &mut printed).unwrap();
    String::from_utf8(printed).unwrap()
}

fuzz_target!(|source: &str| {
    let parsed = match parse(source) {
        Ok(parsed) => parsed,
        Err(mistake) => {
            assert!(mistake.position.line <= 1 + source.matches('\n').count());
            let excerpt = mistake.excerpt.to_string();
            assert!(excerpt.lines().all(|line| !line.contains(char::is_control)));
            return;
        }
    };
    let once = printed(&parsed.text);
    let again = parse(&once).unwrap();
    assert_eq!(printed(&again.text), once);
    let names = |names: &[&str]| Some(names.iter().map(|name| (*name).to_owned()).collect());
    let signature = |inputs: &[&str], outputs: &[&str]| Signature {
        inputs: names(inputs),
        outputs: names(outputs),
    };
    let signatures = Signatures::from([
        ("add".to_owned(), signature(&["a", "b/c"], &["sum"])),
        ("divmod".to_owned(), signature(&["n", "d"], &["quotient", "remainder"])),
    ]);
    match WorkflowDirectories::new(&parsed, &signatures) {
        Ok(layout) => {
            let mut short = parsed.text.expression.clone();
            drop_default_labels(&mut short, &signatures);
            assert_eq!(WorkflowDirectories::of_expression(&short, &signatures), Some(layout));
        }
        Err(mistakes) => assert!(!mistakes.is_empty()),
    }
});
