//! Whether the programs of computations can be read by what executes them. Bash and Python say so, and execute nothing.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use ce_files::umask;
use ce_git::{TreeFile, TreeFileKind, Trees};
use ce_model::task::{Computation, Task, interpreter};

use crate::load::{LoadError, LoadFault, Problem};

/// What was found out about the programs of a task.
#[derive(Debug, Default)]
pub struct CheckedPrograms {
    /// The number of programs that can be read.
    pub readable: usize,
    /// The names of computations whose programs nobody here could be asked about.
    pub untried: Vec<String>,
}

/// A command that is asked, given the path of the file as its last argument.
struct SyntaxCheck {
    /// The names of the interpreters that it stands for, without their versions.
    interpreters: &'static [&'static str],
    /// The program and its arguments. Without a program, it is the interpreter that the file names, from `PATH`.
    command: &'static [&'static str],
}

/// Prints the line and the message of an error. Nothing is imported but what Python itself needs.
const PYTHON: &str = "import sys
try:
    compile(open(sys.argv[1], 'rb').read(), 'exec', 'exec')
except (SyntaxError, ValueError) as error:
    sys.exit('line %s: %s' % (getattr(error, 'lineno', None) or 1, getattr(error, 'msg', error)))";

const CHECKS: [SyntaxCheck; 3] = [
    // Patterns that a program may switch on.
    SyntaxCheck { interpreters: &["bash"], command: &["bash", "-O", "extglob", "-n"] },
    SyntaxCheck { interpreters: &["sh", "dash"], command: &["sh", "-n"] },
    SyntaxCheck { interpreters: &["python"], command: &["", "-I", "-c", PYTHON] },
];

/// Asks whether all programs of a task can be read.
///
/// # Errors
///
/// Returns all that cannot at once, each with the line that its reader names.
pub fn check_programs(dir: &Path, task: &Task) -> Result<CheckedPrograms, LoadError> {
    let trees = Trees::new(dir);
    let (mut found, mut problems) = (CheckedPrograms::default(), Vec::new());
    for computation in &task.computations {
        // Others execute what stands in a root, or in an input.
        let is_host = computation.access.rules.iter().all(|rule| rule.input().is_none());
        let program = program(&trees, computation).filter(|_| is_host);
        let said = program.as_deref().and_then(|program| Some((program, read(program)?)));
        match said {
            None => found.untried.push(computation.name.to_string()),
            Some((_, None)) => found.readable += 1,
            Some((_, Some(said))) => problems.push(problem(task, computation, said)),
        }
    }
    if problems.is_empty() {
        return Ok(found);
    }
    Err(LoadError::Problems { path: dir.to_owned(), problems, warnings: Vec::new() })
}

/// The contents of the file that is executed; `None` if they cannot be read here.
fn program(trees: &Trees, computation: &Computation) -> Option<Vec<u8>> {
    let own = Trees::checked_out(computation);
    let found = Mutex::new(None);
    let tell = |file: TreeFile| {
        if let (TreeFileKind::Executable(contents), true) =
            (file.kind, file.path == Path::new("exec"))
        {
            *found.lock().unwrap_or_else(PoisonError::into_inner) = Some(contents);
        }
        Ok(())
    };
    own.as_ref().unwrap_or(trees).code_files(computation.into(), &tell).ok()?;
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Lets a program be read. `None` if nobody here can; else what is wrong with it, if anything is.
fn read(program: &[u8]) -> Option<Option<(usize, String)>> {
    let first = program.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = std::str::from_utf8(first).ok()?;
    let name = interpreter(first)?;
    let check = CHECKS.iter().find(|check| check.interpreters.contains(&name))?;
    let mut file = tempfile::NamedTempFile::new().ok()?;
    file.write_all(program).ok()?;
    let own = || first.split(['/', ' ']).rfind(|word| word.starts_with(name));
    let mut command =
        Command::new(Some(check.command[0]).filter(|it| !it.is_empty()).or_else(own)?);
    command.args(&check.command[1..]).arg(file.path()).stdin(Stdio::null()).env("LC_ALL", "C");
    let told = umask::as_user(|| command.output()).ok()?;
    if told.status.success() {
        return Some(None);
    }
    let said = String::from_utf8_lossy(&told.stderr);
    let place = format!("{}: ", file.path().display());
    // Without a line, the reader itself has failed.
    let said = said.lines().next().unwrap_or_default().replace(&place, "");
    let (line, text) = said.strip_prefix("line ").unwrap_or(&said).split_once(": ")?;
    Some(Some((line.parse().ok()?, text.to_owned())))
}

/// The problem that a reader has told of a line.
fn problem(task: &Task, computation: &Computation, (line, text): (usize, String)) -> Problem {
    let line = match task.text_computation(computation).map(|text| text.file().lines) {
        // An error at the end of the file may be in the line behind it.
        Some(lines) => {
            let at = line.checked_sub(1).and_then(|at| lines.get(at));
            at.or(lines.last()).copied()
        }
        None => Some(line),
    };
    let fault = LoadFault::Program(text);
    Problem { path: computation.place_of("exec"), line, excerpt: None, fault }
}
