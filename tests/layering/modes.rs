//! Which modes new files get. The umask of the process is 0, so code that makes a file or starts a process names the mode
//! or the umask.

use super::{code, program, without_tests};

/// Calls that leave the mode to the umask.
const MASKED: [&str; 5] =
    ["fs::write(", "fs::create_dir(", "fs::create_dir_all(", "File::create(", "File::create_new("];

/// Calls that make a file or directory, and take a mode.
const MADE: [&str; 3] = [".create(true)", ".create_new(true)", "DirBuilder::new()"];

/// Calls that start a process, which inherits the umask.
const STARTED: [&str; 2] = [".spawn()", ".output()"];

/// A method of a type of the project.
const OWN: &str = "self.spawn()";

/// Files whose calls run in processes with the user's umask, or have another meaning.
const EXEMPT: [&str; 10] = [
    "files/umask.rs",
    "executor/isolation_probes.rs",
    "executor/local/control_groups.rs",
    "executor/sandbox/cluster_tasks.rs",
    "executor/sandbox/launcher.rs",
    "executor/sandbox/own_network.rs",
    "executor/sandbox/root.rs",
    "executor/sandbox/shared_namespaces.rs",
    "executor/sandbox/user.rs",
    "draw/drawing.rs",
];

/// The statements of a source that leave a mode to the umask of the process.
fn careless(text: &str) -> Vec<String> {
    let code = code(text);
    let code = without_tests(&code);
    let statements = code.split(';').map(|it| it.split_whitespace().collect::<Vec<_>>().join(" "));
    let has = |statement: &str, words: &[&str]| words.iter().any(|word| statement.contains(word));
    let is_careless = |statement: &String| {
        !has(statement, &["umask::", OWN])
            && (has(statement, &MASKED)
                || has(statement, &MADE) && !has(statement, &[".mode("])
                || has(statement, &STARTED))
    };
    statements.filter(is_careless).collect()
}

#[test]
fn code_that_creates_files_or_processes_names_the_umask() {
    let files = program();
    let files = files.iter().filter(|(file, _)| !EXEMPT.contains(&file.as_str()));
    let all = files.flat_map(|(file, text)| careless(text).into_iter().map(move |it| (file, it)));
    let found: Vec<_> = all.collect();
    assert!(found.is_empty(), "ce_files::umask has what these need: {found:#?}");
    for text in
        ["fs::write(a, b)?;", "File::options().create(true).open(a)?;", "let a = b\n.spawn();"]
    {
        assert_eq!(careless(text).len(), 1, "{text}");
    }
    for text in
        ["umask::write(a, b)?;", "umask::as_user(|| a.spawn());", "a.create(true).mode(0o600);"]
    {
        assert_eq!(careless(text).len(), 0, "{text}");
    }
}
