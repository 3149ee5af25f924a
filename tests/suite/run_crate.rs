//! `ce export --crate`: a job as a Provenance Run Crate, with only the facts that the user wants published.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::lab::{Lab, files};
use crate::needs::needs;

/// Options without which no crate is whole, and those with which it is complete.
const WHOLE: [&str; 5] = ["export", "--crate", "--license=CC-BY-4.0", "--author=Ada", "../storage"];
const COMPLETE: [&str; 5] = ["export", "--crate", "--times", "--machine", "--by=Ada Lovelace"];

/// The contents of the file of citations in a repository.
const CITED: &str = "cff-version: 1.2.0\nlicense: [MIT, Apache-2.0]\nauthors:\n  - given-names: Ada\n    family-names: \
                     Lovelace\n    orcid: https://orcid.org/0000-0002-1825-0097\n    affiliation: Example Lab\n";

/// The file with the text of a licence that is in no list.
const OWN_LICENCE: &str = "LICENSES/LicenseRef-own.txt";

const PUBLISHER: &str = "--publisher=Example Lab <https://example.org/lab>";

/// Checks of the validator that no crate passes: a workflow in the crate has no absolute address, and CompEval no home page.
const IMPOSSIBLE: [&str; 2] = ["process-run-crate-0.5_3.2", "process-run-crate-0.5_5.1"];

/// The task of most tests, in a repository with a remote one and a citation.
fn cited(lab: Lab) -> Lab {
    let lab = lab.file("CITATION.cff", CITED).commit();
    lab.git("task", &["remote", "add", "origin", "https://ada:hunter2@example.org/lab/task.git"]);
    lab.ce_run(&["--no-sync"]).exit(0);
    lab
}

fn quotient() -> Lab {
    cited(Lab::task(
        "Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y')) (add INPUT('x') INPUT('y')))",
    ))
}

fn written(text: &str) -> Lab {
    Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))")
        .without("workflow")
        .without("inputs")
        .file("workflow.ce", text)
}

/// The only job of the storage.
fn job(lab: &Lab) -> String {
    lab.results().into_keys().find(|name| name.starts_with("t_")).unwrap()
}

fn export(lab: &Lab, options: &[&str], dir: &str) -> Command {
    let mut command = lab.command("ce");
    command.args(options).args([&job(lab), dir]).env("SOURCE_DATE_EPOCH", "1800000000");
    command
}

/// The metadata of a crate, by ids.
fn metadata(lab: &Lab, dir: &str) -> BTreeMap<String, Value> {
    let text = fs::read(lab.path(dir).join("ro-crate-metadata.json")).unwrap();
    let document: Value = serde_json::from_slice(&text).unwrap();
    let entities = document["@graph"].as_array().unwrap();
    entities.iter().map(|it| (it["@id"].as_str().unwrap().to_owned(), it.clone())).collect()
}

/// The values of a property: a list of one is written as that one.
fn values<'a>(entity: &'a Value, name: &str) -> Vec<&'a Value> {
    match &entity[name] {
        Value::Null => Vec::new(),
        Value::Array(values) => values.iter().collect(),
        value => vec![value],
    }
}

/// The ids that a property refers to.
fn ids<'a>(entity: &'a Value, name: &str) -> Vec<&'a str> {
    values(entity, name).into_iter().filter_map(|value| value["@id"].as_str()).collect()
}

/// All entities of a type.
fn of_type<'a>(entities: &'a BTreeMap<String, Value>, kind: &str) -> Vec<&'a Value> {
    entities.values().filter(|it| values(it, "@type").contains(&&Value::from(kind))).collect()
}

/// Every reference leads to an entity, and every file of the crate is a part of it.
fn assert_whole(lab: &Lab, dir: &str) {
    let entities = metadata(lab, dir);
    for (id, entity) in &entities {
        for name in entity.as_object().unwrap().keys() {
            for found in ids(entity, name) {
                assert!(entities.contains_key(found), "{id} {name} {found}");
            }
        }
    }
    let parts = ids(&entities["./"], "hasPart");
    for part in &parts {
        assert!(lab.path(dir).join(decoded(part)).exists(), "{part}");
    }
    for file in files(&lab.path(dir)).into_keys().filter(|it| it != "ro-crate-metadata.json") {
        let is_part = |part: &str| file == part || part.ends_with('/') && file.starts_with(part);
        assert!(
            parts.iter().any(|part| is_part(&decoded(part))),
            "{file} is not a part: {parts:?}"
        );
    }
}

/// A path without the escapes of a URL.
fn decoded(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let digits = [rest.clone().next(), rest.clone().nth(1)];
        match (byte, digits) {
            (b'%', [Some(high), Some(low)]) => {
                let digits = [high, low].map(char::from);
                bytes.push(u8::from_str_radix(&digits.iter().collect::<String>(), 16).unwrap());
                rest.nth(1);
            }
            _ => bytes.push(byte),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// The checks that crates do not pass, of those that are required and those that are recommended.
fn invalid(lab: &Lab, crates: &[&str]) -> BTreeMap<String, [BTreeSet<String>; 2]> {
    let output = Command::new("validate-crate")
        .args(crates.iter().map(|it| lab.path(it)))
        .env("HOME", lab.path("."))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut found: BTreeMap<String, [BTreeSet<String>; 2]> = BTreeMap::new();
    for line in String::from_utf8(output.stdout).unwrap().lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let name = fields[0].rsplit('/').next().unwrap();
        let [required, recommended] = found.entry(name.to_owned()).or_default();
        match fields[1..] {
            ["REQUIRED", ..] => drop(required.insert(line.to_owned())),
            ["RECOMMENDED", check, ..] => drop(recommended.insert(check.to_owned())),
            ["checked", number] => assert!(number.parse::<usize>().unwrap() > 150, "{line}"),
            _ => panic!("{line}"),
        }
    }
    assert_eq!(found.len(), crates.len(), "{found:?}");
    found
}

fn checks<const N: usize>(more: [&str; N]) -> BTreeSet<String> {
    IMPOSSIBLE.into_iter().chain(more).map(str::to_owned).collect()
}

#[test]
fn a_crate_has_the_calls_of_a_job_without_times_and_hosts() {
    let lab = quotient();
    lab.unchanged(|| lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0));
    assert_whole(&lab, "out");
    // The path that a run prints is the output of a call, and the job's, too.
    let printed = lab.ce_run(&["--no-sync", "-q"]).stdout;
    let same = [&WHOLE[..], &[printed.trim(), "../same"]].concat();
    lab.finish(lab.command("ce").args(same).env("SOURCE_DATE_EPOCH", "1800000000")).exit(0);
    assert_eq!(files(&lab.path("same")), files(&lab.path("out")));
    let entities = metadata(&lab, "out");
    let commit = lab.git("task", &["rev-parse", "HEAD"]);
    let root = &entities["./"];
    assert_eq!(root["datePublished"], "2027-01-15");
    assert_eq!(ids(root, "license"), ["https://spdx.org/licenses/CC-BY-4.0"]);
    assert_eq!(ids(root, "author"), ["#contributor/Ada"]);
    let workflow = &entities["workflow.ce"];
    assert_eq!((&workflow["version"], ids(workflow, "step").len()), (&commit.as_str().into(), 3));
    assert_eq!(workflow["url"], "https://example.org/lab/task.git");
    let tool = &of_type(&entities, "SoftwareApplication");
    assert_eq!(tool.len(), 3, "add, mul and CompEval: {tool:#?}");
    let actions = of_type(&entities, "CreateAction");
    assert_eq!(actions.len(), 4);
    let last = actions
        .iter()
        .find(|it| ids(it, "result") == ["sum"] && it["@id"] != ids(root, "mentions")[0]);
    let [product, sum] = ids(last.unwrap(), "object")[..] else { panic!("{last:?}") };
    for (value, tool) in [(product, "c_mul"), (sum, "c_add")] {
        let made = actions.iter().find(|it| ids(it, "result") == [value]).unwrap();
        assert!(ids(made, "instrument")[0].contains(&format!("task.git#{tool}/")), "{made}");
    }
    let text = files(&lab.path("out")).into_values().collect::<Vec<_>>().concat();
    let text = String::from_utf8(text).unwrap();
    let host = String::from_utf8(Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
    let place = lab.path(".").canonicalize().unwrap().display().to_string();
    for secret in [host.trim(), &place, "hunter2", "startTime", "executed: 2", "machine", "GiB"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[test]
fn times_machines_inputs_and_people_are_published_if_the_user_wants_that() {
    let lab = quotient();
    let options = [&COMPLETE[..], &["--inputs", "--all", PUBLISHER, "../storage"]].concat();
    lab.finish(&mut export(&lab, &options, "../out")).exit(0);
    assert_whole(&lab, "out");
    let entities = metadata(&lab, "out");
    let ada = "https://orcid.org/0000-0002-1825-0097";
    assert_eq!(ids(&entities["./"], "author"), [ada]);
    assert_eq!(ids(&entities[ada], "affiliation"), ["https://example.org/lab"]);
    let licences = ["https://spdx.org/licenses/MIT", "https://spdx.org/licenses/Apache-2.0"];
    assert_eq!(ids(&entities["./"], "license"), licences);
    for action in of_type(&entities, "CreateAction") {
        let times = ["startTime", "endTime"].map(|it| action[it].as_str().unwrap());
        assert!(times.iter().all(|it| it.len() == 29 && it.ends_with("+00:00")), "{times:?}");
        assert!(times[0] <= times[1] && ids(action, "agent") == [ada], "{action}");
    }
    let call =
        of_type(&entities, "CreateAction").into_iter().find(|it| it["name"] == "Execution of mul");
    assert!(call.unwrap()["description"].as_str().unwrap().contains("machine: "), "{call:?}");
    assert_eq!(fs::read_to_string(lab.path("out/inputs/x")).unwrap(), lab_input(&lab, "x"));
    assert_eq!(ids(call.unwrap(), "object"), ["inputs/x", "inputs/y"]);
    let page = fs::read_to_string(lab.path("out/README.md")).unwrap();
    assert!(page.contains("- executed: 2"), "{page}");
}

fn lab_input(lab: &Lab, name: &str) -> String {
    fs::read_to_string(lab.path("data").join(name)).unwrap()
}

#[test]
fn an_archive_has_the_same_files_and_is_the_same_each_time() {
    needs(&["python3"]);
    let lab = quotient();
    lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0);
    for archive in ["../a.zip", "../b.zip"] {
        lab.finish(&mut export(&lab, &WHOLE, archive)).exit(0);
    }
    let [a, b] = ["a.zip", "b.zip"].map(|it| fs::read(lab.path(it)).unwrap());
    assert!(a == b, "the same crate is the same bytes");
    let unpack = "import sys, zipfile; zipfile.ZipFile(sys.argv[1]).extractall(sys.argv[2])";
    let unpacked = Command::new("python3")
        .args(["-c", unpack])
        .args([lab.path("a.zip"), lab.path("unpacked")])
        .status();
    assert!(unpacked.unwrap().success());
    assert_eq!(files(&lab.path("unpacked")), files(&lab.path("out")));
}

#[test]
fn no_name_in_an_archive_is_a_path_on_another_system() {
    let make = r#"mkdir "$2/d"; echo 1 >"$2/d/..\..\x""#;
    let lab =
        Lab::task("Inputs:\n(make)").computation("make", "", "tree/", &make.replace("$2", "$1"));
    let lab = cited(lab);
    lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0);
    let refused = lab.finish(&mut export(&lab, &WHOLE, "../out.zip")).exit(5);
    refused.says("has a backslash, which no name in a ZIP archive has");
    assert!(!lab.path("out.zip").exists());
}

#[test]
fn a_refused_crate_is_one_error_and_leaves_no_files() {
    let lab = quotient();
    fs::write(lab.path("there.zip"), "mine").unwrap();
    let before: BTreeSet<_> =
        fs::read_dir(lab.path(".")).unwrap().map(|it| it.unwrap().path()).collect();
    let refused = |options: &[&str], dir: &str, code: i32, says: &str| {
        let ran = lab.finish(&mut export(&lab, options, dir)).exit(code);
        assert!(ran.stderr.contains(says), "{says}: {}", ran.stderr);
    };
    refused(&WHOLE, "../there.zip", 2, "../there.zip exists\n  try: give the name of a file");
    refused(&WHOLE, "../storage/new.zip", 2, "is in the storage");
    refused(&["export", "--inputs", "../storage"], "../out", 2, "--crate");
    refused(&[&["export", "--link"], &WHOLE[1..]].concat(), "../out", 2, "cannot be used with");
    refused(
        &["export", "--crate", "--license=a b", "../storage"],
        "../out",
        2,
        "\"a\" is not in the list of SPDX, which is at https://spdx.org/licenses/",
    );
    refused(&["export", "--crate", "--author=A <b>", "../storage"], "../out", 2, "nor an ORCID");
    let call = lab.results().into_keys().find(|name| name.starts_with("c_mul/")).unwrap();
    refused(&[&WHOLE[..], &[&call]].concat(), "../out", 2, "a crate holds one job, and 2 results");
    let no_job = lab.run("ce", &["export", "--crate", "../storage", &call, "../out"]).exit(2);
    assert!(
        no_job.stderr.contains("is not a job: a crate holds the run of a task"),
        "{}",
        no_job.stderr
    );
    let mut elsewhere = export(&lab, &WHOLE, "../out");
    let elsewhere = lab.finish(elsewhere.current_dir(lab.path("data"))).exit(2);
    assert!(elsewhere.stderr.contains("is not found from here\n"), "{}", elsewhere.stderr);
    // An input that is not there any more is not published, and its crate has a hole nowhere.
    let input = lab.results().into_keys().find(|name| name.starts_with("tinputs/")).unwrap();
    fs::remove_file(lab.path("storage").join(&input)).unwrap();
    refused(&[&WHOLE[..], &["--inputs"]].concat(), "../out", 5, &format!("{input}: it is missing"));
    let after: BTreeSet<_> =
        fs::read_dir(lab.path(".")).unwrap().map(|it| it.unwrap().path()).collect();
    assert_eq!(before, after);
    assert_eq!(fs::read_to_string(lab.path("there.zip")).unwrap(), "mine");
}

#[test]
fn licences_may_be_expressions_and_people_are_named_once() {
    let cited = "license: Apache-2.0 WITH LLVM-exception OR MIT\nauthors:\n  - {given-names: Ada, family-names: Lovelace, \
                 email: ada@example.org}\n  - {given-names: A., family-names: Lovelace, email: ada@example.org, \
                 orcid: 0000-0002-1825-0097, affiliation: Example Lab}\n  - {given-names: Bob, affiliation: Bob}\n";
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))");
    let lab = lab.file("CITATION.cff", cited).commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let options = [&COMPLETE[..], &[PUBLISHER, "../storage"]].concat();
    lab.finish(&mut export(&lab, &options, "../out")).exit(0);
    assert_whole(&lab, "out");
    let entities = metadata(&lab, "out");
    let ada = "https://orcid.org/0000-0002-1825-0097";
    assert_eq!(ids(&entities["./"], "author"), [ada, "#contributor/Bob"]);
    assert_eq!(entities[ada]["name"], "Ada Lovelace");
    assert_eq!(of_type(&entities, "Person").len(), 2, "the agent of the call, too");
    assert!(!serde_json::to_string(&entities).unwrap().contains("ada@example.org"));
    let [licence] = ids(&entities["./"], "license")[..] else { panic!("one licence") };
    assert_eq!(licence, "#licence/Apache-2.0%20WITH%20LLVM-exception%20OR%20MIT");
    assert_eq!(entities[licence]["identifier"], "Apache-2.0 WITH LLVM-exception OR MIT");
    let parts =
        ["Apache-2.0", "LLVM-exception", "MIT"].map(|it| format!("https://spdx.org/licenses/{it}"));
    assert_eq!(ids(&entities[licence], "isBasedOn"), parts);
    let wrong = ["export", "--crate", "--license=Apache2", "../storage"];
    let told = lab.finish(&mut export(&lab, &wrong, "../no")).exit(2);
    assert!(told.stderr.contains("which has Apache-2.0"), "{}", told.stderr);
}

#[test]
fn a_licence_that_is_in_no_list_comes_with_its_text() {
    let lab = quotient();
    let options = ["export", "--crate", "--license=MIT OR LicenseRef-own", "../storage"];
    let told = lab.finish(&mut export(&lab, &options, "../out")).exit(2);
    told.says("the text of the licence LicenseRef-own cannot be read from LICENSES/LicenseRef-own.txt at commit ")
        .says("try: commit its text as LICENSES/LicenseRef-own.txt and run the task again; or give its address");
    assert!(!lab.path("out").exists());
    let task = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))";
    let lab = cited(Lab::task(task).file(OWN_LICENCE, "Terms\n"));
    lab.finish(&mut export(&lab, &options, "../out")).exit(0);
    assert_whole(&lab, "out");
    let entities = metadata(&lab, "out");
    let [licence] = ids(&entities["./"], "license")[..] else { panic!("one licence") };
    let parts = ["https://spdx.org/licenses/MIT", "#licence/LicenseRef-own"];
    assert_eq!(ids(&entities[licence], "isBasedOn"), parts);
    assert_eq!(entities[parts[1]]["description"], "Terms\n");
}

#[test]
fn files_have_types_by_their_names_or_contents() {
    let script = r#"echo '%PDF' >"$2"; echo '{"a":1}' >"$3"; echo a,b >"$4"; printf 'a,b\n1,2\n' >"$5"; cp "$1" "$6/x""#;
    let lab = written("Inputs: x\n\n(make x)\n").computation(
        "make",
        "x",
        "page.PDF rows.jsonl text figures/",
        script,
    );
    let mut lab =
        lab.file("computations/make/outputs", "page.PDF\nrows.jsonl\ntext\ncells\nfigures/\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = cited(lab);
    lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0);
    let entities = metadata(&lab, "out");
    for (id, kind) in [
        ("page.PDF", Some("application/pdf")),
        ("rows.jsonl", Some("application/x-ndjson")),
        ("text", Some("text/plain")),
        ("cells", Some("text/csv")),
        ("figures/", None),
    ] {
        assert_eq!(entities[id]["encodingFormat"].as_str(), kind, "{id}");
    }
}

#[test]
fn a_crate_with_a_secret_is_made_only_if_the_user_wants_that() {
    let token = format!("{}{}", "ghp_", "a1".repeat(18));
    let lab = written(
        "Inputs: x, y\n\nswept = SWEEP(MEMBER('b' (leak y k)[0]) :over k 1 2)\nsum = (add x x)\n\nALL(swept sum)\n",
    );
    let leak = r#"mkdir "$3/a"; cp "$1" "$3/a/y"; cp "$2" "$3/b""#;
    let lab = lab.computation("leak", "y k", "kept/", leak);
    let lab = cited(lab.data("y", format!("token: {token}\n")));
    let made = |options: &[&str], dir: &str, code: i32| {
        let ran = lab.finish(&mut export(&lab, &[&WHOLE[..], options].concat(), dir)).exit(code);
        assert_eq!(lab.path("out").exists(), code == 0 && dir == "../out");
        ran.stderr
    };
    // Neither a file outside of the crate nor a part of a directory outside of it.
    made(&[], "../small", 0);
    for (options, files) in [
        (&["--all"][..], &["c_leak/", "/a/y: it seems to hold a token of GitHub\n"][..]),
        (&["--inputs"], &["nothing is exported: tinputs/", ": it seems to hold a token of GitHub"]),
        (&["--inputs", "--all"], &["; c_leak/", "\n  try: --allow-secrets exports it all"]),
        (&["--author=Eve ghp_a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1a1"], &["ro-crate-metadata.json"]),
    ] {
        for dir in ["../out", "../out.zip"] {
            let said = made(options, dir, 1);
            assert!(files.iter().all(|file| said.contains(file)), "{files:?}: {said}");
            assert!(!said.contains(&token), "{said}");
        }
    }
    assert!(!lab.path("out.zip").exists());
    let mut command = export(&lab, &WHOLE, "../out");
    let said = lab.finish(command.env("LAB_PASSWORD", "0 CC-BY-4.0")).exit(0);
    assert!(!said.stderr.contains("LAB_PASSWORD"), "{}", said.stderr);
    fs::remove_dir_all(lab.path("out")).unwrap();
    let mut command = export(&lab, &WHOLE, "../out");
    let said = lab.finish(command.env("LAB_PASSWORD", "CC-BY-4.0")).exit(1);
    assert!(said.stderr.contains("the value of the variable LAB_PASSWORD"), "{}", said.stderr);
    made(&["--inputs", "--all", "--allow-secrets"], "../out", 0);
    let text = fs::read_to_string(lab.path("out/inputs/y")).unwrap();
    assert!(text.contains(&token));
}

#[test]
fn licence_and_authors_are_asked_for() {
    for (cited, missing) in [
        (None, "neither options nor CITATION.cff at commit "),
        (Some("license: MIT\n"), "give the authors of the crate"),
        (Some("authors: [{name: x}]\n"), "give the licence of the crate"),
        (Some("license: [MIT\n"), "cannot be understood\n  because: it is not YAML"),
    ] {
        let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))");
        let lab = match cited {
            Some(text) => lab.file("CITATION.cff", text).commit(),
            None => lab.commit(),
        };
        lab.ce_run(&["--no-sync"]).exit(0);
        let ran =
            lab.finish(&mut export(&lab, &["export", "--crate", "../storage"], "../out")).exit(2);
        assert!(ran.stderr.contains(missing), "{missing}: {}", ran.stderr);
        assert!(
            ran.stderr.contains("try: give --license CC-BY-4.0 and --author"),
            "{}",
            ran.stderr
        );
        assert!(!lab.path("out").exists());
        // A remote repository that is no web address names users, hosts and paths.
        lab.git("task", &["remote", "add", "origin", "alice@cluster:/home/alice/task.git"]);
        lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0);
        let metadata = fs::read_to_string(lab.path("out/ro-crate-metadata.json")).unwrap();
        assert!(!metadata.contains("alice") && !metadata.contains("cluster"), "{metadata}");
        assert_whole(&lab, "out");
    }
}

/// A sweep with computed points, and one over factors.
fn sweeps(more: impl FnOnce(Lab) -> Lab) -> Lab {
    cited(more(
        written(
            "Inputs: x, y\n\nsizes = (list y)\neach = SWEEP((mul x n) sizes :names 'n')\ntried = SWEEP((try x k replicate) :over k 1 2 \
             :replicates 2)\n\nALL(each tried)\n",
        )
        .computation("list", "y", "points", r#"(echo n; echo 4; echo 5) >"$2""#)
        .computation("try", "x k replicate", "seconds", r#"cat "$2" >"$4""#),
    ))
}

#[test]
fn a_sweep_is_a_workflow_that_runs_at_each_point() {
    let lab = sweeps(|lab| lab);
    lab.finish(&mut export(&lab, &WHOLE, "../out")).exit(0);
    assert_whole(&lab, "out");
    let entities = metadata(&lab, "out");
    let bodies = of_type(&entities, "ComputationalWorkflow");
    let names: BTreeSet<&str> = bodies.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, BTreeSet::from(["task", "each", "tried"]));
    let tried = bodies.iter().find(|it| it["name"] == "tried").unwrap();
    let points = of_type(&entities, "CreateAction");
    let points =
        points.iter().filter(|it| ids(it, "instrument") == [tried["@id"].as_str().unwrap()]);
    let mut names: Vec<&str> = Vec::new();
    for point in points {
        names.push(point["name"].as_str().unwrap());
        assert_eq!((ids(point, "object").len(), ids(point, "result").len()), (2, 1), "{point}");
    }
    names.sort_unstable();
    let expected = [("1", "1"), ("1", "2"), ("2", "1"), ("2", "2")];
    assert_eq!(names, expected.map(|(k, replicate)| format!("Point k={k}, replicate={replicate}")));
    // Its steps are in it, and the sweep is a step of the workflow of the task.
    let steps = |workflow: &Value| -> BTreeSet<String> {
        let names = ids(workflow, "step")
            .into_iter()
            .map(|id| entities[id]["name"].as_str().unwrap().to_owned());
        names.collect()
    };
    assert_eq!(steps(tried), BTreeSet::from(["try".to_owned()]));
    let own = ["sizes", "each", "tried"].map(str::to_owned);
    assert_eq!(steps(&entities["workflow.ce"]), BTreeSet::from(own));
}

#[test]
fn crates_are_valid() {
    needs(&["validate-crate"]);
    let complete = [&COMPLETE[..], &[PUBLISHER, "--inputs", "--all", "../storage"]].concat();
    let lab = quotient();
    lab.finish(&mut export(&lab, &complete, "../complete")).exit(0);
    lab.finish(&mut export(&lab, &complete, "../complete.zip")).exit(0);
    lab.finish(&mut export(&lab, &WHOLE, "../private")).exit(0);
    // A call that was pulled has neither times nor who has executed it.
    lab.git(".", &["init", "-q", "--bare", "published"]);
    lab.run("ce", &["push", "-q", "../storage", "../published"]).exit(0);
    lab.run("ce", &["pull", "-q", "../pulled-storage", "../published"]).exit(0);
    let pulled = [&COMPLETE[..], &[PUBLISHER, "../pulled-storage"]].concat();
    lab.finish(&mut export(&lab, &pulled, "../pulled")).exit(0);
    let said = serde_json::to_string(&metadata(&lab, "pulled")).unwrap();
    for word in ["startTime", "endTime", "agent"] {
        assert!(!said.contains(&format!("\"{word}\"")), "{word}");
    }
    let found = invalid(&lab, &["complete", "complete.zip", "private", "pulled"]);
    let times_and_agents = ["process-run-crate-0.5_8.4", "process-run-crate-0.5_8.6"];
    let affiliation = ["ro-crate-1.1_22.3", "ro-crate-1.1_30.2", "ro-crate-1.1_30.3"];
    let private: Vec<&str> = [&times_and_agents[..], &affiliation].concat();
    let none = BTreeSet::new();
    for (name, recommended) in [
        ("complete", checks([])),
        ("complete.zip", checks([])),
        ("private", checks::<5>(private.try_into().unwrap())),
        ("pulled", checks(times_and_agents)),
    ] {
        assert_eq!(found[name], [none.clone(), recommended], "{name}");
    }
}

#[test]
fn crates_of_sweeps_directories_and_odd_names_are_valid() {
    needs(&["validate-crate"]);
    let licence = "--license=(MIT OR LicenseRef-own) AND Apache-2.0 WITH LLVM-exception";
    let more = [PUBLISHER, licence, "--inputs", "--all", "../storage"];
    let complete = [&COMPLETE[..], &more].concat();
    let swept = sweeps(|lab| lab.file(OWN_LICENCE, "Terms\n"));
    swept.finish(&mut export(&swept, &complete, "../swept")).exit(0);
    let found = invalid(&swept, &["swept"]);
    assert_eq!(found["swept"], [BTreeSet::new(), checks([])]);
    let mut odd = written("Inputs: |a b|, |ü=%20|\n\n(make |a b| |ü=%20|)\n").computation(
        "make",
        "x y",
        "text plots/",
        r#"cat "$1" >"$3"; mkdir "$4/d e"; cp "$2" "$4/d e/ü"; ln -s "d e" "$4/link""#,
    );
    odd = odd.file("computations/make/outputs", "50% ü=#?.txt\nplots [1]/\n");
    odd = odd.data("a b", "1\n").data("u", "2\n");
    odd.inputs = ["a b", "u"].map(str::to_owned).to_vec();
    let odd = cited(odd.file(OWN_LICENCE, "Terms\n"));
    odd.finish(&mut export(&odd, &complete, "../odd")).exit(0);
    odd.finish(&mut export(&odd, &complete, "../odd.zip")).exit(0);
    assert_whole(&odd, "odd");
    // A task whose output is its input has executed nothing.
    let idle = Lab::task("Inputs: 'x', 'y'\nINPUT('x')").file(OWN_LICENCE, "Terms\n");
    let idle = cited(idle);
    idle.finish(&mut export(&idle, &complete, "../idle")).exit(0);
    let found = invalid(&odd, &["odd", "odd.zip"]);
    for (name, found) in found.iter().chain(&invalid(&idle, &["idle"])) {
        assert_eq!(found[0], BTreeSet::new(), "{name}");
    }
    assert_eq!(found["odd"][1], checks([]));
}
