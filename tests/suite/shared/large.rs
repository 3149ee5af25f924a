//! Large results: Git LFS objects of a results repository that has the setting, in a store on this host.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::directories::{directories, manifest};
use super::{evaluate, listed, pull, push, repository, salt};
use crate::lab::Lab;

/// Outputs above a kibibyte are objects.
pub(super) const LFS: &[&str] = &["--lfs", "1K"];

/// Two calls. The output of the second one has more than a kibibyte, and of the first one less.
pub(super) fn large() -> Lab {
    let lab = super::lab().data("x", "x".repeat(400));
    lab.ce_run(&[]).exit(0).called(vec!["once", "twice"]);
    lab
}

/// The objects of a repository.
pub(super) fn objects(lab: &Lab, store: &str) -> Vec<PathBuf> {
    let files = walkdir::WalkDir::new(lab.path(store)).sort_by_file_name().into_iter();
    let files = files.filter_map(Result::ok).filter(|it| it.file_type().is_file());
    files.map(|it| it.path().to_owned()).collect()
}

/// The text of a file of the results.
pub(super) fn text(lab: &Lab, repository: &str, path: &str) -> String {
    lab.git(repository, &["cat-file", "-p", &format!("results:{path}")])
}

/// The paths of the results that begin with a text.
pub(super) fn paths(lab: &Lab, repository: &str, begin: &str) -> Vec<String> {
    let lines = listed(lab, repository).into_iter();
    let paths = lines.map(|line| line.split_once('\t').unwrap().1.to_owned());
    paths.filter(|path| path.starts_with(begin)).collect()
}

/// Overwrites a file that is read-only.
pub(super) fn overwrite(path: &Path, text: &[u8]) {
    fs::remove_file(path).unwrap();
    fs::write(path, text).unwrap();
}

#[test]
fn large_outputs_are_objects_of_a_repository_with_the_setting() {
    let lab = large();
    push(&lab, &[], "storage", "results.git").exit(0).shows("pushed 2 calls, 1 job (2.3 KiB)");
    assert_eq!(paths(&lab, "results.git", "large/"), [""; 0], "never by default");
    assert!(!lab.path("results.git/lfs").exists());
    repository(&lab, "lfs.git");
    let told = lab.unchanged(|| push(&lab, &[&["-n"], LFS].concat(), "storage", "lfs.git").exit(3));
    told.shows("1 large output (1.6 KiB) would be a Git LFS object")
        .shows("outputs above 1.0 KiB would become Git LFS objects there from now on");
    assert!(!lab.path("lfs.git/lfs").exists());
    let told = push(&lab, LFS, "storage", "lfs.git").exit(0);
    let told = told
        .shows("pushed 2 calls, 1 job (2.3 KiB)")
        .shows("1 large output (1.6 KiB) is a Git LFS object")
        .shows("outputs above 1.0 KiB become Git LFS objects there from now on");
    assert!(!told.stdout.contains("away"), "{}", told.stdout);
    assert_eq!(text(&lab, "lfs.git", "settings"), "lfs 1024");
    assert_eq!(text(&lab, "lfs.git", ".lfsconfig"), "[lfs]\n\tfetchexclude = *");
    assert!(
        text(&lab, "lfs.git", ".gitattributes")
            .ends_with("\n/large/** filter=lfs diff=lfs merge=lfs -text")
    );
    // One pointer for the output of the call and of the job; both are away.
    let [pointer] = &paths(&lab, "lfs.git", "large/")[..] else { panic!("one pointer") };
    let pointer = text(&lab, "lfs.git", pointer);
    let [object] = &objects(&lab, "lfs.git/lfs")[..] else { panic!("one object") };
    let oid = object.file_name().unwrap().to_str().unwrap();
    assert_eq!(
        pointer,
        format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize 1600")
    );
    assert_eq!(fs::read(object).unwrap(), "x".repeat(1600).as_bytes());
    assert_eq!(fs::metadata(object).unwrap().nlink(), 1, "it is a copy");
    for owner in ["c_twice/", "t_task/"] {
        let of_owner = paths(&lab, "lfs.git", owner);
        let has = |room: &str| of_owner.iter().any(|path| path.contains(room));
        assert!(has("/away/") && has("/record/") && !has("/00/"), "{of_owner:?}");
    }
    // The setting is the repository's: every push obeys it.
    push(&lab, &[], "storage", "lfs.git").exit(0).shows("nothing is new to ");
    push(&lab, LFS, "storage", "lfs.git").exit(0).shows("nothing is new to ");
    fs::write(lab.path("data/x"), "y".repeat(400)).unwrap();
    evaluate(&lab, "others").exit(0);
    push(&lab, &["--json"], "others", "lfs.git")
        .exit(0)
        .shows(r#""large":1,"large_bytes":1600,"lfs":1024"#);
    assert_eq!(objects(&lab, "lfs.git/lfs").len(), 2);
    // Another size replaces it, and the objects that are there stay.
    push(&lab, &["--lfs", "2K"], "storage", "lfs.git")
        .exit(0)
        .shows("outputs above 2.0 KiB become");
    assert_eq!(text(&lab, "lfs.git", "settings"), "lfs 2048");
    push(&lab, &[], "storage", "lfs.git").exit(0).shows("nothing is new to ");
    let told = lab.run("ce", &["push", "--lfs", "1000", "../storage", "../lfs.git"]).exit(2);
    told.says("is not a size with its unit");
}

#[test]
fn objects_are_pulled_up_to_the_limit() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let told = pull(&lab, &["--limit", "1K"], "known", "results.git").exit(0);
    told.shows("pulled 2 calls, 1 job")
        .shows("1 call is away: known, and outputs of it stay there");
    pull(&lab, &["-n"], "known", "results.git").exit(3).shows("would pull 1 call");
    pull(&lab, &[], "known", "results.git").exit(0).shows("pulled 1 call (1.6 KiB)");
    evaluate(&lab, "known").exit(0).called(vec![]).says("2 calls: 2 reused");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job (2.3 KiB)");
    evaluate(&lab, "other").exit(0).called(vec![]).says("2 calls: 2 reused");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
    assert!(lab.path("other/tmp").read_dir().unwrap().next().is_none(), "nothing is left");
    // Results that were pulled can be pushed to a repository without the setting.
    repository(&lab, "plain.git");
    push(&lab, &[], "other", "plain.git").exit(0).shows("pushed 2 calls, 1 job (2.3 KiB)");
    repository(&lab, "again.git");
    push(&lab, LFS, "other", "again.git").exit(0);
    assert_eq!(listed(&lab, "results.git"), listed(&lab, "again.git"), "equal results are equal");
}

#[test]
fn a_directory_is_an_object_as_its_archive() {
    let lab = directories().data("x", "x".repeat(2000));
    lab.ce_run(&[]).exit(0);
    lab.called();
    push(&lab, LFS, "storage", "results.git").exit(0).shows("pushed 3 calls, 1 job");
    let pointers = paths(&lab, "results.git", "large/");
    assert!(pointers.len() == 2 && pointers.iter().all(|it| it.ends_with('d')), "{pointers:?}");
    assert_eq!(paths(&lab, "results.git", "directories/"), [""; 0]);
    let [one, _] = &objects(&lab, "results.git/lfs")[..] else { panic!("two objects") };
    assert!(fs::read(one).unwrap().starts_with(b"compeval directory 1\n"));
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 3 calls, 1 job");
    for owner in ["c_make", "c_again", "c_both"] {
        assert_eq!(manifest(&lab, "other", owner), manifest(&lab, "storage", owner));
    }
    evaluate(&lab, "other").exit(0).called(vec![]).says("3 calls: 3 reused");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
}

#[test]
fn a_store_with_a_missing_or_wrong_object_is_reported() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    overwrite(object, "y".repeat(1600).as_bytes());
    let told = pull(&lab, &[], "other", "results.git").exit(1);
    told.shows("c_twice/").shows("a file of it is not what the record says");
    // A push from which the object comes again puts it right, and not one of what is known.
    push(&lab, &[], "storage", "results.git").exit(0).shows("nothing is new");
    fs::remove_file(object).unwrap();
    let told = pull(&lab, &[], "other", "results.git").exit(1);
    told.shows("should be a Git LFS object there, and is not").shows("1 call is away");
    // A repository of another one has the object, wrong.
    repository(&lab, "more.git");
    let rest = object.strip_prefix(lab.path("results.git")).unwrap();
    let wrong = lab.path("more.git").join(rest);
    fs::create_dir_all(wrong.parent().unwrap()).unwrap();
    fs::write(&wrong, "y".repeat(1600)).unwrap();
    push(&lab, LFS, "storage", "more.git").exit(0);
    assert_eq!(fs::read(wrong).unwrap(), "x".repeat(1600).as_bytes(), "it is replaced");
    pull(&lab, &[], "other", "more.git").exit(0).shows("pulled 1 call (1.6 KiB)");
    // Equal results are equal objects: another repository's objects mend the first one.
    fs::remove_dir_all(lab.path("results.git/lfs")).unwrap();
    lab.copy("more.git/lfs", "results.git/lfs");
    pull(&lab, &[], "mended", "results.git").exit(0).shows("pulled 2 calls, 1 job");
}

#[test]
fn objects_that_the_large_file_store_lost_are_sent_again() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    pull(&lab, &["--limit", "1K"], "known", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    fs::remove_file(object).unwrap();
    let told = lab.unchanged(|| push(&lab, &["-n"], "storage", "results.git").exit(3));
    told.shows("1 object that the repository had lost would be there again");
    push(&lab, &[], "known", "results.git").exit(0).shows("nothing is new");
    assert!(!object.exists(), "it is away there, too");
    push(&lab, &[], "storage", "results.git")
        .exit(0)
        .shows("nothing is new to ")
        .shows("1 large output (1.6 KiB) is a Git LFS object\n")
        .shows("1 object that the repository had lost is there again\n");
    let told = push(&lab, &[], "storage", "results.git").exit(0);
    assert!(!told.stdout.contains("lost"), "{}", told.stdout);
    pull(&lab, &[], "known", "results.git").exit(0).shows("pulled 1 call (1.6 KiB)");
    // A push of other results sends it again, too, unless the value has changed.
    fs::remove_file(object).unwrap();
    lab.copy("storage", "more");
    let room = super::away::room(&lab, "more", "c_twice", "00");
    overwrite(Path::new(&room[0]), "y".repeat(1600).as_bytes());
    fs::write(lab.path("data/x"), "z".repeat(400)).unwrap();
    evaluate(&lab, "more").exit(0);
    let told = push(&lab, &[], "more", "results.git").exit(1).shows("pushed 2 calls, 1 job");
    assert!(!told.stdout.contains("lost") && !object.exists(), "{}", told.stdout);
    told.shows("is not as recorded: ce verify says more");
    push(&lab, &[], "storage", "results.git").exit(0).shows("had lost is there again");
    assert_eq!(fs::read(object).unwrap(), "x".repeat(1600).as_bytes());
}

#[test]
fn new_results_rely_on_no_wrong_object() {
    let lab = large();
    push(&lab, LFS, "storage", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    overwrite(object, "y".repeat(1600).as_bytes());
    // Another version of the computation makes the same.
    let script = lab.path("task/computations/twice/exec");
    let text = fs::read_to_string(&script).unwrap();
    fs::write(&script, text + "# another version\n").unwrap();
    lab.git("task", &["commit", "--quiet", "--all", "--message", "another version"]);
    evaluate(&lab, "storage").exit(0).called(vec!["once", "twice"]);
    push(&lab, &[], "storage", "results.git")
        .exit(0)
        .shows("pushed 2 calls, 1 job")
        .shows("1 object that the repository had lost is there again\n");
    assert!(fs::read(object).unwrap() == "x".repeat(1600).as_bytes(), "it is right again");
}

#[test]
fn the_store_has_the_place_and_permissions_of_the_repository() {
    let lab = large();
    lab.git("results.git", &["config", "lfs.storage", "../objects"]);
    lab.git("results.git", &["config", "core.sharedRepository", "group"]);
    push(&lab, LFS, "storage", "results.git").exit(0);
    assert!(!lab.path("results.git/lfs").exists());
    let [object] = &objects(&lab, "objects")[..] else { panic!("one object") };
    assert_eq!(fs::metadata(object).unwrap().permissions().mode() & 0o060, 0o060);
    let mode = fs::metadata(object.parent().unwrap()).unwrap().permissions().mode();
    assert_eq!(mode & 0o2070, 0o2070);
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job");
    // If nothing can be stored, nothing is pushed.
    repository(&lab, "full.git");
    fs::write(lab.path("full.git/lfs"), "").unwrap();
    let told = push(&lab, LFS, "storage", "full.git").exit(5);
    told.says("the Git LFS object ")
        .says("cannot be written or read")
        .says("try: check whether you may write in lfs/");
    assert_eq!(lab.git("full.git", &["for-each-ref"]), "");
}

#[test]
fn a_push_that_was_interrupted_goes_on() {
    let lab = large();
    fs::write(lab.path("data/x"), "y".repeat(400)).unwrap();
    evaluate(&lab, "storage").exit(0);
    // The server takes no commit.
    lab.git("results.git", &["config", "receive.maxInputSize", "1"]);
    let mut command = lab.command("ce");
    command.args(["push", "--lfs", "1K", "../storage", "../results.git"]);
    lab.finish(&mut command).exit(5);
    let made = objects(&lab, "results.git/lfs");
    let [first, second] = &made[..] else { panic!("objects are there before the reference") };
    let inode = |path: &Path| fs::metadata(path).unwrap().ino();
    let before = inode(first);
    // Wrong bytes of the right size are replaced.
    let right = fs::read(second).unwrap();
    overwrite(second, &vec![b'-'; right.len()]);
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    lab.git("results.git", &["config", "--unset", "receive.maxInputSize"]);
    let told =
        lab.finish(lab.command("ce").args(["push", "--lfs", "1K", "../storage", "../results.git"]));
    told.exit(0).shows("2 large outputs (3.1 KiB) are Git LFS objects");
    assert_eq!(inode(first), before);
    assert!(fs::read(second).unwrap() == right, "it has the right bytes again");
    assert!(
        lab.path("results.git/lfs/tmp").read_dir().unwrap().next().is_none(),
        "nothing is left"
    );
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 4 calls, 2 jobs");
}

#[test]
fn two_pushes_at_once_both_end_well() {
    let lab = large();
    fs::write(lab.path("data/x"), "y".repeat(400)).unwrap();
    evaluate(&lab, "others").exit(0);
    lab.copy("storage", "copy");
    std::thread::scope(|scope| {
        let pushes = ["storage", "others", "copy"].map(|storage| {
            let (lab, cache) = (&lab, lab.path(&format!("cache-{storage}")));
            scope.spawn(move || {
                let mut command = lab.command("ce");
                command.args(["push", "--lfs", "1K", &format!("../{storage}"), "../results.git"]);
                lab.finish(command.env("XDG_CACHE_HOME", cache)).exit(0);
            })
        });
        pushes.into_iter().for_each(|push| push.join().unwrap());
    });
    assert_eq!(objects(&lab, "results.git/lfs").len(), 2);
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 4 calls, 2 jobs");
    lab.run("ce", &["verify", "../other"]).exit(0).says("0 wrong, 0 odd");
}

#[test]
fn a_result_that_reads_like_a_pointer_is_a_result() {
    let pointer = format!(
        "version https://git-lfs.github.com/spec/v1\noid sha256:{}\nsize 5\n",
        "0".repeat(64)
    );
    let text = pointer.replace('\n', "\\n");
    let mut lab = Lab::task("Inputs: 'x'\n(make INPUT('x'))[0]")
        .computation("make", "x", "a", &format!("printf '{text}' >\"$2\""))
        .data("x", "x\n");
    lab.inputs = vec!["x".to_owned()];
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0).called(vec!["make"]);
    assert_eq!(lab.output(), pointer);
    push(&lab, LFS, "storage", "results.git").exit(0);
    let [object] = &objects(&lab, "results.git/lfs")[..] else { panic!("one object") };
    assert_eq!(fs::read_to_string(object).unwrap(), pointer, "else a server would miss an object");
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 1 call, 1 job");
    repository(&lab, "plain.git");
    push(&lab, &[], "storage", "plain.git").exit(0);
    assert_eq!(paths(&lab, "plain.git", "large/"), [""; 0]);
    pull(&lab, &[], "more", "plain.git").exit(0).shows("pulled 1 call, 1 job");
    for storage in ["other", "more"] {
        evaluate(&lab, storage).exit(0).called(vec![]).says("1 call: 1 reused");
    }
}

#[test]
fn secrets_and_damage_are_found_in_large_outputs_too() {
    let token = format!("{}{} ", "ghp_", "a1".repeat(18));
    let lab = super::lab().data("x", format!("{}{token}", ".".repeat(1000)));
    lab.ce_run(&[]).exit(0);
    let told = push(&lab, LFS, "storage", "results.git").exit(1);
    told.shows("seems to hold a token of GitHub; --allow-secrets pushes it all the same");
    assert!(objects(&lab, "results.git/lfs").is_empty(), "nothing is left");
    push(&lab, &["--allow-secrets"], "storage", "results.git").exit(0).shows("2 large outputs");
    let lab = large();
    salt(&lab, "y");
    let room = super::away::room(&lab, "storage", "c_twice", "00");
    overwrite(Path::new(&room[0]), "y".repeat(1600).as_bytes());
    let told = push(&lab, LFS, "storage", "results.git").exit(1);
    told.shows("is not as recorded: ce verify says more");
    assert_eq!(paths(&lab, "results.git", "large/"), [""; 0]);
}

#[test]
fn a_thousand_objects_are_pushed_and_pulled() {
    let names: Vec<String> = (0..10).map(|number| format!("i{number}")).collect();
    let inputs = names.iter().map(|name| format!("'{name}'")).collect::<Vec<_>>().join(", ");
    let calls: String = names.iter().map(|it| format!(" (many INPUT('{it}'))[0]")).collect();
    let outputs: String = (0..100).map(|number| format!("o{number}\n")).collect();
    let write = r#"text=$(cat "$1"); shift; for file; do printf '%s %01100d\n' "$file" "$text" >"$file"; done"#;
    let write = write.replace("\"$file\" \"$text\"", "\"${file##*/}\" \"$text\"");
    let mut lab = Lab::task(&format!("Inputs: {inputs}\n(join{calls})[0]"))
        .computation("many", "a", &outputs, &write)
        .computation("join", &names.join("\n"), "b", r#"cat "$1" >"${11}""#);
    for (number, name) in names.iter().enumerate() {
        lab = lab.data(name, format!("{number}\n"));
    }
    lab.inputs = names;
    let lab = lab.commit();
    repository(&lab, "results.git");
    lab.ce_run(&[]).exit(0);
    lab.called();
    let told = push(&lab, LFS, "storage", "results.git").exit(0).shows("pushed 11 calls, 1 job");
    let files = objects(&lab, "results.git/lfs").len();
    assert!(files >= 1000 && told.stdout.contains("large outputs"), "{files}: {}", told.stdout);
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 11 calls, 1 job");
    evaluate(&lab, "other").exit(0).called(vec![]).says("11 calls: 11 reused");
}
