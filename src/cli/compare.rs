//! `ce compare`: the medians of two levels of a factor, or of two tables.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Parser, ValueEnum};

use super::Tool;
use super::input_args::split_texts;
use super::options::{task_around, task_dir};
use super::table::{SweepArgs, say_unknown};
use ce_evaluate::session::{Error, OutputError};
use ce_model::exit::{Exit, Explain};
use ce_model::statistics::ChangeVerdict;
use ce_model::sweep::Better;
use ce_queries::compared_medians::{
    MedianColumn, MedianRules, MedianTable, MedianTables, is_better,
};
use ce_queries::frame::Frame;
use ce_queries::table_from_file::read_table;
use ce_report::{self as report, MedianFormat, say};

/// The sides of the comparison are ambiguous.
#[derive(Debug, thiserror::Error, Explain)]
enum SidesError {
    #[error("a comparison needs two files, and not {0}")]
    #[hint("give two files, or one and --by NAME=OLD,NEW, or a task by --task")]
    Files(usize),
    #[error("{0} versions of a task are given")]
    #[hint("give --at twice, or once and --by NAME=OLD,NEW")]
    Versions(usize),
    #[error("--by is given with {0}, which are two sides already")]
    #[hint("leave out --by, or one of the two")]
    ByOfTwo(&'static str),
    #[error("neither --by nor two versions of the task are given")]
    #[hint("give --by NAME=OLD,NEW, or --at OLD --at NEW")]
    OneVersion,
    #[error("cannot read {path}")]
    #[hint("give a file with a table, or a task by --task")]
    Read { path: String, source: io::Error },
    #[error("the column {0} does not say which values are better")]
    #[hint("give --better less or --better more; or compare other columns, by --column")]
    NoDirection(String),
}

/// Compare the medians of measurements: two levels of a factor, two commits, or two files
///
/// Shows for each group of points the ratio of the new median to the old one with its confidence interval, and the verdict:
/// more, less, the same, or unclear. Texts and digests are compared by ce diff. Nothing is computed, and nothing is
/// written.
#[derive(Debug, Parser)]
#[command(version, override_usage = USAGE, after_help = EXIT_CODES)]
pub(super) struct CompareMedians {
    /// Compare two levels of a column, such as version=v5.3,v5.4; the first digits of a commit are enough
    #[arg(long, value_name = "NAME=OLD,NEW", value_parser = by)]
    by: Option<FactorLevels>,

    /// Compare only this column; may be repeated [default: all columns of numbers that are not names of points]
    #[arg(long, value_name = "NAME")]
    column: Vec<String>,

    /// Take the values of a column as exact, such as sizes or counts, not as measurements; may be repeated
    #[arg(long, value_name = "NAME")]
    exact: Vec<String>,

    /// Tell groups apart by this column; may be repeated [default: the names of points; in a file, the columns before
    /// replicate, and columns that are not all numbers]
    #[arg(long, value_name = "NAME")]
    group: Vec<String>,

    /// The least change that matters, in percent
    #[arg(long, value_name = "PERCENT", value_parser = percent, default_value = "1")]
    threshold: f64,

    /// Which values are better [default: as the columns declare]
    #[arg(long, value_name = "DIRECTION")]
    better: Option<Direction>,

    /// End with exit code 1 if a group is worse, has changed, or is unclear or has too few values; may be repeated
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    fail_on: Vec<Failing>,

    /// Print the largest changes first
    #[arg(long)]
    sort: bool,

    /// Widen the intervals so that all of a column are right with 95 % confidence
    #[arg(long)]
    family: bool,

    /// Print a JSON object for each column
    #[arg(long, conflicts_with = "markdown")]
    json: bool,

    /// Print Markdown
    #[arg(long)]
    markdown: bool,

    /// The directory that holds the task, or one within it; without this and other options of a task, files are
    /// compared
    #[arg(long, value_name = "DIR", value_parser = task_dir(), value_hint = clap::ValueHint::DirPath)]
    task: Option<PathBuf>,

    #[command(flatten)]
    of: SweepArgs,
}

const USAGE: &str = "\
ce compare [OPTIONS] --task <DIR> --by <NAME=OLD,NEW> [STORAGE] [INPUTS]...
       ce compare [OPTIONS] --task <DIR> --at <OLD> --at <NEW> [STORAGE] [INPUTS]...
       ce compare [OPTIONS] --by <NAME=OLD,NEW> <FILE>
       ce compare [OPTIONS] <OLD> <NEW>";

const EXIT_CODES: &str = "\
Exit codes: 0 compared, 1 --fail-on holds for a group, 2 the arguments or the task are wrong, 3 a row is \
not there, 5 the storage could not be read.";

/// Two levels of a column.
#[derive(Clone, Debug)]
struct FactorLevels {
    name: String,
    levels: [String; 2],
}

fn by(text: &str) -> Result<FactorLevels, String> {
    let named = text.split_once('=').filter(|(name, _)| !name.is_empty());
    match named.map(|(name, levels)| {
        (name, split_texts(levels).into_iter().map(|it| it.text).collect::<Vec<_>>())
    }) {
        Some((name, levels)) if levels.len() == 2 => Ok(FactorLevels {
            name: name.to_owned(),
            levels: [levels[0].to_owned(), levels[1].to_owned()],
        }),
        _ => Err("write NAME=OLD,NEW, and a text with a comma in quotes".to_owned()),
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches('%').trim_end().parse::<f64>().ok();
    number
        .filter(|it| (0.0..=1000.0).contains(it))
        .map(|it| it / 100.0)
        .ok_or_else(|| "write a number such as 2 or 0.5".to_owned())
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Direction {
    Less,
    More,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Failing {
    Worse,
    Changed,
    Unclear,
}

impl Tool for CompareMedians {
    fn run(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let dir = match &self.task {
            None if self.of.is_of_task() => Some(task_around(PathBuf::from("."))),
            task => task.clone(),
        };
        match dir {
            Some(dir) => self.of_task(&dir, out),
            None => self.of_files(out),
        }
    }
}

impl CompareMedians {
    /// Compares tables of a sweep.
    fn of_task(&self, dir: &Path, out: &mut dyn Write) -> Result<Exit, Error> {
        match (&self.of.at[..], &self.by) {
            ([] | [_], Some(by)) => {
                let (evaluation, table) = self.of.table(dir)?;
                let exit = self.print(&by.median_tables(&table), [""; 2], out)?;
                say_unknown(&[(&evaluation, &table)]);
                Ok(if table.extent.has_unknown_points { exit_if_done(exit) } else { exit })
            }
            ([older, newer], None) => {
                let [(old, older_table), (new, newer_table)] =
                    self.of.tables(dir, [older, newer])?;
                let tables = MedianTables::Tables([&older_table, &newer_table]);
                let exit = self.print(&tables, [older, newer], out)?;
                say_unknown(&[(&old, &older_table), (&new, &newer_table)]);
                let is_unknown =
                    older_table.extent.has_unknown_points || newer_table.extent.has_unknown_points;
                Ok(if is_unknown { exit_if_done(exit) } else { exit })
            }
            ([_, _], Some(_)) => Err(SidesError::ByOfTwo("two --at").into()),
            ([] | [_], None) => Err(SidesError::OneVersion.into()),
            (more, _) => Err(SidesError::Versions(more.len()).into()),
        }
    }

    /// Compares tables in files.
    fn of_files(&self, out: &mut dyn Write) -> Result<Exit, Error> {
        let files: Vec<&Path> = self.of.typed.typed().collect();
        match (&files[..], &self.by) {
            ([file], Some(by)) => {
                let table = read_table_file(file)?;
                self.print(&by.median_tables(&table), [""; 2], out)
            }
            ([old, new], None) => {
                let tables = [read_table_file(old)?, read_table_file(new)?];
                let titles = [old, new].map(|path| path.display().to_string());
                let tables = MedianTables::Tables([&tables[0], &tables[1]]);
                self.print(&tables, titles.each_ref().map(String::as_str), out)
            }
            ([_, _], Some(_)) => Err(SidesError::ByOfTwo("two files").into()),
            _ => Err(SidesError::Files(files.len()).into()),
        }
    }

    /// Compares, and prints that. Returns whether the comparison is acceptable.
    fn print(
        &self,
        tables: &MedianTables<'_>,
        titles: [&str; 2],
        out: &mut dyn Write,
    ) -> Result<Exit, Error> {
        let better = self.better.map(|better| match better {
            Direction::Less => Better::Less,
            Direction::More => Better::More,
        });
        let rules = MedianRules {
            columns: self.column.clone(),
            exact: self.exact.clone(),
            groups: self.group.clone(),
            threshold: self.threshold,
            better,
            is_family: self.family,
            is_sorted: self.sort,
        };
        let compared = MedianTable::new(*tables, &rules)?;
        let needs_direction = self.fail_on.iter().any(|it| matches!(it, Failing::Worse));
        let without = compared.columns.iter().find(|column| column.measure.better.is_none());
        if let Some(column) = without.filter(|_| needs_direction) {
            return Err(SidesError::NoDirection(column.name.clone()).into());
        }
        let format = match (self.json, self.markdown) {
            (true, _) => MedianFormat::Json,
            (_, true) => MedianFormat::Markdown,
            _ => MedianFormat::Text,
        };
        report::medians(&compared, titles, self.threshold, format, out).map_err(OutputError)?;
        let mut failing = compared.columns.iter().filter(|column| self.fails(column)).peekable();
        if failing.peek().is_some() {
            let names: Vec<&str> = failing.map(|column| column.name.as_str()).collect();
            say("ce", &format_args!("--fail-on holds for {}", names.join(", ")));
            return Ok(Exit::Failed);
        }
        let mut rows = compared.columns.iter().flat_map(|column| &column.rows);
        Ok(if rows.any(|row| row.not_ok != [0, 0]) { Exit::Missing } else { Exit::Done })
    }

    /// Whether a group of a column is as `--fail-on` says.
    fn fails(&self, column: &MedianColumn) -> bool {
        let mut verdicts = column.compared().map(|compared| compared.verdict);
        verdicts.any(|verdict| {
            self.fail_on.iter().any(|failing| match failing {
                Failing::Worse => is_better(verdict, column.measure.better) == Some(false),
                Failing::Changed => matches!(verdict, ChangeVerdict::More | ChangeVerdict::Less),
                Failing::Unclear => verdict.is_unclear() || verdict == ChangeVerdict::TooFew,
            })
        })
    }
}

/// Reads the table in a file.
fn read_table_file(path: &Path) -> Result<Frame, Error> {
    let contents = fs::read(path)
        .map_err(|source| SidesError::Read { path: path.display().to_string(), source })?;
    Ok(read_table(path, &contents)?)
}

/// An exit code if there may be more rows.
fn exit_if_done(exit: Exit) -> Exit {
    if exit == Exit::Done { Exit::Missing } else { exit }
}

impl FactorLevels {
    fn median_tables<'a>(&'a self, table: &'a Frame) -> MedianTables<'a> {
        let levels = self.levels.each_ref().map(String::as_str);
        MedianTables::Levels { table, by: &self.name, levels }
    }
}
