//! Large results of repositories on this host that URLs lead to.

use std::fs;

use super::large::{LFS, large, objects};
use super::{evaluate, pull, repository};
use crate::lab::Lab;

/// A repository `a b:c/pub.git`, and the URLs that lead to it, for whom `git` has settings.
fn urls(lab: &Lab) -> [String; 5] {
    fs::create_dir(lab.path("a b:c")).unwrap();
    repository(lab, "a b:c/pub.git");
    let dir = lab.path("a b:c").display().to_string();
    let setting = format!("url.{dir}/.insteadOf");
    lab.git("task", &["config", "--global", &setting, "nas:"]);
    let encoded = dir.replace(' ', "%20");
    [
        "nas:pub.git".to_owned(),
        "nas:pub".to_owned(),
        format!("file://{encoded}/pub.git"),
        format!("file://localhost{encoded}/pub.git"),
        "../a b:c/pub.git".to_owned(),
    ]
}

#[test]
fn objects_are_where_git_resolves_the_url() {
    for number in 0..5 {
        let lab = large();
        let url = &urls(&lab)[number];
        lab.run("ce", &[&["push"], LFS, &["../storage", url]].concat())
            .exit(0)
            .shows("1 large output (1.6 KiB) is a Git LFS object");
        assert_eq!(objects(&lab, "a b:c/pub.git/lfs").len(), 1, "{url}");
        lab.run("ce", &["gc", "--published", url, "--believe", "--delete", "../storage"]).exit(0);
        lab.run("ce", &["pull", "../other", url]).exit(0).shows("pulled 2 calls, 1 job");
        evaluate(&lab, "other").exit(0).called(vec![]).says("2 calls: 2 reused");
        // `git clone` notes paths as absolute ones.
        fs::create_dir(lab.path("clone")).unwrap();
        let from = ["../a b:c/pub.git", url][usize::from(number < 4)];
        lab.git("clone", &["clone", "--quiet", "--branch", "results", from, "."]);
        lab.git("clone", &["config", "remote.origin.url", from]);
        evaluate(&lab, "clone").exit(0).called(vec![]).says("2 calls: 2 reused");
    }
}

#[test]
fn objects_are_where_pushes_go() {
    let lab = large();
    let setting = format!("url.{}.pushInsteadOf", lab.path("results.git").display());
    lab.git("task", &["config", "--global", &setting, &lab.path("read.git").display().to_string()]);
    repository(&lab, "read.git");
    lab.run("ce", &[&["push"], LFS, &["../storage", "../read.git"]].concat()).exit(0);
    assert_eq!(objects(&lab, "results.git/lfs").len(), 1);
    pull(&lab, &[], "other", "results.git").exit(0).shows("pulled 2 calls, 1 job");
}
