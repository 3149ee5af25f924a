//! The entries that a computation may leave in a directory, and what becomes of them.

use std::fs;
use std::os::unix::fs::MetadataExt;

use super::{each_way, entries, is_sound, made_by, output, records, values};
use crate::fifo::{Fifo, Never};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::{Ran, Running};

#[test]
fn all_entries_of_a_directory_are_published_read_only() {
    let script = r#"set -e; cd "$2"
        mkdir -p a/b/c empty/deep; echo 1 >a/b/c/one; echo 2 >top
        printf '#!/bin/sh\n' >run; chmod 750 run; chmod 4711 top
        ln -s a/b/c/one link; ln -s ../../top a/b/up; ln -s nowhere dangling; ln -s . self
        ln a/b/c/one a/again
        touch "$(printf 'n\nl')" "$(printf '\377\376')" ' s p ' ./-rf '*' '\' .hidden"#;
    let make = || made_by(script).commit();
    each_way(make, |lab| {
        lab.ce_run(&[]).exit(0).says("1 computed");
        lab.called();
        let dir = output(&lab);
        let names = entries(&dir);
        assert_eq!(
            names,
            [
                "file 444 \\x20s\\x20p\\x20 ".replace("\\x20", " "),
                "file 444 * ".to_owned(),
                "file 444 -rf ".to_owned(),
                "file 444 .hidden ".to_owned(),
                "file 444 \\\\ ".to_owned(),
                "dir 555 a".to_owned(),
                "file 444 a/again 1\\n".to_owned(),
                "dir 555 a/b".to_owned(),
                "dir 555 a/b/c".to_owned(),
                "file 444 a/b/c/one 1\\n".to_owned(),
                "link a/b/up -> ../../top".to_owned(),
                "link dangling -> nowhere".to_owned(),
                "dir 555 empty".to_owned(),
                "dir 555 empty/deep".to_owned(),
                "link link -> a/b/c/one".to_owned(),
                "file 444 n\\nl ".to_owned(),
                "file 550 run #!/bin/sh\\n".to_owned(),
                "link self -> .".to_owned(),
                "file 511 top 2\\n".to_owned(),
                "file 444 \\xff\\xfe ".to_owned(),
            ]
        );
        assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o555);
        lab.ce_run(&[]).exit(0).called(vec![]).says("1 reused");
        lab.ce_run(&["-q"]).exit(0).called(vec![]);
        is_sound(&lab);
        let records = records(&lab, "");
        let formats: Vec<_> =
            records.iter().map(|it| (it["computation"].is_string(), &it["format"])).collect();
        assert_eq!(formats, [(true, &2.into()), (false, &2.into()), (false, &1.into())]);
        let output = &records[0]["outputs"][0];
        assert_eq!(output["bytes"], 2 + 2 + 2 + 10, "{output}");
    });
    // An empty directory is a value.
    each_way(
        || made_by("true").commit(),
        |lab| {
            lab.ce_run(&[]).exit(0);
            assert!(entries(&output(&lab)).is_empty());
            lab.ce_run(&[]).exit(0).says("1 reused");
            is_sound(&lab);
        },
    );
}

#[test]
fn modes_without_permissions_do_not_stop_publishing() {
    let script = r#"cd "$2" && mkdir -p shut/in open && echo 1 >shut/in/f && echo 2 >open/f &&
        chmod 0 shut/in/f shut/in shut open/f && chmod 0 . "#;
    let make = || made_by(script).commit();
    each_way(make, |lab| {
        lab.ce_run(&[]).exit(0);
        assert_eq!(
            entries(&output(&lab)),
            [
                "dir 555 open",
                "file 400 open/f 2\\n",
                "dir 500 shut",
                "dir 500 shut/in",
                "file 400 shut/in/f 1\\n"
            ]
        );
        lab.ce_run(&[]).exit(0).says("1 reused");
        is_sound(&lab);
    });
}

/// A file that somebody could change through another name is copied; the other one stays as it was.
#[test]
fn a_hard_link_to_something_outside_becomes_a_copy() {
    let lab = made_by(
        r#"ln "$DECOY" "$2/linked"; ln "$DECOY" "$2/twice"; mkdir "$2/d"; ln "$DECOY" "$2/d/e"; echo x >"$2/.compeval-copy""#,
    );
    let lab = lab.data("decoy", "mine\n").commit();
    let decoy = lab.path("data/decoy");
    let mut command = lab.evaluation(&[]);
    lab.finish(command.env("DECOY", &decoy)).exit(0);
    let metadata = fs::metadata(&decoy).unwrap();
    assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o644, 1), "it is as it was");
    fs::write(&decoy, "changed\n").unwrap();
    let all = [
        "file 444 .compeval-copy x\\n",
        "dir 555 d",
        "file 444 d/e mine\\n",
        "file 444 linked mine\\n",
        "file 444 twice mine\\n",
    ];
    assert_eq!(entries(&output(&lab)), all);
    is_sound(&lab);
}

/// Two outputs that share a file do so no longer.
#[test]
fn a_file_of_two_outputs_is_two_files() {
    let text = "Inputs: 'x'\n(make INPUT('x'))[0, 1, 2]";
    let script = r#"echo 1 >"$2/f"; ln "$2/f" "$3/f"; ln "$2/f" "$4""#;
    let make = || Lab::task(text).computation("make", "a", "one/ other/ file", script).commit();
    each_way(make, |lab| {
        let ran = lab.ce_run(&["-q"]).exit(0);
        let paths: Vec<_> = ran.lines().iter().map(|line| lab.path("task").join(line)).collect();
        let inodes = [paths[0].join("f"), paths[1].join("f"), paths[2].clone()];
        let inodes = inodes.map(|path| fs::metadata(path).unwrap());
        assert_ne!(inodes[0].ino(), inodes[1].ino());
        assert_ne!(inodes[1].ino(), inodes[2].ino());
        is_sound(&lab);
    });
}

#[test]
fn sparse_files_are_published_sparse() {
    let make = || made_by(r#"truncate -s 40000001 "$2/holes"; truncate -s 3M "$2/small""#).commit();
    each_way(make, |lab| {
        lab.ce_run(&[]).exit(0);
        let holes = fs::metadata(output(&lab).join("holes")).unwrap();
        assert_eq!(holes.len(), 40_000_001);
        assert!(holes.blocks() * 512 < 1 << 20, "{} blocks", holes.blocks());
        is_sound(&lab);
    });
}

#[test]
fn a_deeply_nested_directory_is_published() {
    needs(&["python3"]);
    let script = r#"exec python3 - "$2" <<'END'
import os, sys
os.chdir(sys.argv[1])
for _ in range(5000):
    os.mkdir('d' * 200)
    os.chdir('d' * 200)
open('f', 'w').write('1')
END"#;
    let make = || made_by(script).commit();
    each_way(make, |lab| {
        lab.ce_run(&[]).exit(0);
        lab.ce_run(&[]).exit(0).says("1 reused");
        is_sound(&lab);
        let all = ["gc", "--delete", "--older=0s", "--no-keep", "../storage"];
        lab.run("ce", &all).exit(0);
        assert_eq!(values(&lab, ""), [""; 0]);
    });
}

/// A process that goes on has a file open, and writes to it while the next call is executed.
#[test]
fn a_directory_that_may_still_be_written_to_is_copied() {
    let leave = r#"
        exec 3>"$LAB_MEET"
        mkfifo left
        mkdir "$2/d"; echo before >"$2/d/f"; ln -s d/f "$2/l"; ln "$2/d/f" "$2/g"; chmod 710 "$2/g"
        setsid sh -c '
            exec 4>>"$1/d/f"; echo >left
            read -r go <"$LAB_GO"
            echo after >&4; mkdir "$1/new"; echo written >&3
            cat "$LAB_WAIT"' sh "$2" &
        read -r escaped <left"#;
    let next = r#"
        exec 3>"$LAB_MEET"; echo next >&3
        read -r on <"$LAB_ON"; cat "$1/l" "$1/g" >"$2""#;
    let lab = Lab::task("Inputs: 'x'\n(next (leave INPUT('x'))[0])[0]")
        .computation("leave", "a", "tree/", leave)
        .computation("next", "tree", "all", next)
        .commit();
    let mut command = lab.evaluation(&[]);
    let fifos = [("LAB_MEET", "meet"), ("LAB_GO", "go"), ("LAB_ON", "on"), ("LAB_WAIT", "wait")];
    command.envs(fifos.map(|(name, path)| (name, lab.path(path))));
    let fifo = Fifo::new(&lab.path("meet"));
    let nevers = ["go", "on", "wait"].map(|path| Never::new(lab.path(path)));
    let running = Running::start(&mut command);
    assert_eq!(fifo.line(), "next");
    fs::write(lab.path("go"), "go\n").unwrap();
    assert_eq!(fifo.line(), "written");
    fs::write(lab.path("on"), "on\n").unwrap();
    Ran::new(&lab, running.output()).exit(0);
    fifo.end();
    drop(nevers);
    assert_eq!(lab.output(), "before\nbefore\n");
    let made = values(&lab, "c_leave/").remove(0);
    let all = ["dir 555 d", "file 555 d/f before\\n", "file 555 g before\\n", "link l -> d/f"];
    assert_eq!(entries(&lab.path("storage").join(made)), all);
    lab.ce_run(&[]).exit(0).says("2 reused");
    is_sound(&lab);
}

/// A user who asks to stop gets the call that has just ended, as with files, and no failure.
#[test]
fn a_call_that_ends_while_the_run_is_interrupted_has_not_failed() {
    for (output, script) in [("file", r#"echo 1 >"$2""#), ("tree/", r#"echo 1 >"$2/f""#)] {
        let script = format!(
            "trap 'told=1' TERM; kill -INT $PPID; until [ \"$told\" ]; do :; done\n{script}"
        );
        let lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]")
            .computation("make", "a", output, &script)
            .commit();
        lab.ce_run(&[]).exit(130).says("1 call: 1 computed");
        is_sound(&lab);
    }
}
