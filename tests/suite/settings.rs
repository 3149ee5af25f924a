//! Settings that users keep in Git's configuration.

use std::fs;

use compeval::executor::scheduler::Setting;
use compeval::executor::slurm::SlurmSettings;
use compeval::git::{Config, ConfigEntry};

use crate::isolation::is_possible;
use crate::lab::Lab;

const SUM: &str = "Inputs: 'x', 'y'\n(add INPUT('x') INPUT('y'))[0]";
const FILES: [&str; 2] = ["../data/x", "../data/y"];

fn lab() -> Lab {
    Lab::task(SUM).commit()
}

/// Returns the path of the output, evaluated with these arguments in a directory of the laboratory.
#[track_caller]
fn output(lab: &Lab, dir: &str, arguments: &[&str]) -> String {
    let mut command = lab.command("ce-run");
    command.current_dir(lab.path(dir)).arg("-q").args(arguments);
    lab.finish(&mut command).exit(0).stdout
}

#[test]
fn a_storage_in_the_configuration_need_not_be_given() {
    let lab = lab();
    lab.git("task", &["config", "compeval.storage", "../kept"]);
    // The output at a commit may be reported without a look at the task.
    assert!(output(&lab, "task", &["--at", "HEAD", FILES[0], FILES[1]]).starts_with("../kept/c_"));
    assert!(output(&lab, "task", &FILES).starts_with("../kept/c_add/"));
    assert!(lab.run("ce-viz", &FILES).exit(0).stdout.contains("kept"));
    lab.run("ce-run", &["-n", "../other", FILES[0], FILES[1]]).exit(3).shows("../other/c_add/");
    assert!(!lab.path("other").exists(), "the one that is given counts");
    for (arguments, given) in [(&FILES[..1], "1 is"), (&["a", "b", "c", "d"], "4 are")] {
        let ran = lab.run("ce-run", arguments).exit(2);
        let ran = ran.says(&format!("takes 2 inputs (x, y), and {given} given"));
        ran.says("try: give the storage if not compeval.storage, and a file for each");
    }
    lab.run("ce-run", &["../kept", FILES[0]]).exit(2).says("cannot read the input x, ../kept");
}

#[test]
fn a_storage_is_never_guessed() {
    let lab = lab();
    lab.run("ce-run", &[]).exit(2).says("no storage is given, and Git's configuration has no");
    lab.run("ce-run", &FILES).exit(2).says("and 1 is given").says("try: give the storage first,");
    assert!(!lab.path("data/x/tinputs").exists());
}

#[test]
fn a_relative_storage_begins_at_the_top_of_the_work_tree() {
    let lab = lab();
    fs::create_dir_all(lab.path("top/tasks")).unwrap();
    fs::remove_dir_all(lab.path("task/.git")).unwrap();
    fs::rename(lab.path("task"), lab.path("top/tasks/task")).unwrap();
    lab.git("top", &["init", "-q"]);
    lab.git("top", &["add", "-A"]);
    lab.git("top", &["commit", "-qm", "all"]);
    lab.git("top", &["config", "compeval.storage", "kept"]);
    let files = ["../../../data/x", "../../../data/y"];
    let path = output(&lab, "top/tasks/task", &files);
    assert!(path.starts_with("../../kept/c_add/"), "{path}");
    let path = output(&lab, "data", &["--task", "../top/tasks/task", "x", "y"]);
    assert!(path.starts_with("../top/tasks/task/../../kept/c_add/"), "{path}");
    std::os::unix::fs::symlink("../top/tasks/task", lab.path("data/link")).unwrap();
    let path = output(&lab, "data", &["--task", "link", "x", "y"]);
    assert!(fs::exists(lab.path("data").join(path.trim())).unwrap());
    assert_eq!(fs::read_dir(lab.path("top/kept/tinputs")).unwrap().count(), 3);
}

#[test]
fn the_configuration_is_read_as_git_reads_it() {
    let lab = lab();
    let storage = |line: &str| {
        let path = output(&lab, "task", &FILES);
        assert_eq!(path.split("/c_add").next().unwrap(), line);
    };
    let global = |text: &str| {
        let text = format!("[safe]\n\tdirectory = *\n{text}");
        fs::write(lab.path("home/.gitconfig"), text).unwrap();
    };
    global("[compeval]\n\tstorage = ~/global\n[compeval \"other\"]\n\tstorage = /wrong\n");
    storage("LAB/home/global");
    fs::write(lab.path("home/more"), "[CompEval]\n\tStorage = ../included\n").unwrap();
    global("[compeval]\n\tstorage = ~/global\n[include]\n\tpath = more\n");
    storage("../included");
    lab.git("task", &["config", "compeval.storage", "../local"]);
    storage("../local");
    lab.git("task", &["config", "extensions.worktreeConfig", "true"]);
    lab.git("task", &["config", "--worktree", "compeval.storage", "../worktree"]);
    storage("../worktree");
    let told = lab.git("task", &["config", "compeval.storage"]);
    assert_eq!(told, "../worktree", "git itself");
}

#[test]
fn numbers_and_booleans_are_written_as_git_writes_them() {
    let lab = lab();
    let config = || Config::read(&lab.path("task")).unwrap();
    assert_eq!(config().isolate().unwrap(), None);
    for (text, isolate) in [("true", true), ("no", false), ("on", true), ("0", false)] {
        lab.git("task", &["config", "compeval.isolate", text]);
        assert_eq!(config().isolate().unwrap(), Some(isolate), "{text}");
    }
    for (text, jobs) in [("3", 3), ("1k", 1024)] {
        lab.git("task", &["config", "compeval.jobs", text]);
        assert_eq!(config().jobs().unwrap().unwrap().get(), jobs, "{text}");
    }
    let file = lab.path("task/.git/config");
    fs::write(&file, fs::read_to_string(&file).unwrap() + "[compeval]\n\tisolate\n").unwrap();
    assert_eq!(config().isolate().unwrap(), Some(true));
}

#[test]
fn a_wrong_value_is_reported_with_its_file() {
    let lab = lab();
    for (key, value, kind) in [
        ("jobs", "many", "number from 1"),
        ("takeover", "all", "rule: write isolated or tree"),
        ("jobs", "0", "number from 1"),
        ("jobs", "-2", "number from 1"),
        ("storage", "", "path of a directory"),
        ("storage", "~nobody-of-this-name/a", "path of a directory"),
    ] {
        let name = format!("compeval.{key}");
        lab.git("task", &["config", &name, value]);
        lab.run("ce-run", &["../storage", FILES[0], FILES[1]]).exit(2).says(&format!(
            "ce-run: {name} in LAB/task/.git/config is {value:?}, which is not a {kind}\n"
        ));
        lab.git("task", &["config", "--unset", &name]);
    }
    assert!(!lab.path("storage").exists());
    lab.git("task", &["config", "compeval.jobs", "many"]);
    lab.run("ce-run", &["-j1", "../storage", FILES[0], FILES[1]]).exit(0);
    lab.git("task", &["config", "compeval.isolate", "perhaps"]);
    let error = Config::read(&lab.path("task")).unwrap().isolate().unwrap_err().to_string();
    assert!(error.contains("is \"perhaps\", which is not a boolean"), "{error}");
}

#[test]
fn options_of_isolation_override_the_configuration() {
    let lab = Lab::task("Inputs: 'x'\n(look INPUT('x'))[0]").computation(
        "look",
        "a",
        "b",
        "ls -d LAB/data/x >\"$2\" 2>&1 || echo apart >\"$2\"",
    );
    let exec = fs::read_to_string(lab.path("task/computations/look/exec")).unwrap();
    let exec = exec.replace("LAB/", &format!("{}/", lab.path("").display()));
    let lab = lab.file("computations/look/exec", exec).isolated().commit();
    let apart = |options: &[&str]| {
        drop(fs::remove_dir_all(lab.path("storage")));
        lab.ce_run(options).exit(0);
        lab.output() == "apart\n"
    };
    if !is_possible() {
        return;
    }
    assert!(apart(&[]));
    assert!(!apart(&["--no-isolate"]));
    lab.git("task", &["config", "compeval.isolate", "false"]);
    assert!(!apart(&[]));
    assert!(apart(&["--isolate"]));
    assert!(apart(&["--no-isolate", "--isolate"]));
    assert!(!apart(&["--isolate", "--no-isolate"]));
    lab.git("task", &["config", "compeval.isolate", "perhaps"]);
    lab.ce_run(&[]).exit(2).says("is \"perhaps\", which is not a boolean");
}

#[test]
fn settings_of_slurm_are_read_with_their_places() {
    let lab = lab();
    let config = "[compeval \"slurm\"]\n\toptions = --one\n\tPartition = fast\n\toptions = --two\n\
                  [compeval]\n\tjobs = 2\n[compeval \"other\"]\n\toptions = --no\n\
                  [compeval \"slurm\"]\n\toptions\n\toptions = --three=3\n\tpending = none\n";
    let file = lab.path("task/.git/config");
    fs::write(&file, fs::read_to_string(&file).unwrap() + config).unwrap();
    let entries = Config::read(&lab.path("task")).unwrap().subsection("slurm");
    let settings =
        entries.iter().map(|ConfigEntry { key, value, file }| Setting { key, value, place: file });
    let errors = SlurmSettings::new(settings.clone()).unwrap_err();
    let text = errors.to_string();
    let place = file.canonicalize().unwrap();
    let place = place.display();
    let wrong = "is \"none\", which is not such a number";
    assert_eq!(text, format!("compeval.slurm.pending in {place} {wrong}"));
    let settings = SlurmSettings::new(settings.filter(|it| it.key != "pending")).unwrap();
    assert_eq!(settings.partition.as_deref(), Some("fast"));
    assert_eq!(settings.options, ["--three=3"], "an empty text empties the list");
    lab.git("task", &["config", "--add", "compeval.slurm.options", "--four"]);
    let entries = Config::read(&lab.path("task")).unwrap().subsection("slurm");
    let options = entries.iter().filter(|entry| entry.key == "options");
    let options: Vec<_> = options.map(|entry| &*entry.value).collect();
    assert_eq!(options, ["--one", "--two", "", "--three=3", "--four"]);
}

#[test]
fn trust_is_read_from_all_lines_and_outside_of_repositories() {
    let lab = lab();
    let config = || Config::read(&lab.path("task")).unwrap();
    assert_eq!(config().trust().unwrap(), Vec::<String>::new());
    assert!(config().signers().unwrap().is_none() && config().require().unwrap().is_none());
    fs::write(
        lab.path("task/.git/config"),
        fs::read_to_string(lab.path("task/.git/config")).unwrap()
            + "[compeval]\n\ttrust = alice c_*\n\tsigners = keys/signers\n\trequire = 2\n\tsign = yes\n\
               [compeval \"other\"]\n\ttrust = mallory\n[compeval]\n\ttrust = bob\n",
    )
    .unwrap();
    assert_eq!(config().trust().unwrap(), ["alice c_*", "bob"]);
    assert!(config().signers().unwrap().unwrap().ends_with("task/keys/signers"));
    assert_eq!(config().require().unwrap().map(Into::into), Some(2_usize));
    assert_eq!(config().sign().unwrap(), Some(true));
    // Without a repository, the user's configuration is read through another repository's directory.
    let outside = Config::around(&lab.path("data"), &lab.path("task")).unwrap();
    assert_eq!(outside.signers().unwrap().unwrap(), lab.path("data").join("keys/signers"));
    for (key, value, kind) in [
        ("sign", "perhaps", "boolean"),
        ("signers", "", "path of a file"),
        ("require", "0", "number from 1"),
        ("trust", "", "name of a signer"),
    ] {
        lab.git("task", &["config", "--replace-all", &format!("compeval.{key}"), value]);
        let config = config();
        let error = match key {
            "sign" => config.sign().map(drop),
            "signers" => config.signers().map(drop),
            "require" => config.require().map(drop),
            _ => config.trust().map(drop),
        };
        let error = error.unwrap_err().to_string();
        assert!(error.contains(&format!("compeval.{key} in ")) && error.contains(kind), "{error}");
    }
}
