//! Isolated computations: the files that they see, the actions that they can take, and their end.
//!
//! If nothing can be isolated, there is nothing to be seen; that is reported.

mod access;
mod ends;
mod grants;
mod host;
mod leftovers;
mod owners;
mod placed;
mod processes;
mod reach;
pub(crate) mod roots;
mod sealing;
mod shortage;
mod sight;

use std::process::Command;
use std::sync::OnceLock;

use serde_json::Value;

pub(crate) use self::owners::is_root;
use crate::lab::Lab;
use crate::needs;

/// A task of one isolated computation with one input and one output; `LAB` stands for the laboratory.
/// `None` where nothing can be isolated.
fn lab(access: &str, script: &str) -> Option<Lab> {
    if !is_possible() {
        return None;
    }
    Some(task(access, script))
}

fn task(access: &str, script: &str) -> Lab {
    uncommitted(access, script).commit()
}

fn uncommitted(access: &str, script: &str) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(look INPUT('x'))[0]").isolated();
    let place = lab.path("").display().to_string();
    let here = |text: &str| text.replace("LAB", place.trim_end_matches('/'));
    let lab = lab.computation("look", "a", "b", &here(script));
    let access = here(access);
    if access.is_empty() { lab } else { lab.file("computations/look/access", access) }
}

/// Returns the execution of the only call, as its record says.
fn executed(lab: &Lab) -> Value {
    let names = lab.storage();
    let record = names.iter().find(|name| name.starts_with("c_look/") && name.contains("/record/"));
    let record: Value = serde_json::from_str(&lab.stored(record.unwrap())).unwrap();
    record["origin"]["executed"].clone()
}

/// Whether calls can be isolated. Where they cannot, the test is skipped, or that part of it.
pub(crate) fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    let is_possible = *POSSIBLE.get_or_init(|| {
        let lab = task("", r#"cp "$1" "$2""#);
        lab.ce_run(&[]).exit(0);
        executed(&lab)["isolation"] == "namespaces"
    });
    if !is_possible {
        needs::lacks("user namespaces");
    }
    is_possible
}

/// An evaluation on a host that cannot isolate: no namespace can be made.
fn without_namespaces(lab: &Lab) -> Command {
    none_for(lab, &lab.evaluation(&[]))
}

/// A command on a host that cannot isolate.
fn none_for(lab: &Lab, run: &Command) -> Command {
    let mut command = Command::new("unshare");
    let refuse = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\"";
    command.args(["-r", "sh", "-c", refuse, "sh"]).arg(run.get_program()).args(run.get_args());
    command.current_dir(lab.path("task")).env("HOME", lab.path("home"));
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    command
}
