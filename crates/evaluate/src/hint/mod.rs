//! Hints: what to try after an execution has failed, judged by its log and its stage.
//!
//! `symptoms` gathers the symptoms once a call has failed; a call that succeeds costs nothing. Each of `CASES` is
//! a function of the symptoms. The first one that fits gives the hint. A case fits only what certainly is there,
//! so that an unrelated failure gets no hint.

mod log;
mod symptoms;

use std::path::{Path, PathBuf};

use self::log::Language;
use self::symptoms::{Ending, MissingOutput, MissingProgram, Symptoms};
use super::CallError;
use ce_model::access::Rule;
use ce_model::exit::Explain;
use ce_model::humanize::size;
use ce_model::name;
use ce_model::task::Computation;
use ce_storage::Stage;

/// The known cases, the surest first.
const CASES: [fn(&Symptoms) -> Option<String>; 20] = [
    carriage_return,
    link,
    unseen,
    root,
    interpreter,
    loader,
    program,
    two_digits,
    task_file,
    task_module,
    package,
    network,
    existing,
    read_only,
    slash,
    suffix,
    elsewhere,
    printed,
    silent,
    killed,
];

/// The file that a program names as its loader, for example.
const LOADER: &str = "such as /lib64/ld-linux-x86-64.so.2";

/// A computation that was executed, and how.
pub(super) struct Scene<'a> {
    pub(super) computation: &'a Computation,
    /// The directory that it ran from.
    pub(super) tree: &'a Path,
    /// Its root, if that is an input.
    pub(super) root: Option<PathBuf>,
    pub(super) isolated: bool,
    /// The directory of its task, where that is known: not to a worker.
    pub(super) task: Option<&'a Path>,
}

/// Returns the advice after a call has failed, before its stage is emptied.
pub(super) fn hint(stage: &Stage<'_>, scene: &Scene<'_>, error: &CallError) -> Option<String> {
    first(&Symptoms::gather(stage, scene, error)).or_else(|| error.hint())
}

fn first(symptoms: &Symptoms) -> Option<String> {
    CASES.iter().find_map(|case| case(symptoms))
}

/// The first line of a script ends in a carriage return, which the kernel takes for a part of a name.
fn carriage_return(symptoms: &Symptoms) -> Option<String> {
    let Symptoms { directory, first_line, sign, .. } = symptoms;
    let exec = if sign.is_some() { directory.clone() } else { format!("{directory}/exec") };
    let name = exec.rsplit('/').next().unwrap_or_default();
    if !matches!(symptoms.ending, Ending::NotStarted | Ending::Exited) {
        return None;
    }
    if first_line.starts_with("#!") && first_line.ends_with('\r') {
        return Some(format!(
            "the first line of exec ends in a carriage return (CRLF); remove it with \
             \"sed -i 's/\\r$//' {exec}\", and keep Git from adding it with the line \
             \"{name} text eol=lf\" in .gitattributes"
        ));
    }
    log::names_carriage_return(&symptoms.log).then(|| {
        "the first line of a script that exec runs ends in a carriage return (CRLF); remove it with \
         \"sed -i 's/\\r$//' SCRIPT\""
            .to_owned()
    })
}

/// A link in the computation's directory leads to something that is not exported with it.
fn link(symptoms: &Symptoms) -> Option<String> {
    let Symptoms { directory, .. } = symptoms;
    let (link, target) = symptoms.link.as_ref()?;
    let grant = match target.is_absolute() && symptoms.isolated && target.exists() {
        true => {
            format!(", or commit the line \"{}\" in its file access", Rule::Read(target.clone()))
        }
        false => String::new(),
    };
    Some(format!(
        "{directory}/{} is a symbolic link to {}, which is out of the computation's directory and not \
         exported with it; put a copy there, or make it an input{grant}",
        link.display(),
        target.display()
    ))
}

/// The sandbox does not show a file that the log, or the first line of `exec`, names.
fn unseen(symptoms: &Symptoms) -> Option<String> {
    let rules: Vec<String> = symptoms.lacking.iter().map(ToString::to_string).collect();
    let words = match &rules[..] {
        [] => return None,
        [_] => "its sandbox does not show that; if it needs it",
        _ => "its sandbox does not show these; if it needs them",
    };
    Some(format!("{words}, commit {}", granting(symptoms, &rules)))
}

/// Returns the lines that grant the access, and the file that they belong in.
fn granting(symptoms: &Symptoms, rules: &[String]) -> String {
    let (before, file) = match symptoms.sign {
        Some(sign) => (format!("{sign}CE access "), &*symptoms.directory),
        None => (String::new(), "the computation's file access"),
    };
    let lines: Vec<String> = rules.iter().map(|rule| format!("\"{before}{rule}\"")).collect();
    let line = if lines.len() == 1 { "line" } else { "lines" };
    format!("the {line} {} in {file}", lines.join(", "))
}

/// A root of its own lacks a file that `exec` needs to start, a program, or a package.
fn root(symptoms: &Symptoms) -> Option<String> {
    let root = format!("its root, the input {},", symptoms.root.as_ref()?);
    if matches!(symptoms.ending, Ending::NotStarted) {
        return Some(match symptoms.interpreter.first().map(|path| path.display()) {
            Some(named) if symptoms.no_interpreter => {
                format!("{root} has no {named}, which the first line of exec names")
            }
            Some(named) => format!("{root} lacks the loader of {named}, {LOADER}"),
            None => format!("{root} lacks the loader of exec, {LOADER}"),
        });
    }
    match (&symptoms.program, log::missing_package(&symptoms.log)) {
        (Some(MissingProgram { name, .. }), _) => Some(format!("{root} has no {name} in PATH")),
        (None, Some((_, name))) => Some(format!("{root} has no package {name}")),
        (None, None) => None,
    }
}

/// The interpreter that the first line names is not on this host.
fn interpreter(symptoms: &Symptoms) -> Option<String> {
    let [named, rest @ ..] = &symptoms.interpreter[..] else { return None };
    if !matches!(symptoms.ending, Ending::NotStarted) || !symptoms.no_interpreter {
        return None;
    }
    let named = named.display();
    Some(match rest.last() {
        None => format!("the first line of exec names {named}, which is not installed here"),
        Some(end) => format!(
            "the first line of exec names {named}, a link to {}, which does not exist; if it belongs to a \
             virtual environment, make that again",
            end.display()
        ),
    })
}

/// A program without the loader that it names.
fn loader(symptoms: &Symptoms) -> Option<String> {
    let wanted =
        matches!(symptoms.ending, Ending::NotStarted) && symptoms.first_line.starts_with("\x7fELF");
    wanted.then(|| {
        "exec was built for another system: the loader that it names is not installed here; build it on \
         this one, or link it statically"
            .to_owned()
    })
}

/// A program is not in `PATH`.
fn program(symptoms: &Symptoms) -> Option<String> {
    let MissingProgram { name, found, grant } = symptoms.program.as_ref()?;
    let found = found.as_deref().map(Path::display).filter(|_| symptoms.isolated);
    Some(match (found, grant) {
        (None, _) if symptoms.isolated => format!(
            "{name} is not in the PATH of a sandbox, /usr/local/bin:/usr/bin:/bin; install it there, or name \
             it by its path"
        ),
        (None, _) => format!("{name} is not in PATH; install it, or name it by its path"),
        (Some(found), None) => {
            format!("{name} is not in the PATH of a sandbox; name it as {found}")
        }
        (Some(found), Some(path)) => format!(
            "{name} is not in the PATH of a sandbox; name it as {found}, and commit {}",
            granting(symptoms, &[Rule::Read(path.clone()).to_string()])
        ),
    })
}

/// A shell takes `$10` for the first argument and a zero.
fn two_digits(symptoms: &Symptoms) -> Option<String> {
    let argument = symptoms.two_digits.as_ref()?;
    let number = argument.trim_start_matches('$');
    Some(format!(
        "a shell reads {argument} as $1 followed by {}: write ${{{number}}}, or the variables in_NAME and out_NAME",
        &number[1..]
    ))
}

/// A file of the task is no input of the call.
fn task_file(symptoms: &Symptoms) -> Option<String> {
    let file = symptoms.task_file.as_ref()?;
    Some(format!(
        "the task has {file}, and a call sees only its inputs: give it as one, as in OWN('{file}')"
    ))
}

/// A module of the task is not in the directory of the computation.
fn task_module(symptoms: &Symptoms) -> Option<String> {
    let file = symptoms.task_module.as_ref()?;
    Some(format!(
        "the task has {file}, and a computation sees only its own files: make it a directory with the program as exec and the \
         module beside it, or give the module as an input and name it by set PYTHONPATH"
    ))
}

/// A copy of an input is as read-only as the input.
fn read_only(symptoms: &Symptoms) -> Option<String> {
    let file = symptoms.read_only.as_ref()?;
    Some(format!(
        "{file} is read-only, as inputs and copies of them are: copy with cp --no-preserve=mode, or chmod u+w the copy"
    ))
}

/// The kernel kills what uses too much memory.
fn killed(symptoms: &Symptoms) -> Option<String> {
    let Ending::Killed(peak) = symptoms.ending else { return None };
    Some(format!(
        "it had used {}; the kernel kills programs when memory is short: let it use less, or ask for more, as in :resources \
         'memory 8G', so that less is executed beside it",
        size(peak)
    ))
}

/// A shell has ended without a word.
fn silent(symptoms: &Symptoms) -> Option<String> {
    symptoms.is_silent.then(|| {
        "it printed nothing: a command ended it, such as a grep that found nothing; set -x at its beginning prints each command"
            .to_owned()
    })
}

/// An interpreter does not find a package.
fn package(symptoms: &Symptoms) -> Option<String> {
    if !matches!(symptoms.ending, Ending::Exited | Ending::NoOutput(_)) {
        return None;
    }
    let (language, name) = log::missing_package(&symptoms.log)?;
    let environment =
        symptoms.environment.as_deref().unwrap_or(Path::new("/path/to/venv")).display();
    let mend = match language {
        Language::Python => format!("let exec begin with #!{environment}/bin/python"),
        Language::R => "name the library with .libPaths(\"/path/to/library\")".to_owned(),
        Language::Perl => "name its directory with use lib \"/path/to/lib\"".to_owned(),
    };
    let rule = match language {
        Language::Python => format!("read {environment}"),
        Language::R => "read /path/to/library".to_owned(),
        Language::Perl => "read /path/to/lib".to_owned(),
    };
    Some(match symptoms.isolated {
        true => format!(
            "a sandbox shows the packages of the system only, and {name} is none of them; install it there, \
             or {mend}, and commit {}",
            granting(symptoms, &[rule])
        ),
        false => format!("{name} is not installed for this interpreter; install it, or {mend}"),
    })
}

/// There is no network in the sandbox.
fn network(symptoms: &Symptoms) -> Option<String> {
    let wanted = symptoms.isolated && !symptoms.network && log::is_unreachable(&symptoms.log);
    wanted.then(|| {
        format!(
            "its sandbox has no network; make what it fetches an input, or commit {}",
            granting(symptoms, &["network".to_owned()])
        )
    })
}

/// `exec` makes a directory that is there when it starts.
fn existing(symptoms: &Symptoms) -> Option<String> {
    let (number, name) = symptoms.existing.as_ref()?;
    let wanted = matches!(symptoms.ending, Ending::Exited);
    wanted.then(|| {
        format!(
            "the directory of output {number:02} ({name}) exists and is empty when exec starts; let it write into \
             that, or make it with mkdir -p"
        )
    })
}

/// An output is a directory that is not declared as one.
fn slash(symptoms: &Symptoms) -> Option<String> {
    match &symptoms.ending {
        Ending::DirectoryMade(name) => Some(format!(
            "it is a directory; if it should be one, write \"{name}/\" in {}{}: it exists when exec starts \
             then",
            symptoms.directory,
            if symptoms.sign.is_some() { "" } else { "/outputs" }
        )),
        _ => None,
    }
}

/// A library has added to the path that it was given.
fn suffix(symptoms: &Symptoms) -> Option<String> {
    let missing = missing(symptoms)?;
    let suffix = missing.suffix.as_deref()?;
    let declared = format!("{}{suffix}", missing.name);
    let mut or = String::new();
    if name::suffix(&declared) == suffix {
        or = format!(", or call the output {declared}");
    }
    Some(format!(
        "it made a file of that name with {suffix} added; let it rename the file to {}{or}",
        place(missing)
    ))
}

/// A file was left in the working directory: one named like the output, or any that is not temporary.
fn elsewhere(symptoms: &Symptoms) -> Option<String> {
    let missing = missing(symptoms)?;
    let stem = Path::new(&*missing.name).file_stem();
    let same = symptoms.left.iter().find(|name| Path::new(name).file_stem() == stem);
    let left = same.or_else(|| symptoms.left.iter().find(|name| !is_temporary(name)))?;
    Some(format!(
        "it left {left} in its working directory, which is not kept; let it write to {}",
        place(missing)
    ))
}

fn is_temporary(name: &str) -> bool {
    name.starts_with('.') || name.to_lowercase().starts_with("tmp")
}

/// No output was made, and the log does not complain.
fn printed(symptoms: &Symptoms) -> Option<String> {
    let missing = missing(symptoms).filter(|missing| missing.is_alone)?;
    if symptoms.printed == 0 || log::complains(&symptoms.log) {
        return None;
    }
    Some(format!(
        "it printed {}, which is in its log only; let it write to {}",
        size(symptoms.printed),
        place(missing)
    ))
}

/// The output that is missing although `exec` ended with success.
fn missing(symptoms: &Symptoms) -> Option<&MissingOutput> {
    match &symptoms.ending {
        Ending::NoOutput(missing) => Some(missing),
        _ => None,
    }
}

/// Describes the path of an output, and the argument of `exec` that has it.
fn place(missing: &MissingOutput) -> String {
    let MissingOutput { number, name, argument, .. } = missing;
    format!("the path of output {number:02} ({name}), which is argument {argument} of exec")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hint_for_a_single_file_names_its_comment_lines() {
        let log = || log("curl: (6) Could not resolve host: example.org");
        let hints = [None, Some("//")].map(|sign| {
            let directory = "computations/get.js".to_owned();
            let symptoms = Symptoms { sign, directory, isolated: true, ..log() };
            first(&symptoms).unwrap()
        });
        assert!(hints[0].ends_with("the line \"network\" in the computation's file access"));
        let line = "the line \"//CE access network\" in computations/get.js";
        assert!(hints[1].ends_with(line), "{}", hints[1]);
    }

    fn no_output(name: &str, suffix: Option<&str>, is_alone: bool) -> Ending {
        let (name, suffix) = (name.to_owned(), suffix.map(str::to_owned));
        Ending::NoOutput(MissingOutput { number: 1, name, argument: 4, suffix, is_alone })
    }

    fn log(log: &str) -> Symptoms {
        Symptoms { log: log.to_owned(), printed: log.len() as u64, ..Symptoms::default() }
    }

    #[test]
    fn the_first_case_that_fits_gives_the_hint() {
        let isolated = true;
        let offline = "Name or service not known";
        let lacking = vec![Rule::Read("/data".into())];
        let left = || vec!["tmp1".to_owned(), "words.csv".to_owned()];
        let link = Some(("numpy".into(), "../numpy".into()));
        let no_module = "ModuleNotFoundError: No module named 'numpy'";
        let cases: [(&str, Symptoms); 12] = [
            ("(CRLF)", Symptoms { first_line: "#!/bin/sh\r".into(), ..log(no_module) }),
            ("link to ../numpy", Symptoms { link, ..log(no_module) }),
            ("numpy is not installed", log(no_module)),
            ("\"read /data\"", Symptoms { lacking, isolated, ..log(offline) }),
            ("no network", Symptoms { isolated, ..log(offline) }),
            ("", Symptoms { isolated, network: true, ..log(offline) }),
            ("", Symptoms { ending: Ending::Other, ..log(no_module) }),
            (
                ".npy added",
                Symptoms { ending: no_output("a", Some(".npy"), true), left: left(), ..log("x") },
            ),
            (
                "left words.csv",
                Symptoms { ending: no_output("a", None, true), left: left(), ..log("x") },
            ),
            ("printed 1 B", Symptoms { ending: no_output("a", None, true), ..log("x") }),
            ("", Symptoms { ending: no_output("a", None, false), ..log("x") }),
            ("", Symptoms { ending: no_output("a", None, true), ..log("Error: x") }),
        ];
        for (words, symptoms) in cases {
            match first(&symptoms) {
                Some(hint) => assert!(!words.is_empty() && hint.contains(words), "{hint}"),
                None => assert_eq!(words, "", "{symptoms:?}"),
            }
        }
    }

    #[test]
    fn mistakes_of_a_beginner_have_hints() {
        let exited = || Symptoms { ending: Ending::Exited, printed: 1, ..Symptoms::default() };
        let hint = |symptoms: Symptoms| first(&symptoms).unwrap();
        let two_digits = Symptoms { two_digits: Some("$12".to_owned()), ..exited() };
        assert!(hint(two_digits).starts_with("a shell reads $12 as $1 followed by 2: write ${12}"));
        let file = Symptoms { task_file: Some("data/x".to_owned()), ..exited() };
        assert!(hint(file).ends_with("give it as one, as in OWN('data/x')"));
        let module = Symptoms { task_module: Some("helpers.py".to_owned()), ..exited() };
        assert!(hint(module).starts_with("the task has helpers.py, and a computation sees"));
        let copy = Symptoms { read_only: Some("copy".to_owned()), ..exited() };
        assert!(hint(copy).contains("cp --no-preserve=mode"));
        let silent = Symptoms { is_silent: true, ..exited() };
        assert!(hint(silent).starts_with("it printed nothing: a command ended it"));
        let killed = Symptoms { ending: Ending::Killed(3 << 30), ..Symptoms::default() };
        assert!(
            hint(killed).starts_with("it had used 3.0 GiB; the kernel kills"),
            "{}",
            size(3 << 30)
        );
        assert_eq!(first(&exited()), None);
    }

    #[test]
    fn a_hint_at_an_output_names_its_argument() {
        let ending = no_output("total", None, true);
        let hint = first(&Symptoms { ending, ..log("17") }).unwrap();
        assert!(
            hint.ends_with("the path of output 01 (total), which is argument 4 of exec"),
            "{hint}"
        );
    }

    #[test]
    fn a_program_for_another_system_lacks_its_loader() {
        let (ending, first_line) = (Ending::NotStarted, "\x7fELF\u{1}".to_owned());
        let hint = first(&Symptoms { ending, first_line, ..Symptoms::default() }).unwrap();
        assert!(hint.contains("loader"), "{hint}");
    }
}
