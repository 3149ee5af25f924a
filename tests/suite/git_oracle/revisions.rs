//! A revision is the commit that `git rev-parse` says, or none.

use std::path::Path;

use compeval::git::Snapshot;

use super::{ask, git, line};
use crate::generator::{Random, seeds};
use crate::git_log;

const COMMITS: u32 = 24;

/// The beginnings of revisions; numbers and ids are filled in.
const BASES: [&str; 40] = [
    "HEAD",
    "@",
    "main",
    "heads/main",
    "refs/heads/main",
    "b7",
    "b19",
    "light",
    "tags/light",
    "noted",
    "noted-twice",
    "of-a-tree",
    "of-a-blob",
    "both",
    "heads/both",
    "origin/main",
    "origin",
    "a/b/c",
    "ORIG_HEAD",
    "@{0}",
    "@{1}",
    "@{2}",
    "@{-1}",
    "@{9}",
    "main@{1}",
    "main@{5}",
    "both@{0}",
    "main@{2001-09-09}",
    "main@{2001-09-09 12:00:00 +0000}",
    ":/c.*t 1",
    "main^{/c.*t 1}",
    ":/!-commit",
    "@{u}",
    "main@{upstream}",
    ":/commit 1",
    ":/^commit 3$",
    ":/nothing of it",
    "nothing",
    "",
    "beef",
];

/// The endings of revisions.
const ENDS: [&str; 37] = [
    "",
    "",
    "",
    "",
    "^",
    "^^",
    "^0",
    "^1",
    "^2",
    "^3",
    "~",
    "~0",
    "~2",
    "~2^2",
    "~99",
    "^2~1",
    "^{}",
    "^{commit}",
    "^{tree}",
    "^{blob}",
    "^{tag}",
    "^{object}",
    "^{/commit 2}",
    "^{/nothing}",
    "^{/!-1}",
    "^{commit}~1",
    "^{tree}^{commit}",
    "^{nonsense}",
    ":other",
    ":",
    ":lib/one",
    "^@",
    "^!",
    "^-",
    "..main",
    "...main",
    "@{1}",
];

/// Texts that Git takes for options, ranges and more than one commit.
const ODD: [&str; 14] = [
    "^main",
    "^main~1",
    "--all",
    "--help",
    "-1",
    "b3..b7",
    "b3...b7",
    "..",
    "...",
    "HEAD main",
    " main",
    "main ",
    ":other",
    ":0:other",
];

/// A repository with merges, branches, tags of everything, reflogs and an upstream.
fn repository(dir: &Path, random: &mut Random) {
    git(dir, &["init", "-q", "-b", "main"]);
    git(dir, &["config", "core.logAllRefUpdates", "true"]);
    let history = git_log::history(random, COMMITS);
    git_log::git(dir, &["fast-import", "--quiet", "--done"], &history);
    let mut any = || format!("b{}", 1 + random.below(COMMITS as usize));
    for _ in 0..3 {
        git(dir, &["reset", "-q", "--hard", &any()]);
    }
    git(dir, &["checkout", "-q", "-b", "side", &any()]);
    git(dir, &["checkout", "-q", "main"]);
    git(dir, &["tag", "light", &any()]);
    git(dir, &["tag", "-a", "-m", "a tag", "noted", &any()]);
    git(dir, &["-c", "advice.nestedTag=false", "tag", "-a", "-m", "of it", "noted-twice", "noted"]);
    git(dir, &["tag", "of-a-tree", &format!("{}^{{tree}}", any())]);
    let blob = git_log::git(dir, &["hash-object", "-w", "--stdin"], "a blob");
    git(dir, &["tag", "-a", "-m", "a blob", "of-a-blob", blob.trim()]);
    // Each is the name of two.
    git(dir, &["tag", "both", &any()]);
    let (beef, both) = (any(), any());
    for (name, at) in [("both", &both), ("beef", &beef), ("a/b/c", &beef)] {
        git(dir, &["update-ref", &format!("refs/heads/{name}"), at]);
    }
    git(dir, &["update-ref", "refs/remotes/origin/main", &any()]);
    git(dir, &["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main"]);
    git(dir, &["config", "remote.origin.url", "/nowhere"]);
    git(dir, &["config", "remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"]);
    git(dir, &["branch", "-q", "--set-upstream-to", "origin/main", "main"]);
}

/// A revision as somebody may write it.
fn spelling(random: &mut Random, ids: &[&str]) -> String {
    let base = match random.below(6) {
        0 => random.one_of(ids)[..4 + random.below(37)].to_owned(),
        1 => format!("light-3-g{}", &random.one_of(ids)[..7]),
        2 => random.one_of(ids)[..10].to_uppercase(),
        _ => random.one_of(&BASES).to_owned(),
    };
    base + random.one_of(&ENDS)
}

/// Returns Git's answer, which refuses everything that is not one commit.
fn oracle(dir: &Path, rev: &str) -> Option<String> {
    let verify = |rev: &str| {
        let text = ask(dir, &["rev-parse", "--verify", "--quiet", "--end-of-options", rev])?;
        Some(String::from_utf8(text).unwrap().trim().to_owned()).filter(|id| !id.starts_with('^'))
    };
    let commit = |rev: &str| verify(&format!("{rev}^{{commit}}"));
    match verify(rev) {
        Some(id) => commit(&id),
        // The first digits of a commit's id may begin a file's id, too.
        None if rev.bytes().all(|byte| byte.is_ascii_hexdigit()) => commit(rev),
        None => None,
    }
}

#[test]
fn revisions_resolve_as_in_git() {
    let (mut known, mut refused) = (0, 0);
    for seed in seeds(3) {
        let (lab, mut random) = (tempfile::tempdir().unwrap(), Random::new(seed));
        let dir = lab.path();
        repository(dir, &mut random);
        let objects =
            line(dir, &["cat-file", "--batch-all-objects", "--batch-check=%(objectname)"]);
        let ids: Vec<&str> = objects.lines().collect();
        let made: Vec<String> = (0..60).map(|_| spelling(&mut random, &ids)).collect();
        let odd = ODD.iter().chain(&BASES).map(|rev| (*rev).to_owned());
        for rev in made.into_iter().chain(odd.filter(|_| seed == 0)) {
            let told = oracle(dir, &rev);
            let found = Snapshot::open(dir, &rev).and_then(|it| it.commit());
            let found = found.ok().map(|id| id.full().to_owned());
            assert_eq!(found, told, "CE_SEED={seed}: {rev:?}");
            *(if told.is_some() { &mut known } else { &mut refused }) += 1;
        }
    }
    assert!(known > refused / 4 && refused > known / 4, "{known} and {refused}");
}
