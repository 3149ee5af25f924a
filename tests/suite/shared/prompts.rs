//! Prompts for passwords: the user at a terminal who pushes or pulls is asked, and nobody else.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::{evaluate, lab};
use crate::lab::Lab;
use crate::terminal::{Shown, Terminal};

/// A repository that cannot be reached, since the ssh there is a decoy.
const URL: &str = "ssh://lab.example/results.git";

/// Makes an ssh that notes how it was started, and connects to nothing.
fn decoy(lab: &Lab, name: &str) -> String {
    let place = lab.path("bin").join(name);
    fs::create_dir_all(lab.path("bin")).unwrap();
    let script = format!(
        "#!/bin/sh\necho \"$* prompt=$GIT_TERMINAL_PROMPT askpass=${{GIT_ASKPASS-none}} ssh=${{SSH_ASKPASS-none}}\" >>'{}'\nexit 255\n",
        lab.path("asked").display()
    );
    fs::write(&place, script).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    place.to_str().unwrap().to_owned()
}

/// `ce` with decoys for everything that asks.
fn command(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = lab.command("ce");
    let path = std::env::var("PATH").unwrap();
    command.args(arguments).arg(URL);
    command.env("PATH", format!("{}:{path}", lab.path("bin").display()));
    command.env("GIT_ASKPASS", "ask").env("SSH_ASKPASS", "ask");
    command
}

/// Returns the arguments and the environment with which the decoy was started last.
fn asked(lab: &Lab) -> String {
    let text = fs::read_to_string(lab.path("asked")).unwrap();
    fs::remove_file(lab.path("asked")).unwrap();
    text.lines().last().unwrap().to_owned()
}

const SILENT: &str = "prompt=0 askpass= ssh=none";

#[test]
fn without_a_terminal_nobody_is_asked() {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    let (ssh, other) = (decoy(&lab, "ssh"), decoy(&lab, "other"));
    let commands: [&[&str]; 3] =
        [&["pull", "../mine"], &["push", "../storage"], &["gc", "../storage", "--published"]];
    for arguments in commands {
        lab.finish(&mut command(&lab, arguments)).exit(5).says("ls-remote");
        let told = asked(&lab);
        assert!(told.contains("-o BatchMode=yes") && told.ends_with(SILENT), "{told}");
    }
    // The command that is configured stays, and another program has options of its own.
    let configured = |ssh: &str| {
        let text = format!("[safe]\n\tdirectory = *\n[core]\n\tsshCommand = {ssh} -i key\n");
        fs::write(lab.path("home/.gitconfig"), text).unwrap();
    };
    for (program, is_known) in [(&ssh, true), (&other, false)] {
        configured(program);
        lab.finish(&mut command(&lab, &["pull", "../mine"])).exit(5);
        let told = asked(&lab);
        assert!(told.starts_with("-i key ") && told.ends_with(SILENT), "{told}");
        assert_eq!(told.contains("-o BatchMode=yes"), is_known, "{told}");
        let mut given = command(&lab, &["pull", "../mine"]);
        lab.finish(given.env("GIT_SSH_COMMAND", format!("{program} -4"))).exit(5);
        let told = asked(&lab);
        assert!(told.starts_with("-4 "), "{told}");
        assert_eq!(told.contains("-o BatchMode=yes"), is_known, "{told}");
    }
}

#[test]
fn at_a_terminal_a_push_and_a_pull_may_ask_and_a_collection_may_not() {
    let lab = lab();
    evaluate(&lab, "storage").exit(0);
    decoy(&lab, "ssh");
    for (arguments, may_ask) in [
        (&["pull", "../mine"][..], true),
        (&["push", "../storage"], true),
        (&["gc", "../storage", "--published"], false),
    ] {
        let terminal = Terminal::start(&command(&lab, arguments), 80, Shown::Both);
        let (status, text) = terminal.end();
        assert_eq!(status.code(), Some(5), "{text}");
        let told = asked(&lab);
        assert_eq!(told.contains("BatchMode"), !may_ask, "{told}");
        let end = if may_ask { "prompt= askpass=ask ssh=ask" } else { SILENT };
        assert!(told.ends_with(end), "{told}");
        // A user who does not see the question is not asked.
        let terminal = Terminal::start(&command(&lab, arguments), 80, Shown::Output);
        terminal.end();
        assert!(asked(&lab).ends_with(SILENT));
    }
}
