//! The reasons why calls would run, for every kind of change, with Git's own answers as oracle.

mod change;
mod points;
mod reasons;
mod tables;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::lab::{Lab, Library};
use crate::program::Ran;
use crate::repository::{self, LAB};

const TASK: &str = "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('x'))[0]";
const LIBRARIES: [Library; 3] = [Library::Plain, Library::Submodule, Library::Submodules];

/// A laboratory with a task that was evaluated.
fn evaluated(library: Library) -> Lab {
    let lab = Lab::task(TASK).file("computations/mul/data/table", "1\n2\n3\n").commit_with(library);
    lab.ce_run(&["--no-sync"]).exit(0).called(vec!["add", "mul"]);
    record(&lab, "c_", &[("isolation", "none")]);
    lab
}

/// Makes records of executions say something else of these fields.
fn record(lab: &Lab, of: &str, fields: &[(&str, &str)]) {
    for name in lab.storage().iter().filter(|name| name.starts_with(of)) {
        let path = lab.path("storage").join(name);
        let Ok(mut record) = serde_json::from_slice::<Value>(&fs::read(&path).unwrap()) else {
            continue;
        };
        if let Some(execution) = record.pointer_mut("/origin/executed") {
            fields.iter().for_each(|(field, value)| execution[*field] = json!(value));
            fs::write(&path, record.to_string()).unwrap();
        }
    }
}

/// Commits the changes of a computation, and the place of its repository in the task.
fn commit(lab: &Lab, library: Library, name: &str, message: &str) {
    let task = lab.path("task");
    match library {
        Library::Plain => {}
        Library::Submodule => drop(repository::commit(&task.join("computations"), LAB, message)),
        Library::Submodules => {
            repository::commit(&task.join("computations").join(name), LAB, message);
        }
    }
    repository::commit(&task, LAB, message);
}

fn command(lab: &Lab, options: &[&str]) -> Command {
    let mut command = lab.command("ce");
    command.arg("explain").args(options).arg("../storage");
    command.args(lab.inputs.iter().map(|name| format!("../data/{name}")));
    command
}

fn explain<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.unchanged(|| lab.finish(&mut command(lab, options)))
}

/// Returns the explanation in JSON: causes, calls, and the sum.
fn told(lab: &Lab, options: &[&str], code: i32) -> (Vec<Value>, Vec<Value>, Value) {
    let ran = explain(lab, &[options, &["--json"]].concat()).exit(code);
    let mut causes: Vec<Value> =
        ran.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let end = causes.pop().unwrap();
    let calls = causes.split_off(causes.partition_point(|line| line["event"] == "cause"));
    assert!(calls.iter().all(|line| line["event"] == "call"));
    assert_eq!((&end["event"], &end["calls"]), (&json!("end"), &json!(calls.len())));
    (causes, calls, end)
}

/// For each call its computation, and its reasons with the words of the causes behind each.
fn whys(lab: &Lab, options: &[&str]) -> Vec<String> {
    let (causes, calls, _) = told(lab, options, 3);
    let word = |value: &Value| value.as_str().unwrap().to_owned();
    let cause = |number: &Value| {
        let cause = &causes[number.as_u64().unwrap() as usize - 1];
        let of = ["computation", "input", "literal"].iter().find_map(|key| cause[key].as_str());
        format!("{}:{}", word(&cause["cause"]), of.unwrap())
    };
    let why = |why: &Value| {
        let causes: Vec<String> = why["causes"].as_array().unwrap().iter().map(cause).collect();
        let input = why["input"].as_u64().map_or_else(String::new, |at| format!("{at}"));
        format!("{}{input} <- {}", word(&why["why"]), causes.join(" "))
    };
    let call = |call: &Value| {
        let whys: Vec<String> = call["why"].as_array().unwrap().iter().map(why).collect();
        format!("{}: {}", word(&call["computation"]), whys.join(", "))
    };
    calls.iter().map(call).collect()
}

/// Runs git in the task; returns its output.
fn git(lab: &Lab, dir: &str, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    git.env_clear().envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.env("HOME", lab.path("home")).env("GIT_CONFIG_NOSYSTEM", "1");
    for who in ["AUTHOR", "COMMITTER"] {
        git.env(format!("GIT_{who}_NAME"), "Lab")
            .env(format!("GIT_{who}_EMAIL"), "lab@example.org");
        git.env(format!("GIT_{who}_DATE"), "1000000000 +0000");
    }
    let output = git.current_dir(lab.path("task").join(dir)).args(arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn append(path: &Path, text: &str) {
    fs::write(path, fs::read_to_string(path).unwrap() + text).unwrap();
}
