//! Two tables in one, with a column that tells them apart.

use super::{makes, one_call, refuses};

const NAME: &str = "merge-tables";
const ADA: &str =
    "{\"threads\":1,\"seconds\":0.510}\n{\"threads\":2,\"seconds\":null,\"status\":\"failed\"}\n";

#[test]
fn rows_of_both_tables_are_concatenated_with_the_name_of_their_table() {
    let bob = "{\"threads\":1,\"seconds\":1e-3,\"note\":\"a \\\"b\\\"\\n\"}\n";
    let two = makes(NAME, &[ADA, "ada\n", bob, "bob's \"new\" one\n", "machine\n"]);
    assert_eq!(
        two,
        "{\"machine\":\"ada\",\"threads\":1,\"seconds\":0.510}\n\
         {\"machine\":\"ada\",\"threads\":2,\"seconds\":null,\"status\":\"failed\"}\n\
         {\"machine\":\"bob's \\\"new\\\" one\",\"threads\":1,\"seconds\":1e-3,\"note\":\"a \\\"b\\\"\\n\"}\n"
    );
    let three = makes(NAME, &[&two, "", "{\"threads\":8}\n", "cy", "machine"]);
    assert_eq!(three, format!("{two}{{\"machine\":\"cy\",\"threads\":8}}\n"));
    // An empty table adds nothing.
    assert_eq!(makes(NAME, &["", "a", "", "b", "machine"]), "");
    assert_eq!(makes(NAME, &["", "", "{\"x\":1}\n", "b", "m"]), "{\"m\":\"b\",\"x\":1}\n");
}

#[test]
fn a_column_stays_numbers_or_becomes_texts_as_a_whole() {
    let merged = makes(NAME, &["{\"x\":1.50}", "a", "{\"x\":\"auto\",\"y\":2}", "b", "m"]);
    assert_eq!(merged, "{\"m\":\"a\",\"x\":\"1.50\"}\n{\"m\":\"b\",\"x\":\"auto\",\"y\":2}\n");
    let merged = makes(NAME, &["{\"x\":1.50}", "a", "{\"x\":null}", "b", "m"]);
    assert_eq!(merged, "{\"m\":\"a\",\"x\":1.50}\n{\"m\":\"b\",\"x\":null}\n");
    // Values of a column that has several types stay as they are.
    let mixed = "{\"x\":1.50}\n{\"x\":\"1.10\"}\n{\"x\":true}\n";
    let merged = makes(NAME, &[mixed, "a", "{\"x\":2}\n", "b", "m"]);
    assert_eq!(
        merged,
        "{\"m\":\"a\",\"x\":1.50}\n{\"m\":\"a\",\"x\":\"1.10\"}\n{\"m\":\"a\",\"x\":true}\n{\"m\":\"b\",\"x\":2}\n"
    );
    let merged = makes(NAME, &["{\"x\":1}", "a", "{\"x\":false}", "b", "m"]);
    assert_eq!(merged, "{\"m\":\"a\",\"x\":1}\n{\"m\":\"b\",\"x\":false}\n");
}

#[test]
fn wrong_inputs_are_refused_with_one_line() {
    let mut lab = one_call(NAME);
    for (texts, line) in [
        (
            [ADA, "a", ADA, "b", "threads"],
            "table-a has the column \"threads\" already; an empty name-a keeps it",
        ),
        ([ADA, "a", ADA, "", "machine"], "table-b has no column \"machine\", and name-b is empty"),
        ([ADA, "a", ADA, "b", ""], "column is empty; it names the column to add"),
        ([ADA, "a\nb", ADA, "b", "machine"], "name-a is not one line"),
        (
            [ADA, "a", "threads,seconds\n1,2\n", "b", "machine"],
            "table-b, line 1 is not a JSON object: \"threads,seconds\"",
        ),
    ] {
        lab = refuses(lab, NAME, &texts, line);
    }
}
