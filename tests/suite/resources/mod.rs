//! Requests of resources by calls: how they are written, and what becomes of them.

mod amounts;
mod exclusive;
mod hosts;
mod limits;
mod points;

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use crate::lab::Lab;

/// The end of the script of a computation that notes when it begins and when it ends, and makes its output between.
const NOTED: &str = r#"echo "begin NAME" >>"${LAB_NOTES:-/dev/null}"; WORK; cat "$1" >"$2"; echo "end NAME" >>"${LAB_NOTES:-/dev/null}""#;

impl Lab {
    /// Adds a computation of one input that notes when it begins and when it ends.
    fn noting(self, name: &str, work: &str) -> Self {
        let script = NOTED.replace("NAME", name).replace("WORK", work);
        self.computation(name, "x", "y", &script)
    }

    /// An evaluation that notes its calls.
    fn noted(&self, options: &[&str]) -> Command {
        let mut command = self.evaluation(options);
        command.env("LAB_NOTES", self.path("notes"));
        command
    }

    /// Returns the notes since the last time it was asked, in order.
    fn notes(&self) -> Vec<String> {
        let notes = fs::read_to_string(self.path("notes")).unwrap_or_default();
        drop(fs::remove_file(self.path("notes")));
        notes.lines().map(str::to_owned).collect()
    }
}

/// For each call that was noted, the calls that were in progress with it at any time.
fn beside(notes: &[String]) -> BTreeMap<String, Vec<String>> {
    let mut beside = BTreeMap::<String, Vec<String>>::new();
    let mut running = Vec::<String>::new();
    for note in notes {
        let (word, name) = note.split_once(' ').unwrap();
        if word == "end" {
            running.retain(|it| it != name);
            continue;
        }
        beside.entry(name.to_owned()).or_default().extend(running.iter().cloned());
        for other in &running {
            beside.get_mut(other).unwrap().push(name.to_owned());
        }
        running.push(name.to_owned());
    }
    assert_eq!(running, Vec::<String>::new(), "every call has ended");
    beside
}
