//! The literals that a repository reaches are those that its tasks read, however they are written.

use std::collections::BTreeSet;
use std::fs;

use compeval::git::ReachableSet;
use compeval::load;
use compeval::load::Uncommitted;
use compeval::task::Node;

use crate::lab::{Lab, Library};
use crate::repository::{self, LAB};

const NAME: &str = "tinputs/ad/48103e4fc7";

/// A task with one literal input: the files `kind` and `value` of its node.
fn task(kind: &str, value: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add INPUT('x') INPUT('x'))[0]");
    lab.file("workflow/inputs/00-x/kind", kind).file("workflow/inputs/00-x/value", value)
}

/// The literals that the task reads as it is checked out.
fn read(lab: &Lab) -> BTreeSet<String> {
    let loaded = load::task(&lab.path("task"), Uncommitted::Refuse, None).unwrap();
    let literals = loaded.task.workflow.nodes().filter_map(|(_, node)| match node {
        Node::Literal(name) => Some(name.to_string()),
        _ => None,
    });
    literals.collect()
}

fn reached(lab: &Lab) -> BTreeSet<String> {
    let mut reach = ReachableSet::default();
    reach.add(&lab.path("task")).unwrap();
    reach.literals().map(str::to_owned).collect()
}

#[test]
fn every_spelling_of_a_literal_that_the_loader_accepts_is_reached() {
    let kinds = ["literal", "literal\nand a note\n", "\u{feff}literal\r\n", " literal \n\n"];
    let values = [
        NAME.to_owned(),
        format!("{NAME}\nmade by hand\n"),
        format!("\u{feff}{NAME}\r\n"),
        format!("\t{NAME} \n"),
        NAME.replace('/', "//"),
        NAME.replace('/', "/./"),
    ];
    for kind in kinds {
        for value in &values {
            let lab = task(kind, value).commit();
            assert_eq!(read(&lab), BTreeSet::from([NAME.to_owned()]), "{kind:?} {value:?}");
            assert_eq!(reached(&lab), read(&lab), "{kind:?} {value:?}");
        }
    }
}

#[test]
fn a_value_that_the_loader_refuses_as_literal_is_not_reached() {
    for (kind, value) in [("\nliteral\n", NAME), ("literals", NAME), ("literal", "../away")] {
        let lab = task(kind, value).commit();
        assert!(load::task(&lab.path("task"), Uncommitted::Refuse, None).is_err());
        assert_eq!(reached(&lab), BTreeSet::new(), "{kind:?} {value:?}");
    }
}

#[test]
fn links_are_followed_at_each_commit() {
    for library in [Library::Plain, Library::Submodule] {
        let lab = task("", "").without("workflow/inputs/00-x/kind");
        let lab = lab.without("workflow/inputs/00-x/value").without("workflow/inputs/01-x");
        let lab = lab
            .link("workflow/inputs/00-x/kind", "../../../names/kind")
            .link("workflow/inputs/00-x/value", "../../../computations/../names/value")
            .link("workflow/inputs/01-x", "../../computations/shared")
            .file("computations/shared/kind", "literal\n")
            .link("computations/shared/value", "../../names/other")
            .link("names/kind", "word")
            .file("names/word", "literal\n")
            .file("names/value", NAME)
            .file("names/other", "other\n")
            .commit_with(library);
        let mut expected = read(&lab);
        assert_eq!(expected, BTreeSet::from([NAME.to_owned(), "other".to_owned()]));
        // The targets of the links change, and the links do not.
        for name in ["value", "other"] {
            fs::write(lab.path("task/names").join(name), format!("new {name}\n")).unwrap();
            repository::commit(&lab.path("task"), LAB, "more\n");
            expected.append(&mut read(&lab));
        }
        assert_eq!(expected.len(), 4);
        assert_eq!(reached(&lab), expected);
    }
}
