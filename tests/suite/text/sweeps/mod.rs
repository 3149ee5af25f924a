//! Sweeps as text: the printed form is read back, and means the same.

mod made_up;
mod wrong;

use compeval::expression::{Labels, Sharing, Style, Text};
use compeval::load;

use self::made_up::generated;
use super::one_text::{loaded, task};
use super::{tree, write};
use crate::generator;
use crate::lab::Lab;
use crate::lisp::{self, shown};

const ALL: Style = Style { sharing: Sharing::Label, labels: Labels::Show };

#[test]
fn sweeps_are_written_and_read_back_byte_for_byte() {
    let lab = generator::lab();
    let task = lab.path("task");
    for seed in generator::seeds(20) {
        let text = generated(&lab, seed);
        assert_eq!(shown(&lisp::text(&text), ALL), text, "seed {seed}: parsed and printed");
        write(&task, &text);
        let (read, files) = (load::written(&task).unwrap(), tree(&task.join("workflow")));
        assert_eq!(shown(&read.text, ALL), text, "seed {seed}: written and read");
        assert_eq!(read.unread, Vec::<std::path::PathBuf>::new());
        write(&task, &shown(&read.text, ALL));
        assert_eq!(tree(&task.join("workflow")), files, "seed {seed}: the same directories");
    }
}

#[test]
fn a_task_with_sweeps_survives_the_conversion_to_text_and_back() {
    let lab = generator::lab();
    for seed in generator::seeds(15) {
        write(&lab.path("task"), &generated(&lab, seed));
        let first = loaded(&lab);
        for sharing in [Sharing::Label, Sharing::Repeat] {
            let text = shown(&Text::from(&first), Style { sharing, ..ALL });
            write(&lab.path("task"), &text);
            let second = loaded(&lab);
            assert_eq!(second.workflow, first.workflow, "seed {seed}\n{text}");
            assert_eq!(second.sweeps, first.sweeps, "seed {seed}\n{text}");
            assert_eq!(shown(&Text::from(&second), Style { sharing, ..ALL }), text);
        }
    }
}

/// A sweep in all its parts.
const SWEEP: &str = "\
Inputs: 'x'
SWEEP('scaling'
      :factors/00-threads '1' '2' '4'
      :factors/01-machine.tsv ('host' 'cores')
                              ('red' '8')
                              ('a b' '')
      :exclude.tsv ('threads' 'host')
                   ('4' 'a b')
      :replicates '3'
      :columns '00 product' '00 **'
      :allow-failed
      :body (add (add (mul INPUT('threads')
                           INPUT('host')
                       )[00]
                      INPUT('replicate')
                  )[00]
                 INPUT('x')
             )[00]
      )[00, 01]
";

#[test]
fn ce_sym_prints_a_sweep_as_an_equal_text() {
    let mut lab = Lab::task(SWEEP).commit();
    assert_eq!(lab.run("ce-sym", &[]).exit(0).stdout, SWEEP);
    lab.run("ce", &["check"]).exit(0);
    for options in [&["--labels"][..], &["--labels", "--share"], &[], &["--share"]] {
        let text = lab.run("ce-sym", options).exit(0).stdout;
        lab = lab.one_text(&text);
        lab.to_directories().exit(0).shows("wrote workflow (8 directories)");
        assert_eq!(lab.run("ce-sym", options).exit(0).stdout, text);
    }
}

#[test]
fn a_text_needs_no_labels_no_order_and_no_commit() {
    let lab = task(
        "SWEEP((mul INPUT('a') (add INPUT('b') INPUT('replicate'))) ; what is evaluated\n\
         :replicates '2'\n:factors/01-b '1'\n:exclude.tsv ('a') ('3') :factors/00-a '3' '5')",
    );
    lab.to_directories().exit(0);
    let files = tree(&lab.path("task/workflow"));
    let names: Vec<&str> = files.keys().map(String::as_str).collect();
    assert!(!names.contains(&"value") && names.contains(&"inputs/00-body/value"), "{names:?}");
    assert_eq!(files["factors/00-a"], b"3\n5\n");
    lab.commit().run("ce", &["check"]).exit(0);
}

#[test]
fn files_keep_their_meaning_and_get_one_spelling() {
    let lab = Lab::task(SWEEP)
        .file("workflow/factors/00-threads", "\u{feff}1 \r\n 2\r\n4\r\n\r\n")
        .file("workflow/factors/01-machine.tsv", "\u{feff}host\tcores\r\nred\t8\r\na b\t")
        .file("workflow/columns", "00\t product\n00 **")
        .file("workflow/replicates", " 03");
    let written = |lab: &Lab| shown(&load::written(&lab.path("task")).unwrap().text, ALL);
    assert_eq!(written(&lab), written(&Lab::task(SWEEP)));
    let lab = lab.commit();
    assert_eq!(lab.run("ce-sym", &[]).exit(0).stdout, SWEEP);
    let text = lab.run("ce-sym", &["--labels"]).exit(0).stdout;
    let lab = lab.one_text(&text);
    lab.to_directories().exit(0);
    let files = tree(&lab.path("task/workflow"));
    assert_eq!(files["factors/00-threads"], b"1\n2\n4\n");
    assert_eq!(files["factors/01-machine.tsv"], b"host\tcores\nred\t8\na b\t\n");
    assert_eq!(files["columns"], b"00 product\n00 **\n");
    assert_eq!(files["replicates"], b"3\n");
    assert_eq!(files["allow-failed"], b"");
}

#[test]
fn convert_refuses_files_of_a_sweep_that_the_text_has_no_place_for() {
    for (file, contents) in [
        ("factors/.00-threads.swp", "x"),
        ("replicates", "3\n# enough\n"),
        ("resources-of-mine", "x"),
    ] {
        let lab = Lab::task(SWEEP).file(&format!("workflow/{file}"), contents).commit();
        let ran = lab.run("ce", &["convert", "--to", "text"]).exit(2);
        ran.says(&format!("the text form has no place for workflow/{file}"));
    }
}

#[test]
fn ten_thousand_levels_are_readable_and_linear() {
    const COUNT: usize = 10_000;
    let levels: String = (0..COUNT).map(|at| format!(" 'level {at}'")).collect();
    let rows: String = (0..COUNT).map(|at| format!(" ('{at}' 'b')")).collect();
    let text = format!(
        "Inputs:\nSWEEP(:factors/00-a{levels}\n:factors/01-b.tsv ('b' 'c'){rows}\n\
         :body (f INPUT('a') INPUT('b') INPUT('c'))[00])"
    );
    let printed = shown(&lisp::text(&text), ALL);
    assert!(printed.lines().all(|line| line.chars().count() <= 100));
    assert!(printed.lines().count() < COUNT + COUNT / 5);
    assert_eq!(shown(&lisp::text(&printed), ALL), printed);
    assert!(printed.contains("'level 0' 'level 1'"));
}
