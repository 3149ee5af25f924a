//! `ce-viz`: draws the workflow.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use clap::Parser;

use super::Tool;
use super::given::PathArgs;
use super::options::{Dirty, Strict, TaskDir, is_stdout};
use crate::exit::Exit;
use crate::export::Drawing;
use crate::load::Uncommitted;
use crate::plan::Plan;
use crate::session::Error;
use crate::task::workflow::Task;

/// Draw the workflow of a task
///
/// Without --output, the drawing is written to standard output in the DOT language of Graphviz.
/// With a storage and the task's inputs, the drawing shows which files are there.
#[derive(Debug, Parser)]
#[command(name = "ce-viz", version, after_help = EXIT_CODES)]
pub struct Viz {
    /// Write a file; its extension chooses the format: .dot, .svg, .png or .pdf. - is standard output
    #[arg(short, long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    output: Option<PathBuf>,

    #[command(flatten)]
    strict: Strict,

    #[command(flatten)]
    dirty: Dirty,

    #[command(flatten)]
    task: TaskDir,

    #[command(flatten)]
    typed: PathArgs,
}

const EXIT_CODES: &str = "\
Exit codes: 0 drawn, 2 the arguments or the task are wrong, 5 the storage could not be read, the \
picture not be written, or rsvg-convert not be used.";

/// The pixels of a PNG for each unit of the SVG, so that text is sharp. The unit is larger in a PDF, too.
const ZOOM: &str = "2";

/// How a drawing is written.
#[derive(Clone, Copy)]
enum Form {
    Dot,
    Svg,
    /// As SVG that rsvg-convert turns into the format of this name.
    Converted(&'static str),
}

impl Tool for Viz {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let file = self.output.as_deref().filter(|path| !is_stdout(path));
        let form = file.map_or(Ok(Form::Dot), form)?;
        let uncommitted = match self.typed.is_nothing() {
            false => self.dirty.uncommitted(),
            true => Uncommitted::Ignore,
        };
        let task = self.task.load("ce-viz", uncommitted)?;
        let drawing = match self.typed.is_nothing() {
            false => self.with_results(task)?,
            true => Drawing::new(&task, &Plan::new(&task), None),
        };
        let mut text = Vec::new();
        match form {
            Form::Dot => drawing.dot(&mut text),
            Form::Svg | Form::Converted(_) => drawing.svg(&mut text),
        }
        .map_err(Error::Output)?;
        if let Form::Converted(format) = form {
            text = convert(format, &text)?;
        }
        match file {
            None => out.write_all(&text).map_err(Error::Output)?,
            Some(path) => fs::write(path, text)
                .map_err(|source| Error::Write { path: path.display().to_string(), source })?,
        }
        Ok(Exit::Done)
    }
}

impl Viz {
    /// Looks for all results in the storage, computes none, and draws what is there.
    fn with_results(&self, task: Task) -> Result<Drawing, Error> {
        let evaluation = self.typed.look_up(&self.task, task, &self.strict)?;
        Ok(Drawing::new(&evaluation.task, &evaluation.plan, Some(&evaluation)))
    }
}

fn form(path: &Path) -> Result<Form, Error> {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("dot" | "gv") => Ok(Form::Dot),
        Some("svg") => Ok(Form::Svg),
        Some("png") => Ok(Form::Converted("png")),
        Some("pdf") => Ok(Form::Converted("pdf")),
        _ => Err(Error::Picture(path.display().to_string())),
    }
}

/// Converts a picture.
fn convert(format: &'static str, svg: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = |source| Error::Program { program: "rsvg-convert", source };
    let mut child = Command::new("rsvg-convert")
        .args(["--format", format, "--zoom", ZOOM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(svg)));
        child.wait_with_output()
    });
    let output = output.map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
    Err(Error::Convert { format, status: output.status, said })
}
