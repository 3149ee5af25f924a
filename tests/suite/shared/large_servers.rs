//! Large results on servers, where `git lfs` moves them.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::large::{LFS, large, objects};
use super::transport::{VARIABLES, exchange, serve, ssh};
use super::{evaluate, listed};
use crate::lab::Lab;
use crate::needs::{is_there, needs};

/// The URL of the repository at a server, with the password.
pub(super) fn url(port: u16) -> String {
    format!("http://ada:hunter2@127.0.0.1:{port}/results.git")
}

/// The requests that a server has got.
pub(super) fn requests(lab: &Lab) -> Vec<String> {
    let text = fs::read_to_string(lab.path("requests")).unwrap_or_default();
    let _removed = fs::remove_file(lab.path("requests"));
    text.lines().map(|line| line.trim_end().to_owned()).collect()
}

pub(super) fn push<'a>(lab: &'a Lab, url: &str) -> crate::program::Ran<'a> {
    exchange(lab, &[&["push"], LFS, &["../storage", url]].concat(), &VARIABLES)
}

#[test]
fn large_outputs_are_sent_before_the_reference_and_fetched_when_they_are_needed() {
    needs(&["git-lfs"]);
    let lab = large();
    let url = url(serve(&lab));
    push(&lab, &url).exit(0).shows("1 large output (1.6 KiB) is a Git LFS object");
    let sent = requests(&lab);
    assert_eq!(sent.iter().filter(|it| it.starts_with("PUT ")).count(), 1, "{sent:?}");
    let asked = sent.iter().filter(|it| it.ends_with(" upload")).count();
    assert_eq!(asked, 2, "it is asked again: {sent:?}");
    let [object] = &objects(&lab, "objects")[..] else { panic!("one object") };
    assert_eq!(fs::read(object).unwrap(), "x".repeat(1600).as_bytes());
    push(&lab, &url).exit(0).shows("nothing is new");
    assert_eq!(requests(&lab), [""; 0]);
    exchange(&lab, &["pull", "--limit", "1K", "../known", &url], &VARIABLES)
        .exit(0)
        .shows("1 call is away");
    assert_eq!(requests(&lab), [""; 0]);
    exchange(&lab, &["pull", "../other", &url], &VARIABLES).exit(0).shows("pulled 2 calls, 1 job");
    evaluate(&lab, "other").exit(0).called(vec![]).says("2 calls: 2 reused");
    let rests = fs::read_dir(lab.path("cache/compeval/mirrors")).unwrap();
    let rests: Vec<_> = rests.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!rests.iter().any(|it| it.contains("lfs")), "{rests:?}");
}

#[test]
fn a_refusal_of_the_server_is_an_error_and_nothing_is_pushed() {
    needs(&["git-lfs"]);
    let lab = large();
    let url = url(serve(&lab));
    for refused in ["422 PUT", "507 PUT", "413 POST", "404 POST"] {
        fs::write(lab.path("refused"), refused).unwrap();
        let told = push(&lab, &url).exit(5).says("git lfs push of http://127.0.0.1:");
        assert!(!told.stderr.contains("hunter2"), "{refused}: {}", told.stderr);
        told.says("try: make git lfs work with it");
        assert_eq!(lab.git("results.git", &["for-each-ref"]), "", "{refused}");
    }
    fs::remove_file(lab.path("refused")).unwrap();
    push(&lab, &url).exit(0).shows("1 large output (1.6 KiB) is a Git LFS object");
}

#[test]
fn a_server_with_a_missing_or_wrong_object_is_reported() {
    needs(&["git-lfs"]);
    let lab = large();
    let url = url(serve(&lab));
    push(&lab, &url).exit(0);
    let [object] = &objects(&lab, "objects")[..] else { panic!("one object") };
    fs::write(object, "y".repeat(1600)).unwrap();
    let pull = || exchange(&lab, &["pull", "../other", &url], &VARIABLES);
    pull().exit(1).shows("should be a Git LFS object there, and is not: git lfs fetch of");
    fs::remove_file(object).unwrap();
    pull().exit(1).shows("should be a Git LFS object there, and is not: git lfs fetch of");
    fs::write(object, "x".repeat(1600)).unwrap();
    pull().exit(0).shows("pulled 1 call (1.6 KiB)");
}

#[test]
fn a_host_that_is_reached_by_ssh_says_where_its_objects_are() {
    needs(&["git-lfs"]);
    let lab = large();
    let (ssh, port) = (ssh(&lab), serve(&lab));
    let bin = lab.path("bin");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let ssh = [("GIT_SSH_COMMAND", &*ssh), ("GIT_SSH_VARIANT", "ssh"), ("PATH", &*path)];
    let variables = [&VARIABLES[..], &ssh].concat();
    let there = format!("ssh://ada@lab.example{}", lab.path("results.git").display());
    let push = || exchange(&lab, &[&["push"], LFS, &["../storage", &there]].concat(), &variables);
    push().exit(5).says("git lfs push of ssh://").says("try: make git lfs work with it");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "", "nothing is pushed to a plain host");

    fs::create_dir(&bin).unwrap();
    let program = bin.join("git-lfs-authenticate");
    let answer = format!(r#"{{"href":"{}/info/lfs"}}"#, url(port));
    fs::write(&program, format!("#!/bin/sh\necho '{answer}'\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    push().exit(0).shows("1 large output (1.6 KiB) is a Git LFS object");
    assert_eq!(objects(&lab, "objects").len(), 1);
    exchange(&lab, &["pull", "../other", &there], &variables).exit(0).shows("pulled 2 calls");
    evaluate(&lab, "other").exit(0).called(vec![]).says("2 calls: 2 reused");
}

#[test]
fn directories_and_many_objects_are_sent_once() {
    needs(&["git-lfs"]);
    let lab = super::directories::directories().data("x", "x".repeat(2000));
    lab.ce_run(&[]).exit(0);
    lab.called();
    let url = url(serve(&lab));
    push(&lab, &url).exit(0).shows("2 large outputs");
    assert_eq!(objects(&lab, "objects").len(), 2);
    exchange(&lab, &["pull", "../other", &url], &VARIABLES).exit(0).shows("pulled 3 calls, 1 job");
    evaluate(&lab, "other").exit(0).called(vec![]).says("3 calls: 3 reused");
    assert!(listed(&lab, "results.git").iter().any(|it| it.contains("\tlarge/")));
}

/// A value of PATH with git, and without git-lfs.
pub(super) fn without_lfs(lab: &Lab) -> String {
    let path = lab.path("bin");
    fs::create_dir(&path).unwrap();
    for program in ["git", "sh", "env", "cat"] {
        let dirs = std::env::var_os("PATH").unwrap();
        let mut found = std::env::split_paths(&dirs).map(|dir| dir.join(program));
        let found = found.find(|it| it.exists()).unwrap();
        std::os::unix::fs::symlink(found, path.join(program)).unwrap();
    }
    path.to_str().unwrap().to_owned()
}

#[test]
fn without_git_lfs_an_error_says_what_to_do() {
    let lab = large();
    let port = serve(&lab);
    let path = without_lfs(&lab);
    let variables = [VARIABLES[0], VARIABLES[1], ("PATH", &*path)];
    let url = url(port);
    let arguments = [&["push"], LFS, &["../storage", url.as_str()]].concat();
    let told = exchange(&lab, &arguments, &variables).exit(5);
    told.says("are Git LFS objects, and there is no git lfs here").says("try: install git-lfs");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    if !is_there("git-lfs") {
        return crate::needs::lacks("git-lfs");
    }
    push(&lab, &url).exit(0);
    exchange(&lab, &["pull", "../other", &url], &variables)
        .exit(5)
        .says("try: install git-lfs, such as by apt-get install git-lfs; or leave large results there: --limit SIZE");
    exchange(&lab, &["pull", "--limit", "1K", "../other", &url], &variables).exit(0);
}

/// The page with the program of a transfer agent.
const PAGE: &str = include_str!("../../../doc/howto/large-results.md");

/// Makes the agent of the page one of a server's repositories. It copies to and from a directory, by this command.
fn use_agent(lab: &Lab, url: &str, command: &str) {
    let program = PAGE.split("<<'END'\n").nth(1).unwrap().split("\nEND\n").next().unwrap();
    let place = lab.path("agent");
    fs::write(&place, program).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let (agent, bucket) = (place.display(), lab.path("bucket"));
    let bucket = bucket.display();
    let settings = format!(
        "[lfs \"customtransfer.copy\"]\n\tpath = {agent}\n\targs = {command} {bucket}\n\tconcurrent = false\n\
         [lfs \"{url}\"]\n\tstandalonetransferagent = copy\n"
    );
    fs::write(lab.path("home/.gitconfig"), settings).unwrap();
}

#[test]
fn a_transfer_agent_has_the_objects_and_the_server_has_none() {
    needs(&["git-lfs", "python3"]);
    let lab = large();
    let port = serve(&lab);
    let (url, of_user) = (url(port), format!("http://127.0.0.1:{port}/"));
    fs::create_dir_all(lab.path("home")).unwrap();
    // There is no directory to copy to.
    use_agent(&lab, &of_user, "cp");
    push(&lab, &url).exit(5).says("git lfs push of http://127.0.0.1:");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    fs::create_dir(lab.path("bucket")).unwrap();
    push(&lab, &url).exit(0).shows("1 large output (1.6 KiB) is a Git LFS object");
    let [object] = &objects(&lab, "bucket")[..] else { panic!("one object") };
    assert_eq!(fs::read(object).unwrap(), "x".repeat(1600).as_bytes());
    assert!(!requests(&lab).iter().any(|it| it.contains("lfs")), "the server is not asked");
    assert!(!lab.path("objects").exists());
    exchange(&lab, &["pull", "../other", &url], &VARIABLES).exit(0).shows("pulled 2 calls, 1 job");
    evaluate(&lab, "other").exit(0).called(vec![]).says("2 calls: 2 reused");
    // A wrong object is not taken.
    fs::write(object, "y".repeat(1600)).unwrap();
    let pull = exchange(&lab, &["pull", "../third", &url], &VARIABLES);
    pull.exit(1).shows("should be a Git LFS object there, and is not");
}

#[test]
fn a_transfer_agent_also_serves_a_repository_on_this_host() {
    needs(&["git-lfs", "python3"]);
    let lab = large();
    fs::create_dir_all(lab.path("home")).unwrap();
    fs::create_dir(lab.path("bucket")).unwrap();
    let here = fs::canonicalize(lab.path("")).unwrap();
    use_agent(&lab, &format!("file://{}/", here.display()), "cp");
    super::push(&lab, LFS, "storage", "results.git").exit(0);
    assert_eq!(objects(&lab, "bucket").len(), 1);
    assert!(!lab.path("results.git/lfs").exists());
    lab.git("", &["clone", "-q", "-b", "results", "results.git", "clone"]);
    evaluate(&lab, "clone").exit(0).called(vec![]);
}

#[test]
fn an_agent_of_the_current_repository_does_not_count() {
    needs(&["git-lfs"]);
    let lab = large();
    lab.git("task", &["config", "lfs.standalonetransferagent", "nothing"]);
    super::push(&lab, LFS, "storage", "results.git").exit(0);
    assert_eq!(objects(&lab, "results.git/lfs/objects").len(), 1);
}
