//! Directories and files of the storage that are replaced while a run needs them: a computation reads and executes the
//! files that were found, or its call fails without a record.

use std::process::Command;

use crate::isolation;
use crate::lab::Lab;

/// The changes of the storage by the call of `swap`, which the next call must not believe.
const TASK: &str = "Inputs: 'x', 'y'\n(mul (swap (mul INPUT('x') INPUT('y'))[0])[0] (mul INPUT('x') INPUT('y'))[0])[0]";

/// Puts a link to a foreign copy of a directory in its place: files of the same size and time.
const FOREIGN: &str = r#"
foreign() {
    mv "$1" "$1.moved"
    cp -Rp "$1.moved" "$1.foreign"
    chmod -R u+w "$1.foreign"
    find "$1.foreign" -type f ! -name '*.json' | while read -r file; do
        case $file in
        */exec) sed 's/\*/+/' ;;
        *) tr 0-9 9 ;;
        esac <"$file" >"$S/../new"
        touch -r "$file" "$S/../new"
        cat "$S/../new" >"$file"
        touch -r "$S/../new" "$file"
    done
    ln -s "$1.foreign" "$1"
}
"#;

/// A laboratory in which `swap` does this once, and passes its input on.
fn lab(isolated: bool, script: &str) -> Lab {
    let lab = Lab::task(TASK);
    let root = lab.path("").to_str().unwrap().trim_end_matches('/').to_owned();
    let script = format!(
        "S={root}/storage\n{FOREIGN}\n[ -e $S/../done ] || {{ {script}; }}\n\
         : >$S/../done\ncat \"$1\" >\"$2\""
    );
    let lab = lab.computation("swap", "a", "b", &script);
    if !isolated {
        return lab.commit();
    }
    lab.file("computations/swap/access", format!("write {root}\n")).isolated().commit()
}

/// Puts everything back that `foreign` has moved.
const UNDO: &str = r#"
find . -name '*.moved' | while read -r moved; do
    rm -rf "${moved%.moved}" "${moved%.moved}.foreign"
    mv "$moved" "${moved%.moved}"
done"#;

/// The messages of a call that needed something that is not there any more.
const WORDS: [&str; 3] = [
    "was replaced while it was needed",
    "was changed or removed while it was needed",
    "is a symbolic link, or behind one",
];

/// Evaluates while `swap` does this, which fails, and again after it was undone.
fn fails(isolated: bool, script: &str) {
    let lab = lab(isolated, script);
    let ran = lab.ce_run(&["--no-sync", "-j1"]);
    assert_eq!(ran.status.code(), Some(5), "{script}: {}", ran.stderr);
    assert!(WORDS.iter().any(|words| ran.stderr.contains(words)), "{script}: {}", ran.stderr);

    let mut undo = Command::new("sh");
    undo.args(["-c", UNDO]).current_dir(lab.path("storage"));
    assert!(undo.status().unwrap().success());
    lab.run("ce", &["verify", "../storage"]).exit(0);
    assert!(lab.storage().iter().all(|name| !name.contains("/failed/")), "{script}");
    lab.ce_run(&["--no-sync"]).exit(0);
    assert_eq!(lab.output(), "7225\n", "{script}");
}

/// The swaps that concern inputs.
const INPUTS: [&str; 3] = [
    r#"foreign "$(ls -d $S/c_mul/*/00)""#,
    "foreign $S/c_mul",
    // The output of this call is another one's input.
    "foreign $S/c_swap",
];

#[test]
fn an_input_behind_a_swapped_directory_is_not_read() {
    INPUTS.iter().for_each(|script| fails(false, script));
}

#[test]
fn an_input_behind_a_swapped_directory_is_not_shown_to_a_sandbox() {
    if isolation::is_possible() {
        INPUTS.iter().for_each(|script| fails(true, script));
    }
}

#[test]
fn a_computation_behind_a_swapped_directory_is_not_executed() {
    if isolation::is_possible() {
        for script in ["foreign $S/trees", "for tree in $S/trees/*; do foreign $tree; done"] {
            fails(true, script);
        }
    }
}

#[test]
fn an_input_with_other_contents_is_not_read() {
    let script = r#"
        for file in $S/c_mul/*/00/*; do
            mv $file $file.moved
            echo 1234567 >$file
        done"#;
    for isolated in [false, isolation::is_possible()] {
        fails(isolated, script);
    }
}

#[test]
fn an_input_replaced_by_an_equal_one_is_read() {
    let script = r#"
        for file in $S/c_mul/*/00/*; do
            cp $file $S/../new
            mv -f $S/../new $file
        done"#;
    if isolation::is_possible() {
        let lab = lab(true, script);
        lab.ce_run(&["--no-sync", "-j1"]).exit(0);
        assert_eq!(lab.output(), "7225\n");
    }
}
