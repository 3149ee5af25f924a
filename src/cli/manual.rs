//! The manual pages: what clap knows of each command, its examples, and the pages beside it.

use std::fs;
use std::io;
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use super::examples::{self, CommandExamples};

/// Writes the page of a program and those of its commands into a directory.
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
    let page = format!("{body}{}{version}", examples::of(name).map_or(OF_ALL.into(), sections));
    fs::write(directory.join(manual.get_filename()), page)
}

/// The pages that the page of all commands refers to.
const OF_ALL: &str = "\n.SH \"SEE ALSO\"\n\\fBgit\\fR(1)";

/// The sections of examples and of pages beside one.
fn sections(examples: &CommandExamples) -> String {
    let example = |(line, what): &(&str, &str)| {
        format!("\n.TP\n\\fB{}\\fR\n{}", escaped(line), escaped(what))
    };
    let lines: String = examples.lines.iter().map(example).collect();
    let beside = examples.related.iter().map(|it| format!(", \\fBce\\-{it}\\fR(1)"));
    let beside: String = beside.collect();
    format!("\n.SH EXAMPLES{lines}\n.SH \"SEE ALSO\"\n\\fBce\\fR(1){beside}")
}

/// A text within a line of a page.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\e").replace('-', r"\-")
}
