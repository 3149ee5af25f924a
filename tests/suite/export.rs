//! `ce export`: results under readable names, all of them or nothing.

use std::fs;
use std::path::Path;

use compeval::storage::{Durability, LongText, RecipeHeader, RecipeWriter, Storage, Unrecorded};
use serde_json::Value;

use crate::arith::{Arith, Printed};
use crate::lab::{Lab, files};

const JOB: &str = "t_arith/COMMIT/00/ad48103e4fc7_5d9474c0309b";
const CALL: &str = "ad48103e4fc7_5d9474c0309b";

/// Runs `ce` in the repository of the example, which knows names of outputs where the storage does not.
fn ce(arith: &Arith, arguments: &[&str]) -> Printed {
    let output = arith.command(arguments).current_dir(arith.path("../copy")).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output.status.code().unwrap();
    Printed { out: text(output.stdout), err: text(output.stderr), code }
}

/// The names of the files in a directory.
fn names(dir: &Path) -> Vec<String> {
    files(dir).into_keys().collect()
}

/// Returns the names beside the storage of an evaluated example.
fn beside(arith: &Arith) -> Vec<String> {
    let entries = fs::read_dir(arith.path("..")).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_job_is_exported_with_its_provenance_by_any_name() {
    let arith = Arith::evaluated();
    let job = arith.name(JOB);
    let short = job.replace("/00/", "/");
    let beside = format!("../results/{short}");
    for (at, name) in [&job, &short, &beside, &format!("./../results/{job}")].iter().enumerate() {
        let dir = format!("../out{at}");
        let ran = ce(&arith, &["export", "../results", name, &dir]);
        assert_eq!((ran.out, ran.code), (format!("{dir}/sum\n"), 0), "{name}");
        let dir = arith.path("../copy").join(dir);
        assert_eq!(names(&dir), ["README.md", "sum"]);
        assert_eq!(fs::read_to_string(dir.join("sum")).unwrap(), "90\n");
        // A copy is the user's own.
        fs::write(dir.join("sum"), "91\n").unwrap();
        let page = fs::read_to_string(dir.join("README.md")).unwrap();
        for fact in
            ["- made by: computation `add`, output 00\n", "- input 00: `c_mul/", "input `x`"]
        {
            assert!(page.contains(fact), "{fact}: {page}");
        }
    }
    assert_eq!(fs::read_to_string(arith.path(JOB)).unwrap(), "90\n");
}

#[test]
fn all_exports_every_call_and_json_has_the_provenance() {
    let arith = Arith::evaluated();
    let job = arith.name(JOB);
    let ran = ce(&arith, &["export", "--all", "--json", "../results", &job, "../out"]);
    let document: Value = serde_json::from_str(&ran.out).unwrap();
    let all = [
        "README.md".to_owned(),
        "intermediate/add/a3db5c13ff90_7448d8798a43/sum".to_owned(),
        "intermediate/add/e9277bc504d7_5d9474c0309b/sum".to_owned(),
        format!("intermediate/divmod/{CALL}/quotient"),
        format!("intermediate/divmod/{CALL}/remainder"),
        format!("intermediate/mul/{CALL}/product"),
        "sum".to_owned(),
    ];
    assert_eq!(names(&arith.path("../out")), all);
    let listed = document["files"].as_array().unwrap();
    assert_eq!(listed.len(), 6);
    assert_eq!(listed[0]["path"], "sum");
    assert_eq!(listed[0]["made"]["computation"], "add");
    let input = &listed[0]["made"]["inputs"][0];
    assert!(input["file"].as_str().unwrap().starts_with("c_mul/"), "{input}");
    assert_eq!(document["results"][0]["inputs"][1]["name"], "y");
    // Two results are beside each other, each once.
    let call = arith.name(&format!("c_mul/COMMIT/00/{CALL}"));
    let ran = ce(&arith, &["export", "../results", &job, &call, &job, "../two"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let (job, call) = (job.replace("/00/", "/"), call.replace("/00/", "/"));
    let (job, call) = (&job["t_".len()..], &call["c_".len()..]);
    let both = ["README.md".to_owned(), format!("{job}/sum"), format!("{call}/product")];
    assert_eq!(names(&arith.path("../two")), both);
}

#[test]
fn a_call_that_a_job_needs_several_times_is_exported_once() {
    let mut lab =
        Lab::task("Inputs: 'x', 'y', 'z'\n(g (f INPUT('x')) (f INPUT('y')) (f INPUT('z')))")
            .computation("f", "d", "n", r#"wc -c <"$1" >"$2""#)
            .computation("g", "a\nb\nc", "s", r#"cat "$1" "$2" "$3" >"$4""#);
    lab = lab.data("x", "same\n").data("y", "same\n").data("z", "same\n");
    lab.inputs = ["x", "y", "z"].map(str::to_owned).to_vec();
    let lab = lab.commit();
    lab.ce_run(&[]).exit(0).says("2 computed");
    let job = lab.storage().into_iter().find(|it| it.starts_with("t_") && it.contains("/00/"));
    lab.run("ce", &["export", "--all", &format!("../storage/{}", job.unwrap()), "../out"]).exit(0);
    let all = names(&lab.path("out"));
    let of_f: Vec<&String> = all.iter().filter(|it| it.contains("/f/")).collect();
    assert_eq!(of_f.len(), 1, "{all:?}");
}

#[test]
fn links_lead_to_the_storage() {
    let arith = Arith::evaluated();
    let ran = ce(&arith, &["export", "--link", "../results", &arith.name(JOB), "../out"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let link = arith.path("../out/sum");
    assert!(link.is_symlink());
    assert_eq!(link.canonicalize().unwrap(), arith.path(JOB).canonicalize().unwrap());
}

#[test]
fn a_failed_export_leaves_nothing() {
    let arith = Arith::evaluated();
    let job = arith.name(JOB);
    let before = beside(&arith);
    let export = |arguments: &[&str], dir: &str, code: i32, says: &str| {
        let ran = ce(&arith, &[&["export"], arguments, &["../results", &job, dir]].concat());
        assert_eq!(ran.code, code, "{ran:?}");
        assert!(ran.err.contains(says) && ran.out.is_empty(), "{says}: {ran:?}");
    };
    let unknown = ce(&arith, &["export", "../results", "t_arith/none/x", "../out"]);
    assert!(unknown.code == 2 && unknown.err.contains("has no record"), "{unknown:?}");
    export(&[], "../results", 2, "../results is not an empty directory");
    export(&[], "../results/new", 2, "../results/new is in the storage");
    export(&[], "tasks-example/..", 2, "cannot name a new directory");
    export(&[], "-", 2, "- cannot name a new directory");
    export(&[], "none/out", 5, "cannot write none/out");
    // A job needs no intermediate results.
    let quotient = format!("c_divmod/COMMIT/00/{CALL}");
    arith.overwrite(&arith.path(&quotient), "x\n");
    let damage = format!("{}: its contents are not the recorded ones", arith.name(&quotient));
    export(&["--all"], "../out", 5, &damage);
    export(&["--all"], "../out", 5, "try: ce run makes again");
    fs::remove_file(arith.path(JOB)).unwrap();
    export(&[], "../out", 5, &format!("{job}: it is missing"));
    assert_eq!(beside(&arith), before);
    // An empty directory may be there.
    fs::create_dir(arith.path("../empty")).unwrap();
    let call = arith.name(&format!("c_mul/COMMIT/00/{CALL}"));
    assert_eq!(ce(&arith, &["export", "../results", &call, "../empty/"]).code, 0);
    assert_eq!(names(&arith.path("../empty")), ["README.md", "product"]);
}

/// A call with a directory as an output, executed at one level.
fn made() -> Lab {
    let make = r#"cat "$1" >"$2"; mkdir "$3/d"; cp "$1" "$3/d/x"; ln -s d/x "$3/link""#;
    let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0, 1]")
        .computation("make", "x", "text plots/", make)
        .commit()
        .data("x", "1\n");
    lab.ce_run(&[]).exit(0);
    lab
}

fn open(lab: &Lab) -> Storage {
    Storage::open(&lab.path("storage"), Unrecorded::Refuse, Durability::Unsynced).unwrap()
}

/// The name of the only output of the computation with a number.
fn output(lab: &Lab, number: &str) -> String {
    let results = lab.results().into_keys();
    let mut results = results.filter(|name| name.starts_with("c_make/"));
    let name = results.find(|name| name.contains(&format!("/{number}/"))).unwrap();
    name.splitn(5, '/').take(4).collect::<Vec<_>>().join("/")
}

#[test]
fn directories_are_copied_with_their_links() {
    let lab = made();
    let name = output(&lab, "00");
    lab.unchanged(|| lab.run("ce", &["export", "../storage", &name, "../out"]).exit(0));
    let dir = lab.path("out");
    assert_eq!(names(&dir), ["README.md", "plots/d/x", "plots/link", "text"]);
    assert_eq!(fs::read_link(dir.join("plots/link")).unwrap(), Path::new("d/x"));
    fs::write(dir.join("plots/d/new"), "").unwrap();
}

#[test]
fn points_have_directories_and_no_name_leads_out() {
    let lab = made();
    let storage = open(&lab);
    let header = RecipeHeader {
        names: vec!["x".to_owned(), "../y".to_owned()],
        outputs: vec!["../../evil".to_owned(), "..".to_owned(), String::new()],
        ..RecipeHeader::default()
    };
    let outputs: Vec<_> = ["00", "01", "00"]
        .iter()
        .map(|number| storage.inputs().literal(&output(&lab, number)).unwrap().unwrap())
        .collect();
    let mut recipe = RecipeWriter::begin(Vec::new(), &header).unwrap();
    let row = || outputs.iter().map(|it| (it.name.as_str(), &it.digest));
    recipe.row(["1", "/etc"], row()).unwrap();
    recipe.row(["..", ""], row()).unwrap();
    let recipe = LongText::of_bytes(recipe.finish());
    let table =
        storage.tables().publish(&recipe, &LongText::of_bytes(b"{}\n"), None).unwrap().name.short();
    drop(storage);
    lab.run("ce", &["export", "../storage", &table, "../out/"]).exit(0);
    let points = ["points/x=../%2E.%2Fy=", "points/x=1/%2E.%2Fy=%2Fetc"];
    let mut expected = vec!["README.md".to_owned()];
    for point in points {
        for name in ["%", "%2E./d/x", "%2E./link", "%2E.%2F..%2Fevil"] {
            expected.push(format!("{point}/{name}"));
        }
    }
    expected.sort();
    expected.extend(["recipe.ndjson", "table.ndjson"].map(str::to_owned));
    assert_eq!(names(&lab.path("out")), expected);
}

#[test]
fn a_sweep_is_exported_by_its_points() {
    let lab = Lab::task("(mul INPUT('x') INPUT('x'))[0]")
        .file("inputs", "")
        .without("workflow")
        .node("", "sweep", "")
        .file("workflow/factors/00-a", "2\n3\n")
        .file("workflow/factors/01-b", "5\n")
        .call("inputs/00-body/", "mul", &["a", "b"])
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let jobs = lab.results().into_keys().find(|name| name.starts_with("t_")).unwrap();
    lab.run("ce", &["export", "../storage", &jobs, "../out"]).exit(0);
    let dir = lab.path("out");
    let expected =
        ["README.md", "points/a=2/b=5/product", "points/a=3/b=5/product", "table.ndjson"];
    assert_eq!(names(&dir), expected);
    assert_eq!(fs::read_to_string(dir.join(expected[2])).unwrap(), "15\n");
}

#[test]
fn names_that_the_storage_lacks_come_from_the_repository_or_are_numbers() {
    let lab = made();
    let name = output(&lab, "00");
    assert!(!lab.path("storage/trees").exists(), "only isolated calls need a tree");
    lab.run("ce", &["export", "../storage", &name, "../out"]).exit(0);
    assert_eq!(names(&lab.path("out")), ["README.md", "plots/d/x", "plots/link", "text"]);
    let mut elsewhere = lab.command("ce");
    elsewhere.current_dir(lab.path("data")).args(["export", "../storage", &name, "../bare"]);
    lab.finish(&mut elsewhere).exit(0);
    assert_eq!(names(&lab.path("bare")), ["00", "01/d/x", "01/link", "README.md"]);
}

#[test]
fn an_input_that_is_passed_up_has_its_name_which_records_tell_unless_another_one_is_equal() {
    for (y, name) in [("6\n", "y"), ("7\n", "00")] {
        let lab = Lab::task("Inputs: 'x', 'y'\nINPUT('y')").data("x", "7\n").data("y", y).commit();
        lab.ce_run(&[]).exit(0);
        let job = lab.results().into_keys().find(|name| name.starts_with("t_task/")).unwrap();
        lab.run("ce", &["export", "../storage", &job, "../out"]).exit(0);
        assert_eq!(names(&lab.path("out")), ["README.md", "y"]);
        // Without the workflow, only the digests of inputs are known.
        let mut elsewhere = lab.command("ce");
        elsewhere.current_dir(lab.path("data")).args(["export", "../storage", &job, "../bare"]);
        lab.finish(&mut elsewhere).exit(0);
        assert!(names(&lab.path("bare")).contains(&name.to_owned()));
    }
}

#[test]
fn definitions_keep_the_names_of_the_commit_of_the_job() {
    let lab = Lab::task("Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))")
        .without("workflow")
        .without("inputs")
        .file(
            "workflow.ce",
            "Inputs: x, y\n\nleft = (add x y)\nright = (add left y)\nquotient = (divmod left y)\n\
             sizes = (list y)\neach = SWEEP((mul left n) sizes :names 'n')\n\n\
             ALL(quotient right each)\n",
        )
        .computation("list", "y", "points", r#"(echo n; cat "$1") >"$2""#)
        .commit();
    lab.ce_run(&["--no-sync"]).exit(0);
    let job = lab.results().into_keys().find(|name| name.starts_with("t_")).unwrap();
    let lab = lab.file("workflow.ce", "Inputs: x, y\n\nother = (add x y)\nother\n").commit_again();
    let export = ["export", "--all", "../storage", &job];
    lab.run("ce", &[&export[..], &["../out"]].concat()).exit(0);
    let names_of = |dir: &str| {
        let mut names = names(&lab.path(dir));
        for name in &mut names {
            if let [_, maker, inputs, _] = name.split('/').collect::<Vec<_>>()[..]
                && name.starts_with("intermediate")
            {
                *name = name.replace(&format!("{maker}/{inputs}"), &format!("{maker}/INPUTS"));
            }
        }
        names.sort();
        names
    };
    let expected = [
        "README.md",
        "each-points/n=5/product",
        "each.ndjson",
        "intermediate/left/INPUTS/sum",
        "intermediate/mul/INPUTS/product",
        "intermediate/quotient/INPUTS/quotient",
        "intermediate/quotient/INPUTS/remainder",
        "intermediate/right/INPUTS/sum",
        "intermediate/sizes/INPUTS/points",
        "quotient-quotient",
        "quotient-remainder",
        "right",
    ];
    assert_eq!(names_of("out"), expected);
    let page = fs::read_to_string(lab.path("out/README.md")).unwrap();
    let section = "## `right`\n";
    let section = &page[page.find(section).unwrap()..];
    let named =
        section.find("- in the workflow: `right`\n- made by: computation `add`, output 00\n");
    assert!(named.is_some_and(|at| !section[3..at].contains("##")), "{page}");
    let cited = lab.run("ce", &["cite", "../storage", &job]).exit(0).stdout;
    assert!(cited.starts_with("Output quotient of task task, "), "{cited}");
    let last = job.replace("/00/", "/02/");
    let cited = lab.run("ce", &["cite", "../storage", &last]).exit(0).stdout;
    assert!(cited.starts_with("Output sum of right of task task, "), "{cited}");
    // Another repository does not know the commit.
    let mut elsewhere = lab.command("ce");
    elsewhere.current_dir(lab.path("data")).args(export).arg("../bare");
    lab.finish(&mut elsewhere).exit(0);
    let bare = names_of("bare");
    assert!(bare.contains(&"intermediate/add/INPUTS/00".to_owned()), "{bare:?}");
    assert!(bare.contains(&"points/n=5/product".to_owned()), "{bare:?}");
}
