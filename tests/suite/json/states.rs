//! Each command prints what its definition says, in several states; and its definition allows nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Deserializer, Value, json};

use super::{Asked, DEFINITIONS, check_event, faults};
use crate::lab::Lab;
use crate::program::{Ran, Running};
use crate::records::{places, with};
use crate::shared;
use crate::suspension::spooling;

const SUM: &str = "Inputs: 'x', 'y'
    (add (mul INPUT('x') INPUT('y'))[0] (divmod INPUT('x') INPUT('y'))[1])[0]";

/// The storage, and the inputs of the task.
const GIVEN: [&str; 3] = ["../storage", "../data/x", "../data/y"];

/// The output of commands, by its definition.
#[derive(Default)]
struct PrintedJson(BTreeMap<&'static str, Vec<Value>>);

impl PrintedJson {
    /// Executes `ce`, compares its output with the schema, and keeps it.
    #[track_caller]
    fn ce(&mut self, lab: &Lab, exit: i32, parts: [&[&str]; 2]) {
        let mut command = lab.command("ce");
        command.args(parts.concat());
        let Asked { definition, .. } = Asked::from_command(&command).unwrap();
        let ran = lab.finish(&mut command).exit(exit);
        let values = Deserializer::from_str(&ran.stdout).into_iter::<Value>().map(Result::unwrap);
        self.0.entry(definition).or_default().extend(values);
    }

    /// Executes commands that succeed.
    #[track_caller]
    fn all(&mut self, lab: &Lab, commands: &[&[&str]]) {
        commands.iter().for_each(|command| self.ce(lab, 0, [command, &[]]));
    }

    /// The kinds of lines of a definition.
    fn kinds(&self, definition: &str, field: &str) -> BTreeSet<&str> {
        self.0[definition].iter().filter_map(|it| it[field].as_str()).collect()
    }
}

/// The files of a storage whose names begin like this, as paths.
fn paths(lab: &Lab, storage: &str, begin: &str) -> Vec<String> {
    let files = crate::lab::files(&lab.path(storage)).into_keys();
    let files = files.filter(|name| name.starts_with(begin) && name.contains("/00/"));
    files.map(|name| format!("../{storage}/{name}")).collect()
}

fn one_task(printed: &mut PrintedJson) {
    let lab = Lab::task(SUM).commit().with_storage();
    let run = ["run", "--json", "--no-isolate", "--no-sync"];
    let storage = ["../storage"];
    let of_storage: [&[&str]; 8] = [
        &["log", "--json", "../storage"],
        &["log", "--json", "--attested", "../storage"],
        &["log", "--json", "--resources", "../storage"],
        &["gc", "--json", "--no-keep", "--older=0s", "../storage"],
        &["gc", "--json", "--repositories", "../storage"],
        &["pin", "--json", "../storage"],
        &["status", "--json", "../storage"],
        &["verify", "--json", "../storage"],
    ];
    printed.all(&lab, &of_storage);
    printed.ce(&lab, 3, [&[&run[..], &["-n"]].concat(), &GIVEN]);
    printed.ce(&lab, 3, [&["explain", "--json"], &GIVEN]);
    printed.ce(&lab, 0, [&run, &GIVEN]);
    printed.ce(&lab, 0, [&run, &GIVEN]);
    printed.ce(&lab, 0, [&["explain", "--json"], &GIVEN]);
    let [sum, job] = ["c_add/", "t_task/"].map(|begin| paths(&lab, "storage", begin).remove(0));
    lab.run("ce", &["pin", "--note", "figure 3", &sum]).exit(0);
    printed.all(&lab, &of_storage);
    let of_results: [&[&str]; 5] = [
        &["show", "--json", &sum],
        &["show", "--json", &job],
        &["export", "--json", "--all", &job, "../package"],
        &["check", "--json"],
        &["commits", "."],
    ];
    printed.all(&lab, &of_results);
    let input = lab.storage().into_iter().find(|it| it.starts_with("tinputs/")).unwrap();
    printed.ce(&lab, 0, [&["show", "--json", "../storage"], &[&input]]);
    // In memory, a promise is broken.
    let ran = lab.run("ce", &["doctor", "--json", "../storage"]);
    let probes = Deserializer::from_str(&ran.stdout).into_iter().map(Result::unwrap);
    printed.0.insert("doctor", probes.collect());
    // Another version, and an input with which a call fails.
    let script = r#"echo $(($(cat "$1") * $(cat "$2") + 1)) >"$3""#;
    let lab = lab.computation("mul", "a b", "product", script).commit_again();
    printed.ce(&lab, 3, [&["explain", "--json"], &GIVEN]);
    let versions = ["--no-isolate", "--no-sync", "--json"];
    printed.ce(&lab, 0, [&[&["diff"], &versions[..], &["HEAD~1..HEAD"]].concat(), &GIVEN]);
    let ends = ["--good=HEAD~1", "--bad=HEAD", "-q"];
    printed.ce(&lab, 0, [&[&["bisect"], &versions[..], &ends].concat(), &GIVEN]);
    let lab = lab.file("workflow/value", "mul\n").commit_again();
    printed.ce(&lab, 0, [&[&["diff"], &versions[..], &["HEAD~1..HEAD"]].concat(), &GIVEN]);
    let lab = lab.data("y", "0\n");
    printed.ce(&lab, 1, [&[&run[..], &["--retry=1"]].concat(), &GIVEN]);
    printed.ce(&lab, 3, [&["explain", "--json"], &GIVEN]);
    printed.ce(&lab, 0, [&["log", "--json", "--failed"], &storage]);
    // A result that is damaged.
    fs::remove_file(lab.path("task").join(&sum)).unwrap();
    fs::write(lab.path("task").join(&sum), "other\n").unwrap();
    printed.ce(&lab, 5, [&["show", "--json"], &[&sum]]);
    let lab = lab.data("y", "5\n");
    printed.ce(&lab, 3, [&["run", "--json", "-n", "--at=HEAD~2"], &GIVEN]);
    assert!(printed.0["run"].iter().any(|it| it["damage"].is_string()));
    printed.ce(&lab, 5, [&["verify", "--json", "--repair"], &storage]);
}

/// A call that reads a member of a directory, which becomes another one.
fn members(printed: &mut PrintedJson) {
    let lab = Lab::task("Inputs: 'x'\n(copy MEMBER('one' INPUT('x')))")
        .computation("copy", "a", "b", r#"cat "$1" >"$2""#)
        .without("../data/x")
        .data("x/one", "1\n")
        .commit()
        .with_storage();
    let given = ["../storage", "../data/x"];
    printed.ce(&lab, 0, [&["run", "--json", "--no-isolate"], &given]);
    let lab = lab.data("x/one", "2\n");
    printed.ce(&lab, 3, [&["explain", "--json"], &given]);
}

fn sweeps(printed: &mut PrintedJson) {
    let lab = Lab::task(SUM)
        .without("workflow")
        .file("inputs", "")
        .node("", "sweep", "SPEED")
        .file("workflow/allow-failed", "")
        .file("workflow/factors/00-x", "7\n8\n")
        .file("workflow/factors/01-y", "2\n0\n")
        .call("inputs/00-body/", "divmod", &["x", "y"])
        .commit()
        .with_storage();
    let run = ["run", "--json", "--no-isolate", "--no-sync"];
    let storage = ["../storage"];
    printed.ce(&lab, 3, [&["table", "--json"], &storage]);
    printed.ce(&lab, 0, [&run, &storage]);
    printed.ce(&lab, 3, [&["table", "--json", "--attested"], &storage]);
    printed.ce(&lab, 3, [&["table", "--json", "--summary"], &storage]);
    let lab = lab.file("workflow/factors/01-y", "3\n2\n0\n").commit_again();
    printed.ce(&lab, 3, [&["explain", "--json"], &storage]);
    let versions = ["--no-isolate", "--no-sync", "--json", "HEAD~1..HEAD"];
    printed.ce(&lab, 0, [&[&["diff"], &versions[..]].concat(), &storage]);
    let versions = ["--all", "--json", "--at=HEAD~1", "--at=HEAD"];
    printed.ce(&lab, 3, [&[&["table"], &versions[..]].concat(), &storage]);
    let compared = ["compare", "--json", "--at=HEAD~1", "--at=HEAD"];
    printed.ce(&lab, 3, [&compared, &storage]);
    let compared = ["compare", "--json", "--sweep=SPEED", "--by=y=2,3", "--exact=quotient"];
    printed.ce(&lab, 0, [&compared, &storage]);
    printed.all(&lab, &[&["check", "--json"]]);
    let table = lab.storage().into_iter();
    let table = table.filter(|it| it.starts_with("tables/") && it.ends_with("/00"));
    for (at, file) in table.chain(paths(&lab, "storage", "c_divmod/")).enumerate() {
        printed.ce(&lab, 0, [&["show", "--json", "../storage"], &[&file]]);
        let package = format!("../package-{at}");
        printed.ce(&lab, 0, [&["export", "--json", "../storage"], &[&file, &package]]);
    }
    let lab = Lab::task("Inputs: 'x', 'y'\n(divmod INPUT('x') INPUT('y'))[0]").commit();
    printed.ce(&lab, 1, [&run, &["--each=x=7", "--each=y=2,0", "../storage"]]);
}

fn results(printed: &mut PrintedJson) {
    let lab = shared::lab();
    shared::evaluate(&lab, "storage").exit(0);
    let ends = |storage: &str| [format!("../{storage}"), "../results.git".to_owned()];
    let mut exchange = |lab: &Lab, exit, options: &[&str], storage| {
        printed.ce(lab, exit, [options, &ends(storage).each_ref().map(String::as_str)]);
    };
    exchange(&lab, 3, &["push", "--json", "-n"], "storage");
    exchange(&lab, 0, &["push", "--json"], "storage");
    fs::create_dir(lab.path("pulled")).unwrap();
    exchange(&lab, 3, &["pull", "--json", "-n"], "pulled");
    exchange(&lab, 0, &["pull", "--json"], "pulled");
    exchange(&lab, 0, &["pull", "--json"], "pulled");
    shared::cloned(&lab, "results.git", "clone", &[]);
    for storage in ["pulled", "clone"] {
        let path = format!("../{storage}");
        printed.ce(&lab, 0, [&["run", "--json", "--no-isolate"], &[&path, "../data/x"]]);
        printed.ce(&lab, 0, [&["log", "--json", "--attested"], &[&path]]);
        for file in ["c_twice/", "t_task/"].iter().flat_map(|it| paths(&lab, storage, it)) {
            printed.ce(&lab, 0, [&["show", "--json"], &[&file]]);
            let package = format!("../of-{}-{storage}", &file[..20].replace('/', "-"));
            printed.ce(&lab, 0, [&["export", "--json"], &[&file, &package]]);
        }
    }
    let audit = ["audit", "--json", "--no-isolate"];
    printed.ce(&lab, 0, [&audit, &["-n", "../storage"]]);
    printed.ce(&lab, 0, [&audit, &["../storage"]]);
    shared::salt(&lab, "salt\n");
    printed.ce(&lab, 1, [&audit, &["--sample=100%", "--seed=1", "../storage"]]);
    // Calls without a job cannot be audited.
    let jobs = fs::read_dir(lab.path("pulled/t_task")).unwrap();
    jobs.for_each(|job| fs::remove_dir_all(job.unwrap().path()).unwrap());
    printed.ce(&lab, 0, [&audit, &["../pulled"]]);
    // Results that the repository has need not be here.
    let published = ["--delete", "--published=../results.git", "../storage"];
    printed.ce(&lab, 0, [&["gc", "--json"], &published]);
    printed.ce(&lab, 0, [&["log", "--json", "../storage"], &[]]);
    printed.ce(&lab, 3, [&["explain", "--json"], &["../storage", "../data/x"]]);
    printed.ce(&lab, 1, [&["run", "--json", "--no-isolate"], &["../storage", "../data/x"]]);
    // Results of uncommitted changes are not pushed.
    let lab = lab.computation("once", "a", "b", r#"cat "$1" >"$2""#);
    printed.ce(
        &lab,
        0,
        [&["run", "--json", "--no-isolate", "--dirty"], &["../dirty", "../data/x"]],
    );
    let push = ["push", "--json", "../dirty", "../results.git"];
    printed.ce(&lab, 0, [&push, &[]]);
    shared::repository(&lab, "empty.git");
    printed.ce(&lab, 0, [&["pull", "--json", "../pulled", "../empty.git"], &[]]);
}

fn suspended(printed: &mut PrintedJson) {
    let lab = spooling(&["status"]).commit();
    let given = ["../storage", "../data/x"];
    printed.ce(&lab, 4, [&["run", "--json", "--no-isolate"], &given]);
    printed.ce(&lab, 4, [&["explain", "--json"], &given]);
    for options in [&["status", "--json"][..], &["status", "--json", "--ask"], &["log", "--json"]] {
        printed.ce(&lab, 0, [options, &["../storage"]]);
    }
}

/// Whether another name may be in the object of this place: users choose the names, or it is a record, to which later
/// versions may add.
fn is_open(place: &str) -> bool {
    let maps = [
        "/row",
        "/point",
        "/group",
        "/texts",
        "/common",
        "/old",
        "/new",
        "/queued",
        "/not_audited",
    ];
    maps.iter().any(|map| place.ends_with(map))
        || place.contains("/first/")
        || ["/record/call", "/record/job", "/record/table", "/record/task_input", "/failure/"]
            .iter()
            .any(|record| place.contains(record))
}

#[test]
fn each_definition_agrees_with_the_printed_objects() {
    let mut printed = PrintedJson::default();
    one_task(&mut printed);
    members(&mut printed);
    sweeps(&mut printed);
    results(&mut printed);
    suspended(&mut printed);
    for (.., definition) in DEFINITIONS {
        assert!(printed.0.get(definition).is_some_and(|it| !it.is_empty()), "{definition}");
    }
    let events = ["run", "started", "retried", "ended", "end"];
    assert!(printed.kinds("run", "event").is_superset(&events.into()));
    let outcomes = ["missing", "executed", "reused", "failed", "blocked", "suspended", "waiting"];
    assert!(printed.kinds("run", "outcome").is_superset(&outcomes.into()));
    let events = ["versions", "output", "sweep", "call", "workflow", "end"];
    assert!(printed.kinds("diff", "event").is_superset(&events.into()));
    assert_eq!(printed.kinds("explain", "event"), ["call", "cause", "end"].into());
    assert!(printed.kinds("explain", "cause").contains("member"));
    assert_eq!(printed.kinds("gc", "event"), ["end", "result"].into());
    assert_eq!(printed.kinds("verify", "event"), ["end", "found", "quarantined"].into());
    let verdicts = ["agrees", "differs", "not_audited"];
    assert!(printed.kinds("audit", "verdict").is_superset(&verdicts.into()));
    let statuses = ["failed", "missing", "ok"];
    assert!(printed.kinds("table", "status").is_superset(&statuses.into()));
    let (mut shapes, mut refused) = (BTreeSet::new(), 0);
    for (definition, values) in &printed.0 {
        let mut is_new = |value: &&Value| shapes.insert((*definition, places(value)));
        for value in values.iter().filter(|it| is_new(it)) {
            for place in places(value).into_iter().chain([String::new()]) {
                let other = with(value, &place, |it| *it = json!([true]));
                assert_ne!(faults(definition, &other), [""; 0], "{definition}{place}: {other:#}");
                let is_object = value.pointer(&place).unwrap().is_object();
                if is_object && !is_open(&place) {
                    let more = with(value, &place, |it| it["later"] = json!(1));
                    assert_ne!(faults(definition, &more), [""; 0], "{definition}{place}: {more:#}");
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 300, "{refused} objects");
}

#[test]
fn a_run_that_waits_for_another_one_says_so() {
    let wait = r#"until [ -e "$LAB_LOG.on" ]; do sleep 0.01; done; cat "$1" >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(wait INPUT('x'))").computation("wait", "a", "b", wait);
    let lab = lab.commit();
    let events = lab.path("events");
    let run = || {
        let file = fs::File::options().create(true).append(true).open(&events).unwrap();
        Running::start(lab.evaluation(&["--json"]).stdout(file))
    };
    let until = |event: &str| {
        while !fs::read_to_string(&events).unwrap().contains(event) {
            std::thread::yield_now();
        }
    };
    let first = run();
    until("\"started\"");
    let second = run();
    until("\"waiting\"");
    fs::write(lab.path("called.on"), "").unwrap();
    for run in [first, second] {
        Ran::new(&lab, run.output()).exit(0);
    }
    fs::read_to_string(&events).unwrap().lines().for_each(check_event);
}
