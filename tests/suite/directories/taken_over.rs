//! Directories that were made for another commit: a link leads to the maker's.

use std::fs;
use std::os::unix::fs::symlink;

use super::{entries, is_sound, output, stored, values, within, write_over};
use crate::isolation;
use crate::lab::Lab;
use crate::program::Ran;

const TASK: &str = "Inputs: 'x'\n(read (make INPUT('x'))[0])[0]";

/// A laboratory with a task that was evaluated, in a sandbox, and one more commit. `None` where nothing can
/// be isolated.
fn evaluated() -> Option<Lab> {
    if !isolation::is_possible() {
        return None;
    }
    let lab = Lab::task(TASK)
        .computation("make", "a", "tree/", r#"mkdir "$2/d"; cp "$1" "$2/d/f""#)
        .computation("read", "tree", "all", r#"cat "$1/d/f" >"$2""#)
        .isolated()
        .commit();
    lab.ce_run(&[]).exit(0).says("2 computed");
    Some(next(lab, "one"))
}

fn next(lab: Lab, text: &str) -> Lab {
    lab.file("README", text).commit_again()
}

/// Returns the targets of the links among the outputs of `make`, by their names.
fn links(lab: &Lab) -> Vec<String> {
    let links = values(lab, "c_make/").into_iter().map(|name| stored(lab, &name));
    let links = links.filter(|path| path.is_symlink());
    links.map(|path| fs::read_link(path).unwrap().to_str().unwrap().to_owned()).collect()
}

/// The only output of `make` that is a directory itself.
fn maker(lab: &Lab) -> String {
    let mut makers = values(lab, "c_make/");
    makers.retain(|name| !stored(lab, name).is_symlink());
    assert_eq!(makers.len(), 1, "{makers:?}");
    makers.remove(0)
}

fn gc<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.run("ce", &[&["gc", "--delete", "--older=0s"], options, &["../storage"]].concat())
}

#[test]
fn all_links_lead_to_the_original_directory() {
    let Some(mut lab) = evaluated() else { return };
    let maker = maker(&lab);
    for text in ["two", "three", "four"] {
        lab.unchanged(|| lab.ce_run(&["-n"]).exit(0).says("2 taken over"));
        lab.ce_run(&[]).exit(0).says("2 taken over");
        lab.ce_run(&[]).exit(0).says("2 reused");
        assert_eq!(lab.output(), "17\n");
        is_sound(&lab);
        lab = next(lab, text);
    }
    assert_eq!(links(&lab), vec![format!("../../../{maker}"); 3]);
    // It is as good in another place, and for a computation that reads it.
    let other = lab.path("other/deeply");
    fs::create_dir_all(&other).unwrap();
    fs::rename(lab.path("storage"), other.join("moved")).unwrap();
    symlink(other.join("moved"), lab.path("storage")).unwrap();
    let lab = lab.file("computations/read/notes", "").commit_again();
    lab.ce_run(&[]).exit(0).says("1 taken over, 1 computed");
    is_sound(&lab);
}

#[test]
fn a_damaged_original_is_made_again_once_for_all_links() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let maker = maker(&lab);
    write_over(&stored(&lab, &maker).join("d/f"), "71\n");
    let verify = lab.run("ce", &["verify", "../storage"]).exit(5).says("2 wrong");
    assert_eq!(verify.stdout.matches("d/f was changed").count(), 2, "{}", verify.stdout);
    lab.run("ce", &["verify", "--repair", "../storage"]).exit(5);
    lab.run("ce", &["verify", "../storage"]).exit(0);
    lab.ce_run(&[]).exit(0).says("1 reused, 1 computed");
    lab.ce_run(&[]).exit(0).says("2 reused");
    assert_eq!(lab.output(), "17\n");
    is_sound(&lab);
}

/// Without a repair, a run makes the needed directory under its own name, in the place of the link.
#[test]
fn a_damaged_original_is_not_taken_over() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let maker = maker(&lab);
    write_over(&stored(&lab, &maker).join("d/f"), "71\n");
    lab.ce_run(&[]).exit(0).says("1 reused, 1 computed");
    assert_eq!(links(&lab), [""; 0]);
    lab.ce_run(&[]).exit(0).says("2 reused");
    // The first commit takes it over from there.
    lab.git("task", &["checkout", "-q", "HEAD^"]);
    lab.ce_run(&[]).exit(0).says("1 reused, 1 taken over");
    assert_eq!(links(&lab).len(), 1);
    is_sound(&lab);
}

#[test]
fn a_foreign_link_is_not_followed() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let maker = maker(&lab);
    let link = values(&lab, "c_make/").into_iter().find(|name| *name != maker).unwrap();
    let decoy = lab.path("decoy");
    fs::create_dir_all(decoy.join("d")).unwrap();
    fs::write(decoy.join("d/f"), "17\n").unwrap();
    let before = entries(&decoy);
    let targets = ["../../../../decoy", decoy.to_str().unwrap(), "../../..", ".", "/", "nowhere"];
    for target in targets {
        fs::remove_file(stored(&lab, &link)).unwrap();
        symlink(target, stored(&lab, &link)).unwrap();
        lab.run("ce", &["verify", "../storage"]).exit(5).says("1 wrong");
        lab.ce_run(&["-n"]).exit(0).says("1 reused, 1 taken over");
        lab.ce_run(&[]).exit(0).says("1 reused, 1 taken over");
        is_sound(&lab);
        assert_eq!(
            fs::read_link(stored(&lab, &link)).unwrap().to_str().unwrap(),
            format!("../../../{maker}")
        );
    }
    assert_eq!(entries(&decoy), before);
}

/// The maker must stay while a result that is a link to it does.
#[test]
fn a_collection_keeps_the_originals_of_kept_links() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let lab = next(lab, "two");
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let maker = maker(&lab);
    // Only the last result is pinned.
    let last = output(&lab);
    lab.run("ce", &["pin", "../storage", last.to_str().unwrap()]).exit(0);
    gc(&lab, &["--no-keep"]).exit(0);
    assert!(stored(&lab, &maker).is_dir());
    is_sound(&lab);
    // It was made from the files that its execution has read: the first commit's.
    lab.ce_run(&[]).exit(0).says("1 reused, 1 taken over");
    assert_eq!(links(&lab), [format!("../../../{maker}")]);
    lab.run("ce", &["pin", "--remove", "../storage", last.to_str().unwrap()]).exit(0);
    gc(&lab, &["--no-keep"]).exit(0);
    assert_eq!(values(&lab, ""), [""; 0]);
    is_sound(&lab);
    lab.ce_run(&[]).exit(0).says("2 computed");
}

/// The commit of the maker is forgotten, the commit of the link is not.
#[test]
fn a_collection_keeps_the_originals_of_links_of_reachable_commits() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let maker = maker(&lab);
    let tree = lab.git("task", &["rev-parse", "HEAD^{tree}"]);
    fs::remove_dir_all(lab.path("task/.git/logs")).unwrap();
    let commit = lab.git("task", &["commit-tree", &tree, "-m", "no parents"]);
    lab.git("task", &["reset", "-q", "--hard", &commit]);
    lab.ce_run(&[]).exit(0).says("2 taken over");
    gc(&lab, &["--keep=."]).exit(0);
    assert!(stored(&lab, &maker).is_dir());
    is_sound(&lab);
    lab.ce_run(&[]).exit(0).says("2 reused");
}

#[test]
fn a_call_without_its_original_is_not_taken_over() {
    let Some(lab) = evaluated() else { return };
    lab.ce_run(&[]).exit(0).says("2 taken over");
    let dir = stored(&lab, &maker(&lab));
    within(&dir, |dir| within(&dir.join("d"), |inner| fs::remove_file(inner.join("f")).unwrap()));
    fs::remove_dir_all(dir).unwrap();
    let lab = next(lab, "two");
    lab.ce_run(&[]).exit(0).says("1 taken over, 1 computed");
    lab.ce_run(&[]).exit(0).says("2 reused");
    // For the commits before it is taken over from there.
    for _ in 0..2 {
        lab.git("task", &["checkout", "-q", "HEAD^"]);
        lab.ce_run(&[]).exit(0).says("1 reused, 1 taken over");
    }
    assert_eq!(links(&lab).len(), 2);
    is_sound(&lab);
}
