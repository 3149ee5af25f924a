//! Inputs and outputs whose names have suffixes have paths that end in them.

use std::fs;

use rustix::process::Signal;

use crate::lab::Lab;
use crate::program::Running;

/// `pack` makes a file, a directory and a plain file; `unpack` reads the first two by programs that look at suffixes.
const TEXT: &str =
    "Inputs: notes\n\npacked = (pack notes)\n\n(unpack packed[0] packed[1] packed[2])\n";

/// Refuses paths that end otherwise.
const ENDS: &str =
    "ends() { case $1 in *[0-9]\"$2\") ;; *) echo \"$1 does not end in $2\"; exit 3 ;; esac; }\n";

fn script(head: &str, code: &str) -> String {
    format!("#!/bin/sh\n{head}\n{ENDS}{code}\n")
}

fn lab() -> Lab {
    let pack = r#"ends "$1" .txt; ends "$2" .txt.gz; ends "$3" .zarr; ends "$4" ""
        cp "$1" "${2%.gz}"; gzip -n "${2%.gz}"; echo 1 >"$3/0"; echo plain >"$4""#;
    let unpack = r#"ends "$1" .txt.gz; ends "$2" .zarr; ends "$3" ""; ends "$4" .txt
        gzip -dc "$1" >"$4"; cat "$2/0" "$3" >>"$4""#;
    let pack = script("#CE inputs notes.txt\n#CE outputs packed.txt.gz cells.zarr/ plain", pack);
    let unpack = script("#CE inputs packed.txt.gz cells.zarr plain\n#CE outputs text.txt", unpack);
    let lab = Lab::empty().file("workflow.ce", TEXT).data("notes", "notes\n");
    let lab = lab.file("computations/pack", pack).mode("computations/pack", 0o755);
    lab.file("computations/unpack", unpack).mode("computations/unpack", 0o755)
}

#[test]
fn input_and_output_files_have_their_suffixes_everywhere() {
    for (isolated, on_workers) in [(false, false), (true, false), (false, true), (true, true)] {
        let lab = if isolated { lab().isolated() } else { lab() }.commit().with_storage();
        let data = lab.path("data/notes");
        let mut options = vec!["--no-sync", "--quiet"];
        options.extend(on_workers.then_some(["--on", "workers"]).into_iter().flatten());
        let worker = on_workers.then(|| {
            let mut worker = lab.command("ce");
            worker.args(["worker", "--idle", "10h", "../storage"]);
            let worker = Running::start(worker.args((!isolated).then_some("--no-isolate")));
            worker.wait_until_it_catches(Signal::TERM);
            worker
        });
        let mut run = lab.evaluation(&options);
        let ran = lab.finish(run.arg(&data)).exit(0);
        let name = ran.stdout.trim().to_owned();
        assert_eq!(fs::read_to_string(lab.path("task").join(&name)).unwrap(), "notes\n1\nplain\n");
        // The names in the storage have none.
        assert!(lab.storage().iter().all(|name| !name.contains(".gz") && !name.contains(".zarr")));
        if let Some(worker) = worker {
            worker.signal(Signal::TERM);
            worker.output();
        }
        assert!(lab.is_tidy());
        if isolated {
            lab.run("ce", &["audit", "../storage"]).exit(0).says("2 agree");
            let command = ["sh", "-c", "ls /inputs; zcat /inputs/00.txt.gz"];
            let shell = [&["shell", "../storage", "unpack", "--"], &command[..]].concat();
            let seen = lab.run("ce", &shell).exit(0).stdout;
            assert_eq!(seen, "00.txt.gz\n01.zarr\n02\nnotes\n");
        }
        // A user who gets them as files of a study sees their types.
        lab.run("ce", &["export", "../storage", &name, "../out"]).exit(0);
        assert!(lab.path("out/text.txt").is_file());
    }
}

#[test]
fn columns_of_a_sweep_have_suffixes_only_to_tell_outputs_apart() {
    let code = r#"echo "$(cat "$1")" | tee "$2" >"$3""#;
    for (outputs, columns) in
        [("one.txt other.json", ["one", "other"]), ("one.txt one.json", ["one.txt", "one.json"])]
    {
        let task = "Inputs:\n\nSWEEP((double i) :over i '1' '2')\n";
        let double = script(&format!("#CE inputs i\n#CE outputs {outputs}"), code);
        let lab = Lab::empty().file("workflow.ce", task).file("computations/double", double);
        let lab = lab.mode("computations/double", 0o755).commit();
        let name = lab.ce_run(&["--no-sync", "--quiet"]).exit(0).stdout;
        let table = fs::read_to_string(lab.path("task").join(name.trim())).unwrap();
        let [one, other] = columns;
        let row = |i| format!("{{\"i\":{i},\"{one}\":{i},\"{other}\":{i}}}\n");
        assert_eq!(table, [row(1), row(2)].concat());
    }
}

#[test]
fn without_isolation_a_file_without_the_suffix_is_not_an_output() {
    for (code, exit) in
        [(r#"cat "$1" >"${2%.txt}""#, 1), (r#"cat "$1" >"$2"; mkdir "${2%.txt}""#, 0)]
    {
        let copy = script("#CE inputs i\n#CE outputs copy.txt", code);
        let lab = Lab::empty().file("workflow.ce", "Inputs:\n\n(copy 'text')\n");
        let lab = lab.file("computations/copy", copy).mode("computations/copy", 0o755).commit();
        let ran = lab.ce_run(&["--no-sync"]).exit(exit);
        assert_eq!(
            ran.stderr.contains("made no output 00 (copy.txt)"),
            exit == 1,
            "{}",
            ran.stderr
        );
    }
}
