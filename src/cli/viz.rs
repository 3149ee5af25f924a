//! `ce-viz`: draws the workflow.

use std::io;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

use clap::Parser;

use super::Tool;
use super::input_args::PathArgs;
use super::options::{Dirty, Strict, TaskDir, is_stdout};
use ce_draw::Drawing;
use ce_evaluate::session::{Error, OutputError, WriteError};
use ce_files::umask;
use ce_model::exit::{Exit, Explain};
use ce_model::plan::Plan;
use ce_model::task::Task;
use ce_task::load::Uncommitted;

/// The reason why there is no picture.
#[derive(Debug, thiserror::Error, Explain)]
enum PictureError {
    /// Nothing of this kind can be drawn.
    #[error("the name {0} has no extension of a known format")]
    #[hint("end the name in .dot, .svg, .png or .pdf")]
    Format(String),
    /// The program that converts pictures could not be used.
    #[error("cannot run rsvg-convert")]
    #[exit(Storage)]
    #[hint(installing_it(_0))]
    Program(#[source] io::Error),
    /// A picture could not be converted.
    #[error("rsvg-convert made no {format}: {status}{said}")]
    #[exit(Storage)]
    #[hint(Some(drawing_another(format)))]
    Convert {
        /// The format of the picture.
        format: &'static str,
        /// The status with which the program ended.
        status: ExitStatus,
        /// The first line of its error output, after a colon, if there is one.
        said: String,
    },
}

fn installing_it(source: &io::Error) -> Option<String> {
    (source.kind() == io::ErrorKind::NotFound)
        .then(|| "install rsvg-convert (the package librsvg2-bin), or draw an .svg".to_owned())
}

fn drawing_another(format: &str) -> String {
    let hint = if format == "png" {
        "draw an .svg or a .pdf; a .png has at most 32767 pixels in each direction"
    } else {
        "draw an .svg or a .dot; rsvg-convert reads at most a million elements"
    };
    hint.to_owned()
}

/// Draw the workflow of a task
///
/// Without --output, the drawing is written to standard output in the DOT language of Graphviz.
/// With a storage and the task's inputs, the drawing shows which files are there.
#[derive(Debug, Parser)]
#[command(name = "ce-viz", version, after_help = EXIT_CODES)]
pub(super) struct Viz {
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

/// The format in which a drawing is written.
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
        let uncommitted =
            if self.typed.is_nothing() { Uncommitted::Ignore } else { self.dirty.uncommitted() };
        let task = self.task.load("ce-viz", uncommitted)?;
        let drawing = if self.typed.is_nothing() {
            Drawing::new(&task, &Plan::new(&task), None)
        } else {
            self.with_results(task)?
        };
        let mut text = Vec::new();
        match form {
            Form::Dot => drawing.dot(&mut text),
            Form::Svg | Form::Converted(_) => drawing.svg(&mut text),
        }
        .map_err(OutputError)?;
        if let Form::Converted(format) = form {
            text = convert(format, &text)?;
        }
        match file {
            None => out.write_all(&text).map_err(OutputError)?,
            Some(path) => umask::write(path, text)
                .map_err(|source| WriteError { path: path.display().to_string(), source })?,
        }
        Ok(Exit::Done)
    }
}

impl Viz {
    /// Looks for all results in the storage, computes none, and draws the workflow with them.
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
        _ => Err(PictureError::Format(path.display().to_string()).into()),
    }
}

/// Converts a picture.
fn convert(format: &'static str, svg: &[u8]) -> Result<Vec<u8>, Error> {
    let failed = PictureError::Program;
    let mut command = Command::new("rsvg-convert");
    command.args(["--format", format, "--zoom", ZOOM]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = umask::as_user(|| command.spawn()).map_err(failed)?;
    let stdin = child.stdin.take();
    let output = thread::scope(|scope| {
        let writing = move || stdin.map(|mut stdin| stdin.write_all(svg));
        // If no thread is there to write, the program reads nothing.
        let writing = thread::Builder::new().spawn_scoped(scope, writing);
        let output = child.wait_with_output();
        writing.and(output)
    });
    let output = output.map_err(failed)?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().next().map(|line| format!(": {line}")).unwrap_or_default();
    Err(PictureError::Convert { format, status: output.status, said }.into())
}
