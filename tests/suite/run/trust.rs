//! Repositories of somebody else: who may say that they can be trusted.

use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use crate::lab::{Lab, Library};
use crate::program::Ran;

const TASK: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// A laboratory that another user may read, and who that is.
fn lab(library: Library) -> Option<(Lab, u32)> {
    let lab = Lab::task(TASK).commit_with(library);
    let user = lab.another_user()?;
    let mut chmod = Command::new("chmod");
    assert!(chmod.args(["-R", "a+rX"]).arg(lab.path("")).status().unwrap().success());
    Some((lab, user))
}

/// Returns the task as the other user gets to see it with this environment.
fn look<'a>(lab: &'a Lab, user: u32, environment: &[(&str, &str)]) -> Ran<'a> {
    let mut command = lab.command("ce-run");
    command.args(["-n", "../storage", "../data/x", "../data/y"]).uid(user).env("HOME", "/nowhere");
    command.env("GIT_CONFIG_NOSYSTEM", "1").envs(environment.iter().copied());
    lab.finish(&mut command)
}

/// The same with settings as `git -c` passes them on to a program, by Git itself.
fn look_through_git<'a>(lab: &'a Lab, user: u32, settings: &[&str]) -> Ran<'a> {
    let run = lab.command("ce-run");
    let mut git = Command::new("git");
    git.env_clear().envs(run.get_envs().filter_map(|(name, value)| Some((name, value?))));
    git.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    git.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    git.env("HOME", "/nowhere")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .current_dir(lab.path("data"))
        .uid(user);
    for setting in settings {
        git.args(["-c", setting]);
    }
    let program = run.get_program().to_str().unwrap();
    let task = lab.path("task");
    let alias = format!(
        "alias.look=!cd '{}' && '{program}' -n ../storage ../data/x ../data/y",
        task.display()
    );
    git.args(["-c", &alias, "look"]);
    lab.finish(&mut git)
}

const TOLD: &str = "the repository at LAB/task belongs to another user";

#[test]
fn the_environment_can_mark_a_repository_as_safe() {
    for library in [Library::Plain, Library::Submodule] {
        let Some((lab, user)) = lab(library) else { return };
        let [task, submodule] = ["task", "task/computations"].map(|dir| lab.path(dir));
        let [task, submodule] = [&task, &submodule].map(|dir| dir.to_str().unwrap());
        let place = lab.path("");
        let above = format!("{}*", lab.path("").display());
        look(&lab, user, &[]).exit(2).says(TOLD);
        let count = |values: &[&str]| {
            let count = values.len().to_string();
            let mut environment = vec![("GIT_CONFIG_COUNT".to_owned(), count)];
            for (number, value) in values.iter().enumerate() {
                environment.push((format!("GIT_CONFIG_KEY_{number}"), "safe.directory".to_owned()));
                environment.push((format!("GIT_CONFIG_VALUE_{number}"), (*value).to_owned()));
            }
            environment
        };
        // Each list, and whether Git takes it for trust in the task and its submodule.
        let lists: &[(&[&str], bool)] = &[
            (&["*"], true),
            (&[task, submodule], true),
            (&[&above], true),
            (&["/nowhere", task, submodule], true),
            (&["*", ""], false),
            (&["", "*"], true),
            (&["/nowhere"], false),
            (&["task"], false),
            (&[place.to_str().unwrap()], false),
        ];
        for (values, trusted) in lists {
            let environment = count(values);
            let environment: Vec<_> =
                environment.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            let settings: Vec<String> =
                values.iter().map(|value| format!("safe.directory={value}")).collect();
            let settings: Vec<&str> = settings.iter().map(String::as_str).collect();
            for ran in [look(&lab, user, &environment), look_through_git(&lab, user, &settings)] {
                if *trusted {
                    ran.exit(3);
                } else {
                    ran.exit(2).says("belongs to another user");
                }
            }
        }
    }
}

#[test]
fn a_repository_is_trusted_by_the_settings_of_its_reader_and_cannot_mark_itself() {
    let Some((lab, user)) = lab(Library::Plain) else { return };
    let home = lab.path("home");
    look(&lab, user, &[("HOME", home.to_str().unwrap())]).exit(3);
    let advice = "try: if you trust it: git config --global --add safe.directory LAB/task";
    look(&lab, user, &[]).exit(2).says(advice);
    for setting in [["safe.directory", "*"], ["core.worktree", "/"], ["core.bare", "true"]] {
        lab.git("task", &["config", setting[0], setting[1]]);
        look(&lab, user, &[]).exit(2).says(TOLD);
    }
}

#[test]
fn a_trusted_repository_is_read_with_its_configuration() {
    let Some((lab, user)) = lab(Library::Plain) else { return };
    lab.git("task", &["config", "compeval.jobs", "many"]);
    let trust = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
    ];
    look(&lab, user, &trust).exit(2).says("compeval.jobs in LAB/task/.git/config is \"many\"");
    lab.git("task", &["config", "--unset", "compeval.jobs"]);
    look_through_git(&lab, user, &["safe.directory=*", "compeval.jobs=few"])
        .exit(2)
        .says("is \"few\", which is not a number");
    fs::remove_dir_all(lab.path("task/.git/info")).unwrap_or_default();
    look(&lab, user, &trust).exit(3);
}
