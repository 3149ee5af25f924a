//! Tests of hints: a table of facts.

use super::*;

fn no_output(name: &str, suffix: Option<&str>, is_alone: bool) -> Ending {
    let (name, suffix) = (name.to_owned(), suffix.map(str::to_owned));
    Ending::NoOutput(MissingOutput { number: 1, name, argument: 4, suffix, is_alone })
}

fn log(log: &str) -> FailureFacts {
    FailureFacts { log: log.to_owned(), printed: log.len() as u64, ..FailureFacts::default() }
}

#[test]
fn the_first_case_that_fits_gives_the_hint() {
    let isolated = true;
    let offline = "Name or service not known";
    let lacking = vec![Rule::Read("/data".into())];
    let left = || vec!["tmp1".to_owned(), "words.csv".to_owned()];
    let link = Some(("numpy".into(), "../numpy".into()));
    let no_module = "ModuleNotFoundError: No module named 'numpy'";
    let cases: [(&str, FailureFacts); 12] = [
        ("(CRLF)", FailureFacts { first_line: "#!/bin/sh\r".into(), ..log(no_module) }),
        ("link to ../numpy", FailureFacts { link, ..log(no_module) }),
        ("numpy is not installed", log(no_module)),
        ("\"read /data\"", FailureFacts { lacking, isolated, ..log(offline) }),
        ("no network", FailureFacts { isolated, ..log(offline) }),
        ("", FailureFacts { isolated, network: true, ..log(offline) }),
        ("", FailureFacts { ending: Ending::Other, ..log(no_module) }),
        (
            ".npy added",
            FailureFacts { ending: no_output("a", Some(".npy"), true), left: left(), ..log("x") },
        ),
        (
            "left words.csv",
            FailureFacts { ending: no_output("a", None, true), left: left(), ..log("x") },
        ),
        ("printed 1 B", FailureFacts { ending: no_output("a", None, true), ..log("x") }),
        ("", FailureFacts { ending: no_output("a", None, false), ..log("x") }),
        ("", FailureFacts { ending: no_output("a", None, true), ..log("Error: x") }),
    ];
    for (words, facts) in cases {
        match first(&facts) {
            Some(hint) => assert!(!words.is_empty() && hint.contains(words), "{hint}"),
            None => assert_eq!(words, "", "{facts:?}"),
        }
    }
}

#[test]
fn a_hint_at_an_output_names_its_argument() {
    let ending = no_output("total", None, true);
    let hint = first(&FailureFacts { ending, ..log("17") }).unwrap();
    assert!(hint.ends_with("the path of output 01 (total), which is argument 4 of exec"), "{hint}");
}

#[test]
fn a_program_for_another_system_lacks_its_loader() {
    let (ending, first_line) = (Ending::NotStarted, "\x7fELF\u{1}".to_owned());
    let hint = first(&FailureFacts { ending, first_line, ..FailureFacts::default() }).unwrap();
    assert!(hint.contains("loader"), "{hint}");
}
