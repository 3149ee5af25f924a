//! Signed results: who is believed, and what each attack comes to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{evaluate, lab, push, repository, salt};
use crate::lab::Lab;
use crate::needs::needs;
use crate::program::Ran;

/// People with keys of their own, and the file of those who are allowed to sign: alice and bob.
pub(super) fn people(lab: &Lab) {
    needs(&["ssh-keygen"]);
    for name in ["alice", "bob", "mallory"] {
        fs::create_dir_all(lab.path("keys")).unwrap();
        let key = lab.path("keys").join(name);
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(&key);
        let status = keygen.status();
        assert!(status.is_ok_and(|status| status.success()), "ssh-keygen of openssh-client");
        let home = lab.path(&format!("home-{name}"));
        fs::create_dir(&home).unwrap();
        let config = format!(
            "[safe]\n\tdirectory = *\n[user]\n\tname = {name}\n\temail = {name}@lab\n\tsigningKey = {}\n\
             [gpg]\n\tformat = ssh\n[compeval]\n\tsign = true\n",
            key.display()
        );
        fs::write(home.join(".gitconfig"), config).unwrap();
    }
    allow(lab, &["alice", "bob"], "");
}

/// Writes the file of allowed signers.
fn allow(lab: &Lab, names: &[&str], options: &str) {
    let line = |name: &&str| {
        let key = fs::read_to_string(lab.path("keys").join(format!("{name}.pub"))).unwrap();
        format!("{name}@lab {options} {key}")
    };
    fs::write(lab.path("signers"), names.iter().map(line).collect::<String>()).unwrap();
}

/// `ce push` as somebody who signs, with a cache of their own.
pub(super) fn push_as<'a>(lab: &'a Lab, who: &str, options: &[&str], places: [&str; 2]) -> Ran<'a> {
    let mut command = lab.command("ce");
    command.env("HOME", lab.path(&format!("home-{who}")));
    command.env("XDG_CACHE_HOME", lab.path(&format!("cache-{who}")));
    command.arg("push").args(options).args(places.map(|place| format!("../{place}")));
    lab.finish(&mut command)
}

/// `ce pull` of what alice and bob have signed.
pub(super) fn pull<'a>(lab: &'a Lab, options: &[&str], storage: &str) -> Ran<'a> {
    let storage = format!("../{storage}");
    let fixed = ["pull", "--signers", "../signers"];
    lab.run("ce", &[&fixed[..], options, &[&storage, "../results.git"]].concat())
}

/// Evaluates with another input into a storage: two more calls.
fn evaluate_with(lab: &Lab, storage: &str, input: &str) {
    fs::write(lab.path("data").join(input), format!("{input}\n")).unwrap();
    let mut command = lab.command("ce-run");
    lab.finish(command.args([&format!("../{storage}"), &format!("../data/{input}")])).exit(0);
}

/// A laboratory with results of alice.
pub(super) fn signed() -> Lab {
    let lab = lab();
    people(&lab);
    evaluate(&lab, "alice").exit(0).called(vec!["once", "twice"]);
    push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(0);
    lab
}

/// Commits a change of the results as anybody may who can push, with these options of `git`.
pub(super) fn change(lab: &Lab, options: &[&str], act: impl FnOnce(&str)) {
    fs::create_dir_all(lab.path("forger")).unwrap();
    lab.git("forger", &["clone", "--quiet", "--branch", "results", "../results.git", "."]);
    act("forger");
    lab.git("forger", &["add", "--all", "--force"]);
    lab.git("forger", &[options, &["commit", "--quiet", "--message", "changed"]].concat());
    lab.git("forger", &["push", "--quiet", "origin", "HEAD:results"]);
    fs::remove_dir_all(lab.path("forger")).unwrap();
}

/// The name of a file of the results.
pub(super) fn file_of(lab: &Lab, [owner, room]: [&str; 2]) -> String {
    let names = lab.git("results.git", &["ls-tree", "-r", "--name-only", "results"]);
    let mut names = names.lines().filter(|name| name.starts_with(owner) && name.contains(room));
    names.next().unwrap().to_owned()
}

/// Options of `git` with which somebody signs.
fn as_signer(lab: &Lab, name: &str) -> Vec<String> {
    let key = format!("user.signingKey={}", lab.path("keys").join(name).display());
    ["-c", "gpg.format=ssh", "-c", "commit.gpgSign=true", "-c", &key].map(str::to_owned).to_vec()
}

#[test]
fn only_commits_of_allowed_signers_are_pulled() {
    let lab = signed();
    let commit = lab.git("results.git", &["log", "-1", "--format=%an <%ae>", "results"]);
    assert_eq!(commit, "alice <alice@lab>");
    let told = pull(&lab, &[], "mine").exit(0).shows("pulled 2 calls, 1 job");
    assert!(!told.stderr.contains("no signatures were checked"), "{}", told.stderr);
    evaluate_with(&lab, "other", "y");
    push(&lab, &[], "other", "results.git").exit(0);
    let told = pull(&lab, &[], "mine").exit(1);
    // Evidence of strangers counts as that.
    told.shows("pulled 1 ledger file from ")
        .shows("3 results were not taken, each since it is not signed:\n  c_");
    // Mallory has a key, too.
    evaluate_with(&lab, "mallory", "z");
    push_as(&lab, "mallory", &[], ["mallory", "results.git"]).exit(0);
    let told = pull(&lab, &[], "mine").exit(1);
    told.shows("3 results were not taken, each since it is not signed:")
        .shows("3 results were not taken, each since it is signed with the key SHA256:");
    evaluate_with(&lab, "bob", "b");
    push_as(&lab, "bob", &[], ["bob", "results.git"]).exit(0);
    pull(&lab, &[], "mine").exit(1).shows("pulled 2 calls, 1 job");
    // Another file of signers judges everything again.
    allow(&lab, &["bob"], "");
    pull(&lab, &[], "of-bob").exit(1).shows("pulled 2 calls, 1 job").shows("3 results were not");
    // Without signers, the word of the user counts.
    super::pull(&lab, &[], "all", "results.git").exit(0).says("no signatures were checked");
}

#[test]
fn a_signer_is_trusted_for_the_configured_results() {
    let lab = signed();
    fs::write(lab.path("task/signers"), fs::read(lab.path("signers")).unwrap()).unwrap();
    lab.git("task", &["config", "compeval.trust", "alice@lab c_on* t_*"]);
    let told = super::pull(&lab, &[], "mine", "results.git").exit(2);
    told.says("compeval.trust names trusted signers, and there is no file of allowed signers");
    lab.git("task", &["config", "compeval.signers", "signers"]);
    lab.git("task", &["config", "--add", "compeval.trust", "alice@lba c_*"]);
    let told = super::pull(&lab, &["-n"], "mistyped", "results.git");
    told.says("warning: compeval.trust names alice@lba, who is not in the file of signers");
    lab.git("task", &["config", "--unset", "compeval.trust", "alice@lba"]);
    lab.git("task", &["config", "--add", "compeval.trust", "alice@lab c_none"]);
    let told = super::pull(&lab, &[], "mine", "results.git").exit(1);
    told.shows("pulled 1 call ")
        .shows("was not taken: it is signed by alice@lab, who is not trusted for it");
    evaluate(&lab, "mine").exit(0).called(vec!["twice"]);
    lab.git("task", &["config", "--add", "compeval.trust", "alice@lab c_twice"]);
    super::pull(&lab, &[], "all", "results.git").exit(0).shows("pulled 2 calls, 1 job");
    lab.git("task", &["config", "compeval.signers", "nowhere"]);
    let told = super::pull(&lab, &[], "all", "results.git").exit(2);
    told.says("the file of keys nowhere cannot be read");
}

#[test]
fn signers_are_read_before_anything_is_made() {
    let lab = signed();
    repository(&lab, "empty.git");
    for results in ["results.git", "empty.git"] {
        let told = super::pull(&lab, &["--signers", "nowhere"], "new", results).exit(2);
        told.says("the file of keys nowhere cannot be read");
        assert!(!lab.path("new").exists(), "{results}");
    }
}

#[test]
fn an_unsigned_record_that_replaced_a_signed_one_is_not_pulled() {
    let lab = signed();
    salt(&lab, "salt\n");
    evaluate(&lab, "poisoned").exit(0).called(vec!["once", "twice"]);
    repository(&lab, "poisoned.git");
    push(&lab, &[], "poisoned", "poisoned.git").exit(0);
    let record = file_of(&lab, ["c_twice/", "/record/"]);
    let poison = |lab: &Lab, dir: &str| {
        lab.git(dir, &["fetch", "--quiet", "../poisoned.git", "results"]);
        lab.git(dir, &["checkout", "--quiet", "FETCH_HEAD", "--", "c_twice"]);
    };
    change(&lab, &[], |dir| poison(&lab, dir));
    let told = pull(&lab, &[], "mine").exit(1).shows("pulled 1 call");
    told.shows("c_twice/")
        .shows("was not taken: the commit ")
        .shows("has put it in place of another one");
    evaluate(&lab, "mine").exit(0).called(vec!["twice"]);
    // Nor may a signer whom one trusts.
    lab.git("results.git", &["update-ref", "refs/heads/results", "results^"]);
    let options = as_signer(&lab, "bob");
    change(&lab, &options.iter().map(String::as_str).collect::<Vec<_>>(), |dir| poison(&lab, dir));
    let told = pull(&lab, &["--rewritten"], "again").exit(1).shows("pulled 1 call");
    told.shows("has put it in place of another one");
    // Its removal is reported, and so are the results that were made from it.
    change(&lab, &[], |dir| fs::remove_file(lab.path(dir).join(&record)).unwrap());
    let told = pull(&lab, &[], "third").exit(1);
    told.shows(&format!("{record} is there no more: the commit "));
    pull(&lab, &["--json"], "fourth").exit(1).shows(&format!(r#""removed":[{{"name":"{record}""#));
}

#[test]
fn a_commit_changed_after_signing_is_refused() {
    let lab = signed();
    let text = lab.git("results.git", &["cat-file", "commit", "results"]);
    fs::write(lab.path("commit"), text.replace("results: ", "other: ") + "\n").unwrap();
    let hash = ["hash-object", "-t", "commit", "-w", "../commit"];
    let forged = lab.git("results.git", &hash);
    lab.git("results.git", &["update-ref", "refs/heads/results", &forged]);
    let told = pull(&lab, &[], "mine").exit(1);
    told.shows("3 results were not taken, each since its signature is wrong, or its key revoked");
    let other = text.replace("SSH SIGNATURE", "PGP SIGNATURE");
    fs::write(lab.path("commit"), other + "\n").unwrap();
    let forged = lab.git("results.git", &hash);
    lab.git("results.git", &["update-ref", "refs/heads/results", &forged]);
    let told = pull(&lab, &["--rewritten"], "mine").exit(1);
    told.shows("3 results were not taken, each since it is signed, but not with an ssh key");
    assert!(!lab.path("home/.gnupg").exists(), "gpg was not started");
}

#[test]
fn a_key_that_was_stolen_can_be_revoked_or_expire() {
    let lab = signed();
    allow(&lab, &["alice"], "valid-before=\"20010101\"");
    pull(&lab, &[], "mine").exit(1).shows("each since it is signed with the key SHA256:");
    allow(&lab, &["alice"], "valid-before=\"29990101\"");
    pull(&lab, &["-n"], "mine").exit(3);
    let revoked = lab.path("revoked-keys");
    fs::copy(lab.path("keys/alice.pub"), &revoked).unwrap();
    let config = format!(
        "[safe]\n\tdirectory = *\n[gpg \"ssh\"]\n\trevocationFile = {}\n",
        revoked.display()
    );
    fs::write(lab.path("home/.gitconfig"), config).unwrap();
    // The remembered signatures count no more.
    pull(&lab, &[], "mine").exit(1).shows("its signature is wrong, or its key revoked");
    fs::copy(lab.path("keys/mallory.pub"), &revoked).unwrap();
    pull(&lab, &[], "mine").exit(0).shows("pulled 2 calls, 1 job");
}

/// Puts results of somebody into an inbox.
pub(super) fn into_inbox(lab: &Lab, who: &str, storage: &str) {
    let inbox = format!("inbox-{storage}.git");
    repository(lab, &inbox);
    match who {
        "nobody" => push(lab, &[], storage, &inbox).exit(0),
        who => push_as(lab, who, &[], [storage, &inbox]).exit(0),
    };
    let name = format!("results:refs/heads/ce-inbox/{storage}");
    lab.git(&inbox, &["push", "--quiet", "../results.git", &name]);
}

#[test]
fn a_collector_vouches_for_nobody_elses_results() {
    let lab = signed();
    evaluate_with(&lab, "of-bob", "b");
    into_inbox(&lab, "bob", "of-bob");
    evaluate_with(&lab, "of-nobody", "n");
    into_inbox(&lab, "nobody", "of-nobody");
    // The one who collects adds something, too, and signs everything.
    evaluate_with(&lab, "alice", "a");
    push_as(&lab, "alice", &["--collect"], ["alice", "results.git"]).exit(0).shows("took 2 of 2");
    let told = pull(&lab, &[], "mine").exit(1).shows("pulled 6 calls, 3 jobs");
    told.shows("3 results were not taken, each since it is not signed:");
    // A collector who does not sign, and is not known, may join all the same.
    evaluate_with(&lab, "more", "m");
    into_inbox(&lab, "bob", "more");
    push(&lab, &["--collect"], "none", "results.git").exit(5);
    fs::create_dir(lab.path("none")).unwrap();
    push(&lab, &["--collect"], "none", "results.git").exit(0).shows("took 1 of 1");
    pull(&lab, &[], "mine").exit(1).shows("pulled 2 calls, 1 job").shows("3 results were not");
}

#[test]
fn a_merge_with_more_than_a_join_vouches_for_its_own_changes() {
    let lab = signed();
    evaluate_with(&lab, "of-bob", "b");
    into_inbox(&lab, "bob", "of-bob");
    evaluate_with(&lab, "evil", "e");
    repository(&lab, "evil.git");
    push(&lab, &[], "evil", "evil.git").exit(0);
    let forge = |options: &[String]| {
        fs::create_dir_all(lab.path("forger")).unwrap();
        let git = |arguments: &[&str]| lab.git("forger", arguments);
        git(&["clone", "--quiet", "--branch", "results", "../results.git", "."]);
        git(&["fetch", "--quiet", "origin", "ce-inbox/of-bob"]);
        let merge =
            ["merge", "--quiet", "--no-commit", "--allow-unrelated-histories", "FETCH_HEAD"];
        git(&merge);
        // Something slips in with the merge.
        git(&["fetch", "--quiet", "../evil.git", "results"]);
        git(&["checkout", "--quiet", "FETCH_HEAD", "--", "c_once", "c_twice", "t_task"]);
        let mut commit: Vec<&str> = options.iter().map(String::as_str).collect();
        commit.extend(["commit", "--quiet", "--message", "merged"]);
        git(&commit);
        git(&["push", "--quiet", "--force", "origin", "HEAD:results"]);
        fs::remove_dir_all(lab.path("forger")).unwrap();
    };
    forge(&[]);
    let told = pull(&lab, &[], "mine").exit(1).shows("pulled 4 calls, 2 jobs");
    told.shows("3 results were not taken, each since it is not signed:");
    lab.git("results.git", &["update-ref", "refs/heads/results", "results^"]);
    forge(&as_signer(&lab, "bob"));
    pull(&lab, &["--rewritten"], "all").exit(0).shows("pulled 6 calls, 3 jobs");
}

#[test]
fn a_history_that_was_rewritten_is_refused() {
    let lab = signed();
    evaluate_with(&lab, "alice", "a");
    push(&lab, &[], "alice", "results.git").exit(0);
    let old = lab.git("results.git", &["rev-parse", "results"]);
    super::pull(&lab, &[], "mine", "results.git").exit(0);
    lab.git("results.git", &["update-ref", "refs/heads/results", "results^"]);
    let new = lab.git("results.git", &["rev-parse", "results"]);
    let expected = format!("was rewritten: {} is not an ancestor of {}\n", &old[..12], &new[..12]);
    for options in [&[][..], &["-n"], &["--signers", "../signers"]] {
        super::pull(&lab, options, "mine", "results.git")
            .exit(1)
            .says(&expected)
            .says("--rewritten");
    }
    // Nothing is left of a storage that did not exist.
    let refused = super::pull(&lab, &[], "new", "results.git").exit(1).says(&expected);
    assert!(!refused.stderr.contains("made a new storage"), "{}", refused.stderr);
    assert!(!lab.path("new").exists());
    super::pull(&lab, &["--rewritten"], "mine", "results.git").exit(0);
    super::pull(&lab, &[], "mine", "results.git").exit(0);
    lab.git("results.git", &["update-ref", "-d", "refs/heads/results"]);
    super::pull(&lab, &[], "mine", "results.git")
        .exit(1)
        .says(&format!("was deleted (it was at {})", &new[..12]))
        .says("--rewritten");
    // A user who has seen nothing believes it.
    fs::remove_dir_all(lab.path("cache")).unwrap();
    super::pull(&lab, &[], "mine", "results.git").exit(0).shows("has no results");
}

#[test]
fn nothing_is_pushed_if_it_cannot_be_signed() {
    let lab = lab();
    people(&lab);
    evaluate(&lab, "alice").exit(0);
    fs::remove_file(lab.path("keys/alice")).unwrap();
    let told = push_as(&lab, "alice", &[], ["alice", "results.git"]).exit(5);
    told.says("git commit-tree -S of ").says("failed: error: ");
    assert_eq!(lab.git("results.git", &["for-each-ref"]), "");
    // The identity of the user is not configured in git.
    push(&lab, &["--sign"], "alice", "results.git").exit(5).says("git commit-tree -S of ");
    push(&lab, &[], "alice", "results.git").exit(0);
    lab.git("task", &["config", "compeval.sign", "perhaps"]);
    push(&lab, &[], "alice", "results.git").exit(2).says("compeval.sign in ");
}

#[test]
fn repositories_name_no_programs_that_check_signatures() {
    let lab = signed();
    pull(&lab, &["-n"], "mine").exit(3);
    let program = lab.path("program");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", lab.path("started").display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text =
        format!("[gpg \"ssh\"]\n\tprogram = {0}\n[gpg]\n\tprogram = {0}\n", program.display());
    let mirrors = lab.path("cache/compeval/mirrors").read_dir().unwrap();
    let mirrors = mirrors.map(|it| it.unwrap().path()).filter(|it| it.is_dir());
    for dir in mirrors.chain([lab.path("task/.git"), lab.path("results.git")]) {
        let config = dir.join("config");
        fs::write(&config, fs::read_to_string(&config).unwrap() + &text).unwrap();
    }
    // All signatures are checked anew.
    let signers = fs::read_to_string(lab.path("signers")).unwrap();
    fs::write(lab.path("signers"), signers + "# nothing else\n").unwrap();
    pull(&lab, &[], "mine").exit(0);
    assert!(!lab.path("started").exists());
}
