//! The environment tells each call its files, texts and resources by their names.

use std::collections::BTreeMap;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::Running;

/// The text of a task whose computation prints its environment.
fn text(resources: &str) -> String {
    let call = format!("(told x 'a b' TEXT('one' 'two') TEXT() (parts){resources})");
    format!(
        "Inputs: x\n\nparts: -> parts/\n    echo 1 > \"$out_parts/n\"\n\n\
         told: number.txt 'a name' lines none parts/ -> all env/ it.tsv\n    \
         cat \"$in_number_txt\" \"$in_parts/n\" > \"$out_it_tsv\"\n    \
         echo \"$text_number_txt\" > \"$out_env\"/text\n    env | sort > \"$out_all\"\n\n{call}[all]\n"
    )
}

fn lab(resources: &str) -> Lab {
    Lab::task("Inputs: 'x'\nINPUT('x')").one_text(&text(resources))
}

/// The variables that a call has seen.
fn told(lab: &Lab) -> BTreeMap<String, String> {
    let name =
        lab.results().into_keys().find(|name| name.starts_with("c_told/") && name.contains("/00/"));
    let lines = lab.stored(&name.unwrap());
    let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.into(), value.into()));
    lines.lines().filter_map(pair).collect()
}

#[test]
fn a_call_finds_its_files_and_texts_by_their_names() {
    for isolated in [true, false] {
        let lab = if isolated { lab("").isolated() } else { lab("") }.commit();
        lab.ce_run(&["--no-sync"]).exit(0);
        let told = told(&lab);
        let value = |name: &str| told.get(name).map(String::as_str);
        assert_eq!(value("text_number_txt"), Some("17"));
        assert_eq!(value("text_a_name"), Some("a b"));
        assert_eq!(value("text_lines"), None, "two lines are no text");
        assert_eq!(value("text_none"), Some(""));
        assert_eq!(value("text_parts"), None);
        assert_eq!(value("CE_CPUS"), None);
        let names = ["in_number_txt", "in_a_name", "in_lines", "in_none", "in_parts"];
        let paths: Vec<&str> = names.iter().map(|name| value(name).unwrap()).collect();
        if isolated {
            let expected =
                ["/inputs/00.txt", "/inputs/01", "/inputs/02", "/inputs/03", "/inputs/04"];
            assert_eq!(paths, expected);
            let outputs = ["out_all", "out_env", "out_it_tsv"].map(|name| value(name).unwrap());
            assert_eq!(outputs, ["/outputs/00", "/outputs/01", "/outputs/02.tsv"]);
        } else {
            assert!(paths.iter().all(|path| path.starts_with('/')), "{paths:?}");
            assert!(paths[0].ends_with(".txt") && value("out_it_tsv").unwrap().ends_with(".tsv"));
        }
        assert!(lab.results().values().any(|contents| contents == b"17\n1\n"));
    }
}

#[test]
fn a_call_is_told_the_resources_that_it_asks_for() {
    for isolated in [true, false] {
        let resources = " :resources 'cpus 2' 'memory 1G'";
        let lab = if isolated { lab(resources).isolated() } else { lab(resources) }.commit();
        let mut run = lab.evaluation(&["--no-sync", "-j2"]);
        run.env("CE_GPUS", "7").env("GOMAXPROCS", "9");
        lab.finish(&mut run).exit(0);
        let told = told(&lab);
        let value = |name: &str| told.get(name).map(String::as_str);
        assert_eq!(value("CE_CPUS"), Some("2"));
        assert_eq!(value("CE_MEMORY"), Some("1073741824"));
        assert_eq!(value("CE_GPUS"), None);
        for name in ["OMP_NUM_THREADS", "GOMAXPROCS", "RAYON_NUM_THREADS"] {
            assert_eq!(value(name), Some("2"), "{name}");
        }
        // Without a number of processors, a program has as many threads as it wants.
        let lab = lab.one_text(&text("")).commit_again();
        lab.ce_run(&["--no-sync", "--force", "told"]).exit(0);
    }
}

#[test]
fn granted_variables_of_threads_stay_as_they_are() {
    let granted = text(" :resources 'cpus 2'")
        .replace("    cat", "    #CE access env OMP_NUM_THREADS\n    cat");
    let lab = lab("").isolated().one_text(&granted).commit();
    let mut run = lab.evaluation(&["--no-sync", "-j2"]);
    lab.finish(run.env("OMP_NUM_THREADS", "5")).exit(0);
    let told = told(&lab);
    assert_eq!(told["OMP_NUM_THREADS"], "5");
    assert_eq!(told["OPENBLAS_NUM_THREADS"], "2");
}

#[test]
fn workers_tell_the_same() {
    let lab = lab(" :resources 'cpus 2'").isolated().commit().with_storage();
    let mut worker = lab.command("ce");
    let worker = Running::start(worker.args(["worker", "-j2", "--idle", "10h", "../storage"]));
    worker.wait_until_it_catches(Signal::TERM);
    lab.ce_run(&["--no-sync", "--on", "workers"]).exit(0);
    worker.signal(Signal::TERM);
    worker.output();
    let told = told(&lab);
    assert_eq!(told["text_number_txt"], "17");
    assert_eq!(told["in_a_name"], "/inputs/01");
    assert_eq!(told["CE_CPUS"], "2");
}

#[test]
fn somebody_who_looks_into_a_call_has_the_same_names() {
    let lab = lab(" :resources 'cpus 2'").isolated().commit();
    lab.ce_run(&["--no-sync", "-j2"]).exit(0);
    let call = lab.results().into_keys().find(|name| name.starts_with("c_told/")).unwrap();
    let parts: Vec<&str> = call.split('/').collect();
    let call = [parts[0], parts[1], parts[3]].join("/");
    let script = "echo $text_number_txt $in_parts $CE_CPUS; cat $in_parts/n; ls -d $out_env";
    let ran = lab.run("ce", &["shell", "../storage", &call, "--", "sh", "-c", script]).exit(0);
    assert_eq!(ran.stdout, "17 /inputs/04 2\n1\n/outputs/01\n");
}

#[test]
fn names_that_would_be_one_variable_are_told() {
    let lab = Lab::task("Inputs: 'x'\n(twins INPUT('x') INPUT('x'))");
    let lab = lab.computation("twins", "a.b a-b", "c", "env >\"$3\"").commit();
    let ran = lab.run("ce", &["check"]).exit(0);
    ran.says(
        "warning: computations/twins: \"a.b\" and \"a-b\" would be one variable of the environment",
    );
    lab.ce_run(&["--no-sync"]).exit(0);
    let names = lab.results().into_iter().find(|(name, _)| name.starts_with("c_twins/")).unwrap().1;
    let names = String::from_utf8(names).unwrap();
    assert!(!names.contains("in_a_b=") && names.contains("out_c="), "{names}");
}

#[test]
fn a_variable_has_the_paths_of_inputs_that_access_sets() {
    let set = "    #CE access set DATA parts/n\n    #CE access set DATA number.txt\n    #CE access set ALL parts\n    cat";
    for isolated in [true, false] {
        let lab = lab("").one_text(&text("").replace("    cat", set));
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        let mut run = lab.evaluation(&["--no-sync"]);
        lab.finish(run.env("DATA", "/elsewhere")).exit(0);
        let told = told(&lab);
        assert_eq!(told["DATA"], format!("{}/n:{}", told["in_parts"], told["in_number_txt"]));
        assert_eq!(told["ALL"], told["in_parts"]);
    }
}
