//! Help: the commands in groups, examples at the end of `--help`, the manual pages, and the tips of errors in arguments.
//!
//! One table has the groups, and one the examples of all commands.

use std::io::{self, Write};
use std::path::Path;

use ce_executor::note_unwritten;
use clap::Command;
use clap::builder::{StyledStr, Styles};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap_mangen::Man;

use ce_files::umask;
use ce_report::coloured;

/// Commands that belong together, each with its description.
struct CommandGroup {
    title: &'static str,
    /// The options that most users need, the most used ones first.
    common: &'static [(&'static str, &'static str)],
    /// The options that `ce help --all` shows beside them.
    others: &'static [(&'static str, &'static str)],
}

/// All commands.
const GROUPS: [CommandGroup; 6] = [
    CommandGroup {
        title: "Write",
        common: &[
            ("init", "Make a task that runs at once"),
            ("add", "Copy computations of the library into a task"),
            ("check", "Report every problem of a task"),
            ("viz", "Draw the workflow of a task"),
        ],
        others: &[
            ("convert", "Give a workflow its other form: one text, or directories"),
            ("sym", "Print a workflow as a LISP-like expression"),
        ],
    },
    CommandGroup {
        title: "Run",
        common: &[
            ("run", "Evaluate a task: compute what is missing"),
            ("status", "Show runs, workers and suspended calls"),
            ("explain", "Explain why calls would run"),
            ("worker", "Execute what runs with --on workers have queued"),
        ],
        others: &[("cancel", "End suspended calls")],
    },
    CommandGroup {
        title: "Look",
        common: &[
            ("show", "Show what made a file, or what a call has printed"),
            ("log", "List calls by time"),
            ("table", "Show the table of a sweep as far as it is there"),
            ("report", "Write a page about results for any browser"),
            ("shell", "Look into the sandbox of a call"),
        ],
        others: &[],
    },
    CommandGroup {
        title: "Compare",
        common: &[
            ("compare", "Compare medians of two levels, commits or files"),
            ("diff", "Compare the outputs of two versions of a task"),
            ("bisect", "Find the commit that has changed an output"),
        ],
        others: &[("commits", "List commits as values of an input")],
    },
    CommandGroup {
        title: "Share",
        common: &[
            ("export", "Copy results to a directory, under readable names"),
            ("push", "Add results to a Git repository"),
            ("pull", "Take results from a Git repository"),
        ],
        others: &[("cite", "Print what a paper needs to name a result")],
    },
    CommandGroup {
        title: "Maintain",
        common: &[
            ("gc", "List or collect unused results"),
            ("verify", "Compare every file of a storage with its record"),
            ("doctor", "Probe whether this host can keep the promises of a storage"),
        ],
        others: &[
            ("pin", "Keep results from being collected"),
            ("audit", "Execute recorded calls again, and compare"),
            ("help", "Print this, or the help of a command"),
            ("completions", "Print the completions of a program for a shell"),
            ("man", "Write the manual pages"),
        ],
    },
];

/// Returns the template of the help of `ce`: its common commands in groups, or all of them.
pub(super) fn template(all: bool) -> String {
    let header = *Styles::default().get_header();
    let mut text = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for CommandGroup { title, common, others } in &GROUPS {
        text.extend([format!("\n{header}{title}:{header:#}\n")]);
        let others = if all { *others } else { &[] };
        let lines = common.iter().chain(others);
        text.extend(lines.map(|(command, what)| format!("  {command:<11}  {what}\n")));
    }
    let more = if all { "" } else { "ce help --all lists all commands. " };
    text + &format!(
        "\n{header}Options:{header:#}\n{{options}}\n\n{more}ce help COMMAND has examples."
    )
}

/// The names of all commands.
pub(super) fn commands() -> impl Iterator<Item = &'static str> {
    GROUPS.iter().flat_map(|it| it.common.iter().chain(it.others)).map(|(command, _)| *command)
}

/// Prints the help of `ce`, with all commands if they are asked for, or of one of them.
pub(super) fn print_help(program: Command, all: bool, command: Option<&str>) -> io::Result<()> {
    let program = if all { program.help_template(template(true)) } else { with_examples(program) };
    let words = ["ce"].into_iter().chain(command).chain(["--help"]);
    program.try_get_matches_from(words).err().map_or(Ok(()), |help| print_clap(&help))
}

/// The examples of a command, and the commands related to it.
struct CommandExamples {
    /// The command, without `ce`.
    command: &'static str,
    /// Command lines, each with its effect.
    pub(super) lines: &'static [(&'static str, &'static str)],
    /// Commands that are often needed beside it.
    related: &'static [&'static str],
}

/// Returns the examples of a program or command: `ce gc`, `ce-gc` and `gc` are one. None of `ce` itself.
fn examples_of(name: &str) -> Option<&'static CommandExamples> {
    let name = name.strip_prefix("ce-").or_else(|| name.strip_prefix("ce ")).unwrap_or(name);
    EXAMPLES.iter().find(|it| it.command == name)
}

/// Returns a program whose long help ends with examples, as does the help of its commands.
pub(super) fn with_examples(mut program: Command) -> Command {
    program.build();
    let program = program.mut_subcommands(with_examples);
    let Some(examples) = examples_of(program.get_name()) else { return program };
    let mut help = program.get_after_help().map(ToString::to_string).unwrap_or_default();
    help.push_str("\n\nExamples:");
    let lines = examples.lines.iter().map(|(line, what)| format!("\n  {line}\n      {what}"));
    help.extend(lines);
    program.after_long_help(help.trim_start().to_owned())
}

macro_rules! examples {
    ($($command:literal: [$($line:literal => $what:literal),+ $(,)?] see [$($related:literal),*];)*) => {
        const EXAMPLES: &[CommandExamples] = &[$(CommandExamples {
            command: $command,
            lines: &[$(($line, $what)),+],
            related: &[$($related),*],
        }),*];
    };
}

examples! {
    "run": [
        "ce run ../results data/x data/y" => "Execute what is missing, and print where each result is.",
        "ce run -n ../results x=data/x y=data/y" => "Show what would be executed, and why. Nothing is written.",
        "ce run -q -p size=1000 --each seed=1,2,3 ../results" => "Evaluate the task for three seeds; print the outputs only.",
        "ce run --only align ../results data/x data/y" => "Execute one computation, and what it needs.",
        "ce run --on slurm --detach ../results" => "Execute calls as jobs of Slurm, in the background.",
    ] see ["explain", "status", "show", "worker"];
    "sym": [
        "ce sym" => "Print the workflow of the task that you are in.",
        "ce sym --labels --at v1" => "Print it with its labels, as it was at the tag v1.",
    ] see ["convert", "check", "viz"];
    "viz": [
        "ce viz -o workflow.svg" => "Draw the workflow.",
        "ce viz -o workflow.svg ../results data/x data/y" => "Draw it, and mark the results that are there.",
    ] see ["sym", "run"];
    "check": [
        "ce check" => "Report every problem of the task that you are in.",
        "ce check --task ../words --at HEAD~1" => "Report the problems of another task, as it was a commit ago.",
    ] see ["run", "convert", "init"];
    "init": [
        "ce init ../words" => "Make a task that runs at once in a new directory, which becomes a Git repository.",
        "ce init --directories --computation count ../words" => "Make a task whose workflow is in directories, with a first computation.",
    ] see ["add", "check", "convert"];
    "add": [
        "ce add" => "List the computations of the library.",
        "ce add field plot" => "Copy two of them into computations/ of the task that you are in.",
        "ce add --diff plot" => "Show what the task has changed in one.",
    ] see ["init", "check"];
    "convert": [
        "ce convert --to text" => "Make workflow.ce of the directories of the task that you are in.",
        "ce convert --to directories --task ../words" => "Make directories of the text of another task.",
    ] see ["sym", "check"];
    "compare": [
        "ce compare --task . --by version=v5.3,v5.4 ../results" => "Compare two levels of a factor of the sweep.",
        "ce compare --task . --at v1 --at HEAD ../results" => "Compare the tables of two commits.",
        "ce compare --better less --fail-on worse old.csv new.csv" => "Fail if a median of a file is worse.",
    ] see ["table", "diff", "report"];
    "diff": [
        "ce diff v1..v2 ../results data/x data/y" => "Compare the outputs of two versions, and execute what is missing for that.",
        "ce diff -n HEAD~1 ../results data/x data/y" => "Compare what is there with the task as it is checked out.",
        "ce diff -n --json v1..v2 ../results data/x data/y" => "Print the comparison as JSON.",
    ] see ["bisect", "compare", "explain"];
    "bisect": [
        "ce bisect --good v1 --bad HEAD ../results data/x data/y" => "Find the first commit after which an output differs.",
        "ce bisect --good v1 --bad HEAD ../results data/x -- grep -q ok" => "Find the first one at which a test of the outputs fails.",
    ] see ["diff", "commits"];
    "explain": [
        "ce explain ../results data/x data/y" => "Say why calls would be executed, and how long that takes.",
    ] see ["run", "diff", "show"];
    "doctor": [
        "ce doctor" => "Check whether computations can be isolated on this host.",
        "ce doctor ../results" => "Check whether the file system and the host can keep all promises.",
    ] see ["verify"];
    "verify": [
        "ce verify ../results" => "Read every file, and compare it with its record.",
        "ce verify --sample 10 --since 7d ../results" => "Check a tenth of what was recorded in the last week.",
        "ce verify --repair ../results" => "Quarantine damaged results, so that the next run makes them again.",
    ] see ["doctor", "audit", "gc"];
    "show": [
        "ce show ../results ../results/t_arith/66d571cf81ed/00/ad48_5d94" => "Show what a file was made from.",
        "ce show ../results 52d8f36b" => "Show it of the file whose SHA-1 begins with these digits.",
        "ce show --log --follow ../results 52d8f36b" => "Follow what a running call prints.",
        "ce show --manifest ../tools-1" => "Print the text that identifies a directory.",
    ] see ["explain", "cite", "log", "shell"];
    "shell": [
        "ce shell ../results ad48103e" => "Open a shell that has what the call with these inputs has had.",
        "ce shell ../results/c_align/1f0c2ab34d5e/ad48103e4fc7 -- head /inputs/00" => "Execute one command there.",
        "ce shell --keep ../results ad48103e" => "Keep what is made there.",
    ] see ["show", "log", "run"];
    "export": [
        "ce export ../results t_arith/66d571cf81ed/ad48_5d94 ../for-ada" => "Make a directory with the outputs of a job.",
        "ce export --all --link ../results t_arith/66d571cf81ed/ad48_5d94 ../all" => "Link to all its intermediate results, too.",
        "ce export --crate --license MIT ../results t_arith/66d571cf81ed/ad48_5d94 ../arith.zip" => "Make an RO-Crate for an archive.",
    ] see ["show", "cite", "push"];
    "cite": [
        "ce cite ../results 52d8f36b" => "Print a sentence for a paper.",
        "ce cite --format bibtex ../results 52d8f36b" => "Print an entry for BibTeX.",
    ] see ["show", "export", "pin"];
    "log": [
        "ce log -n 20 ../results" => "List the last twenty calls.",
        "ce log --failed ../results" => "List the calls that failed.",
        "ce log --resources --computation align ../results" => "Compare what a computation asks for with what it uses.",
    ] see ["show", "status", "table"];
    "gc": [
        "ce gc ../results" => "List what no recorded repository needs. Nothing is deleted.",
        "ce gc --older 90d --delete ../results" => "Delete that, unless it was recorded in the last 90 days.",
        "ce gc --recomputable --delete ../results" => "Remove outputs that can be made again, and keep their records.",
    ] see ["pin", "verify", "push"];
    "pin": [
        "ce pin ../results" => "List all pins.",
        "ce pin --note figure-3 ../results 52d8f36b" => "Keep a result, and all that it was made from.",
        "ce pin --remove ../results 52d8f36b" => "Let it go.",
    ] see ["gc", "cite"];
    "push": [
        "ce push ../results git@example.org:results.git" => "Add the results of a storage to a repository.",
        "ce push --attest ../results" => "Say of calls that are there already that they were executed here, too.",
        "ce push --limit 10M -n ../results" => "Say what would be pushed to the configured one, without larger files.",
    ] see ["pull", "audit", "gc"];
    "pull": [
        "ce pull ../results git@example.org:results.git" => "Take the results of a repository into a storage.",
        "ce pull --require 2 ../results" => "Take only those that two trusted signers have had alike.",
    ] see ["push", "audit", "run"];
    "audit": [
        "ce audit -n --sample 10% ../results" => "Say which tenth of the calls would be executed again.",
        "ce audit --budget 2h ../results" => "Execute as many calls again as fit into two hours, and compare.",
        "ce audit ../results c_mul/66d571cf81ed/ad48_5d94" => "Execute one call again.",
    ] see ["verify", "push", "log"];
    "commits": [
        "ce commits -n 50 ../library" => "List the last fifty commits of a repository.",
        "ce commits --first-parent ../library v1..main -- src" => "List the commits of a range that have changed src.",
    ] see ["bisect", "table"];
    "table": [
        "ce table ../results" => "Show the rows of the task's sweep that are there.",
        "ce table --csv ../results" => "Print them for a spreadsheet.",
        "ce table --at v1 --at HEAD ../results" => "Compare the tables of two versions.",
    ] see ["run", "status", "compare"];
    "report": [
        "ce report ../results" => "Write a page about a storage: report.html.",
        "ce report -o nile.html --task ../nile ../results data/x" => "Write one about a task, with calls that are missing.",
    ] see ["show", "table", "export"];
    "worker": [
        "ce worker ../results" => "Execute what runs with --on workers have queued, until it is interrupted.",
        "ce worker -j 8 --idle 10min ../results" => "Use eight cpus, and end when there was nothing to do for ten minutes.",
    ] see ["run", "status"];
    "status": [
        "ce status ../results" => "Show runs, workers and suspended calls.",
        "ce status --watch ../results" => "Go on showing them.",
    ] see ["run", "worker", "cancel"];
    "cancel": [
        "ce cancel ../results c_sum-queued/66d571cf81ed/ad48" => "End what a suspended call has started.",
        "ce cancel --all ../results" => "End what all of them have started.",
        "ce cancel --forget ../results c_sum-queued/66d571cf81ed/ad48" => "Only remove the directory of one.",
    ] see ["status"];
    "help": [
        "ce help --all" => "List all commands.",
        "ce help run" => "Print the help of one, with examples.",
    ] see ["check", "doctor"];
    "completions": [
        "ce completions fish" => "Print the completions of ce for fish.",
        "ce completions bash ce-run" => "Print the completions of ce-run for Bash.",
    ] see ["man"];
    "man": [
        "ce man /usr/local/share/man/man1" => "Write the manual pages where man finds them.",
    ] see ["completions"];
}

/// Writes the pages of a program and of its commands into a directory.
///
/// # Errors
///
/// Fails if a page cannot be written.
pub(super) fn write_pages(program: Command, directory: &Path) -> io::Result<()> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    for command in program.get_subcommands() {
        write_page(command, directory)?;
    }
    write_page(&program, directory)
}

fn write_page(command: &Command, directory: &Path) -> io::Result<()> {
    let source = format!("CompEval {}", command.get_version().unwrap_or_default());
    let manual = Man::new(command.clone()).source(source).manual("CompEval Manual");
    let mut page = Vec::new();
    manual.render(&mut page)?;
    let page = String::from_utf8(page).map_err(io::Error::other)?;
    let page = page.replace("\n.SH EXTRA\n", "\n.SH NOTES\n");
    let end = page.find("\n.SH VERSION\n").unwrap_or(page.len());
    let (body, version) = page.split_at(end);
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = format!("{body}{}{version}", examples_of(name).map_or(OF_ALL.into(), sections));
    umask::write(directory.join(manual.get_filename()), page)
}

/// The pages that the page of all commands refers to.
const OF_ALL: &str = "\n.SH \"SEE ALSO\"\n\\fBgit\\fR(1)";

/// The sections of examples and of pages beside one.
fn sections(examples: &CommandExamples) -> String {
    let mut text = "\n.SH EXAMPLES".to_owned();
    for (line, what) in examples.lines {
        text.extend(["\n.TP\n\\fB", &escaped(line), "\\fR\n", &escaped(what)]);
    }
    text.push_str("\n.SH \"SEE ALSO\"\n\\fBce\\fR(1)");
    for command in examples.related {
        text.extend([", \\fBce\\-", command, "\\fR(1)"]);
    }
    text
}

/// A text within a line of a page.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\e").replace('-', r"\-")
}

/// Former commands, and their replacements.
const FORMER: [(&str, &str); 3] = [
    ("forget", "ce cancel --forget"),
    ("manifest", "ce show --manifest"),
    ("write", "ce convert --to directories"),
];

/// Leaves out the tip to pass an option as a value: that is hardly ever meant. Tells where the command of `ce shell` begins
/// if an option stands behind a word there, and the new name of a former command. `words` are all arguments of the program.
pub(super) fn put_right(error: &mut clap::Error, program: &str, words: &[String]) {
    if let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidSubcommand)
        && let Some((_, now)) = FORMER.iter().find(|(former, _)| former == wrong)
    {
        error.remove(ContextKind::SuggestedSubcommand);
        let tip = StyledStr::from(format!("it is {now} now"));
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
        return;
    }
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let mut tips = match error.remove(ContextKind::Suggested) {
        Some(ContextValue::StyledStrs(tips)) => tips,
        _ => Vec::new(),
    };
    tips.retain(|tip| !tip.to_string().starts_with("to pass "));
    if is_in_command(error, program, words) {
        tips.push(StyledStr::from("write -- before the command"));
    }
    if !tips.is_empty() {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
}

/// Whether the mistake is in a command of `ce shell`: it is behind a word, and does not resemble an option of `ce shell`.
fn is_in_command(error: &clap::Error, program: &str, words: &[String]) -> bool {
    let Some(ContextValue::String(wrong)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    let ("ce", [command, words @ ..]) = (program, words) else { return false };
    let before = words.iter().take_while(|word| !word.starts_with(wrong.as_str()));
    command == "shell"
        && error.get(ContextKind::SuggestedArg).is_none()
        && before.into_iter().any(|word| !word.starts_with('-'))
}

/// Prints help, or the mistake in the arguments. What these name commands no terminal.
pub(super) fn print_clap(error: &clap::Error) -> io::Result<()> {
    let text = coloured(&error.render().ansi().to_string());
    if error.use_stderr() {
        let written = anstream::stderr().write_all(text.as_bytes());
        written.inspect_err(|error| note_unwritten(io::stderr(), error))
    } else {
        let written = anstream::stdout().write_all(text.as_bytes());
        written.inspect_err(|error| note_unwritten(io::stdout(), error))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::CommandFactory;

    use super::*;
    use crate::cli::Ce;

    #[test]
    fn every_command_is_in_one_group_and_a_line_fits_any_terminal() {
        let ce = Ce::command();
        let known: BTreeSet<&str> = ce.get_subcommands().map(Command::get_name).collect();
        let grouped: Vec<&str> = commands().collect();
        assert_eq!(grouped.iter().copied().collect::<BTreeSet<_>>(), known);
        assert_eq!(grouped.len(), known.len(), "a command is in two groups");
        assert!(GROUPS.iter().map(|it| it.common.len()).sum::<usize>() <= 22);
        for line in template(true).lines().filter(|line| !line.contains('{')) {
            assert!(line.chars().count() <= 80, "{line}");
        }
    }

    #[test]
    fn every_command_has_examples_that_parse_and_is_related_to_others() {
        let ce = Ce::command();
        let commands: BTreeSet<&str> = ce.get_subcommands().map(Command::get_name).collect();
        let known: BTreeSet<&str> = EXAMPLES.iter().map(|it| it.command).collect();
        assert_eq!(commands, known);
        for CommandExamples { command, lines, related } in EXAMPLES {
            for (line, what) in *lines {
                let words: Vec<&str> = line.split(' ').collect();
                assert_eq!(words[..2], ["ce", command], "{line}");
                let parsed = ce.clone().try_get_matches_from(words);
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                assert!(what.ends_with('.') && line.len() < 90, "{line}: {what}");
            }
            assert!(related.iter().all(|it| known.contains(it) && it != command), "{command}");
        }
    }
}
