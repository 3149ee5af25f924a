//! The view that computations have of directories that they are given.

use std::fs;

use serde_json::Value;

use super::{entries, is_sound, stored, values};
use crate::isolation;
use crate::lab::Lab;
use crate::needs::needs;

/// A sandbox shows directories that cannot be changed, through any path or descriptor.
#[test]
fn an_input_cannot_be_changed() {
    if !isolation::is_possible() {
        return;
    }
    let try_all = r#"
import os, sys
dir, out = sys.argv[1], sys.argv[2]
top = os.open(dir, os.O_RDONLY)
tries = {
    'create': lambda: open(dir + '/new', 'w'),
    'write': lambda: open(dir + '/d/f', 'w'),
    'chmod': lambda: os.chmod(dir + '/d/f', 0o777),
    'chmod top': lambda: os.chmod(dir, 0o777),
    'chmod descriptor': lambda: os.fchmod(top, 0o777),
    'times': lambda: os.utime(dir + '/d/f', (0, 0)),
    'remove': lambda: os.remove(dir + '/d/f'),
    'rename': lambda: os.rename(dir + '/d', dir + '/e'),
    'rename out': lambda: os.rename(dir + '/d', out + '/d'),
    'link': lambda: os.link(dir + '/d/f', out + '/f'),
    'link here': lambda: os.link(dir + '/d/f', dir + '/g'),
    'rmdir': lambda: os.rmdir(dir),
    'descriptor': lambda: os.open('new', os.O_CREAT | os.O_WRONLY, dir_fd=top),
    'proc': lambda: open('/proc/self/fd/%d/new' % top, 'w'),
    'proc file': lambda: open('/proc/self/fd/%d' % os.open(dir + '/d/f', os.O_RDONLY), 'w'),
    'root': lambda: open('/proc/self/root' + dir + '/new', 'w'),
    'other output': lambda: open('/proc/self/cwd/../' + dir + '/d/f', 'w'),
}
done = []
for name, act in tries.items():
    try:
        act()
        done.append(name)
    except OSError:
        pass
print('done', done)
open(out + '/done', 'w').write(' '.join(done))"#;
    needs(&["python3"]);
    let try_all = format!("python3 - \"$1\" \"$2\" <<'END'{try_all}\nEND");
    let lab = Lab::task("Inputs: 'x'\n(attack (make INPUT('x'))[0])[0]")
        .computation("make", "a", "tree/", r#"mkdir "$2/d"; cp "$1" "$2/d/f"; chmod 777 "$2/d/f""#)
        .computation("attack", "tree", "done/", &try_all)
        .isolated()
        .commit();
    lab.ce_run(&[]).exit(0).says("2 computed");
    let done = stored(&lab, &values(&lab, "c_attack/")[0]);
    assert_eq!(entries(&done), ["file 444 done "]);
    lab.ce_run(&[]).exit(0).says("2 reused");
    is_sound(&lab);
}

/// One launcher executes calls whose inputs are files and directories at the same places in turn.
#[test]
fn mount_points_change_between_files_and_directories() {
    let text = "Inputs: 'f', 'd'
        (tell (tell INPUT('f') INPUT('d') INPUT('f'))[0]
              (pair (one INPUT('d'))[0] (tell INPUT('d') INPUT('f') INPUT('d'))[0] (none)[0])[1]
              (tell INPUT('d') INPUT('d') (two INPUT('f') INPUT('d'))[1])[0])[0]";
    let show = r#"show() { [ -d "$1" ] && echo "dir $(ls "$1")" || echo "file $(wc -l <"$1")"; }"#;
    let tell = format!("{show}\nfor i in \"$1\" \"$2\" \"$3\"; do show \"$i\"; done >\"$4\"");
    let make = || {
        let lab = Lab::task(text)
            .computation("tell", "a b c", "all", &tell)
            .computation("one", "a", "tree/", r#"cp -r "$1" "$2/in""#)
            .computation("two", "a b", "file tree/", r#"cp "$1" "$3"; cp -r "$2/." "$4""#)
            .computation("none", "", "tree/", r#"echo >"$1/n""#)
            .computation(
                "pair",
                "a b c",
                "x/ y/",
                r#"[ -d "$1" ] && [ -f "$2" ] && [ -d "$3" ] && cp "$2" "$5/t""#,
            )
            .commit();
        let dir = lab.path("data/d");
        fs::remove_file(&dir).unwrap();
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("in"), "in\n").unwrap();
        lab
    };
    super::each_way(make, |lab| {
        lab.ce_run(&["-j1"]).exit(0).says("8 computed");
        assert_eq!(lab.output(), "file 3\ndir t\nfile 3\n");
        lab.ce_run(&["-j4"]).exit(0).says("8 reused");
        lab.called();
        is_sound(&lab);
        fs::rename(lab.path("storage"), lab.path("first")).unwrap();
        lab.ce_run(&["-j4"]).exit(0).says("8 computed");
        assert_eq!(lab.output(), "file 3\ndir t\nfile 3\n");
        lab.called();
    });
}

/// An output is empty when `exec` starts, also at a second attempt.
#[test]
fn a_failed_attempt_leaves_nothing_for_the_next() {
    let script = r#"[ -z "$(ls -A "$2")" ] && [ -z "$(ls -A .)" ] || exit 9
        echo 1 >"$2/f"; mkdir "$2/d"; chmod 0 "$2/d" "$2"; [ -e "$LAB_LOG.second" ] || { >"$LAB_LOG.second"; exit 1; }"#;
    let lab = super::made_by(script).commit();
    lab.ce_run(&["--retry=1"]).exit(0).called(vec!["make", "make"]);
    assert_eq!(entries(&super::output(&lab)), ["dir 500 d", "file 444 f 1\\n"]);
    is_sound(&lab);
}

/// Records and events mark directories, and nothing else changes.
#[test]
fn records_and_events_tell_directories_apart() {
    let text = "Inputs: 'x', 'y'\n(add (count (make INPUT('x'))[0])[0] INPUT('y'))[0]";
    let lab = Lab::task(text)
        .computation("make", "a", "tree/", r#"cp "$1" "$2/f""#)
        .computation("count", "tree", "n", r#"ls "$1" | wc -l >"$2""#)
        .commit();
    lab.ce_run(&[]).exit(0).called(vec!["add", "count", "make"]);
    let formats = |prefix: &str| -> Vec<Value> {
        super::records(&lab, prefix).iter().map(|record| record["format"].clone()).collect()
    };
    // One names a directory as its output, one as its input.
    assert_eq!((formats("c_make/"), formats("c_count/")), (vec![2.into()], vec![2.into()]));
    assert_eq!((formats("c_add/"), formats("t_")), (vec![1.into()], vec![1.into()]));
    assert_eq!(formats("tinputs/"), [1, 1]);
    let outputs = super::records(&lab, "c_make/").remove(0)["outputs"][0].clone();
    let fields: Vec<&String> = outputs.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["blake3", "bytes", "sha1", "size", "stamp"]);
    let file = super::records(&lab, "c_count/").remove(0)["outputs"][0].clone();
    let fields: Vec<&String> = file.as_object().unwrap().keys().collect();
    assert_eq!(fields, ["blake3", "modified_ns", "sha1", "size"]);
    for line in lab.ce_run(&["--json"]).exit(0).lines() {
        serde_json::from_str::<Value>(line).unwrap();
    }
}
