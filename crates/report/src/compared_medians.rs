//! Compared medians: in columns, as Markdown, or as JSON. Words and numbers of comparisons, also for a page.
//!
//! It also prints the steps of measurements over commits.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use super::digits::{ends, justified, significant};
use super::json_line;
use super::table::{JsonCells, JsonMeasure, has_text};
use super::terminal::{ColumnStyle, fitted_within, harmless, terminal_width};
use anstream::{AutoStream, ColorChoice};
use ce_model::humanize::counted;
use ce_model::statistics::{self, ChangeVerdict, Estimate, LEAST_SERIES, MedianChange};
use ce_model::sweep::Better;
use ce_queries::compared_medians::{MedianColumn, MedianNote, MedianRow, MedianTable, is_better};
use ce_queries::page::{CommitStep, CommitSteps, MeasuredTable};
use ce_queries::table_summary::{STATISTICS, SideStatistic};
use serde::{Serialize, Serializer};

/// The format in which compared medians are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MedianFormat {
    /// In columns.
    Text,
    /// A table of Markdown for each column.
    Markdown,
    /// A JSON object for each column.
    Json,
}

/// A ratio and its ends: with three decimals, or two if it is large or not well known.
pub(super) fn ratio_texts(of: Estimate) -> [String; 3] {
    // An end that is not 1 does not look like it.
    let is_near = [of.low, of.high].iter().any(|end| (0.0005..0.005).contains(&(end - 1.0).abs()));
    let is_wide = of.value >= 2.0 || of.high > 1.1 * of.low;
    let is_coarse = is_wide && !is_near;
    let decimals = if is_coarse { 2 } else { 3 };
    [of.value, of.low, of.high].map(|value| match (0.1..100.0).contains(&value) {
        true => format!("{value:.decimals$}"),
        false => significant(value, 3),
    })
}

/// Returns the number of tables, of 100 with this many comparisons, that show a change when nothing has changed.
pub(super) fn false_alarms(comparisons: usize) -> f64 {
    (100.0 * statistics::false_change(comparisons)).round()
}

/// The statistics of both sides, behind the columns of the group and `n`.
fn side_statistics() -> impl Iterator<Item = SideStatistic> {
    STATISTICS.into_iter().filter_map(|it| it.of_sides)
}

/// The places of the columns of numbers behind the columns of the group: `n` and the statistics.
fn number_columns(groups: usize) -> std::ops::Range<usize> {
    groups..groups + 1 + 2 * side_statistics().count()
}

/// Prints compared medians. Tables have titles, which levels replace.
///
/// # Errors
///
/// Fails if the output cannot be written.
pub fn medians(
    table: &MedianTable,
    titles: [&str; 2],
    threshold: f64,
    format: MedianFormat,
    out: &mut dyn Write,
) -> io::Result<()> {
    let titles = table.levels.as_ref().map_or(titles, |it| it.each_ref().map(String::as_str));
    if format == MedianFormat::Json {
        let mut columns = table.columns.iter();
        return columns
            .try_for_each(|it| json_line(&JsonMedians::new(table, it, titles, threshold), out));
    }
    for (at, column) in table.columns.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let mut notes = Vec::new();
        let lines = lines(table, column, &mut notes);
        let title = title(column, titles);
        match format {
            MedianFormat::Markdown => {
                writeln!(out, "**{}**{}\n", escaped(&title[0]), escaped(&title[1]))?;
                markdown(&lines, table.groups.len(), out)?;
                writeln!(out)?;
            }
            _ => {
                writeln!(out, "{}", harmless(&title.concat()))?;
                text(&lines, column, table.groups.len(), out)?;
            }
        }
        for line in below(table, column, threshold) {
            match format {
                MedianFormat::Markdown => writeln!(out, "{}\n", escaped(&line))?,
                _ => writeln!(out, "{}", harmless(&line))?,
            }
        }
        for (number, note) in (1..).zip(&notes) {
            match format {
                MedianFormat::Markdown => writeln!(out, "{number}. {}", escaped(note))?,
                _ => writeln!(out, "{number}: {}", harmless(note))?,
            }
        }
    }
    Ok(())
}

/// Returns the title of a comparison: the column with its unit, and the rest.
fn title(column: &MedianColumn, [old, new]: [&str; 2]) -> [String; 2] {
    let name = match &column.measure.unit {
        Some(unit) => format!("{} [{unit}]", column.name),
        None => column.name.clone(),
    };
    let better = match column.measure.better {
        Some(better) => format!(" ({} is better)", better.word()),
        None => String::new(),
    };
    [name, format!(" from {old} to {new}{better}")]
}

/// The header and a line for each row. Notes get numbers in the order in which they first stand.
fn lines(table: &MedianTable, column: &MedianColumn, notes: &mut Vec<String>) -> Vec<Vec<String>> {
    let statistics = side_statistics().flat_map(|it| it.titles);
    let titles =
        ["n"].into_iter().chain(statistics).chain(["ratio [low, high]", "verdict", "notes"]);
    let header = table.groups.iter().map(String::as_str).chain(titles).map(str::to_owned);
    let mut lines = vec![header.collect::<Vec<String>>()];
    for row in &column.rows {
        let mut numbers = Vec::new();
        for note in told(row) {
            let at = notes.iter().position(|it| *it == note).unwrap_or(notes.len());
            if at == notes.len() {
                notes.push(note);
            }
            numbers.push((at + 1).to_string());
        }
        let mut line: Vec<String> =
            row.group.iter().map(|cell| cell.text().replace(['\t', '\n', '\r'], " ")).collect();
        let [old, new] = row.n();
        line.push(if old == new { old.to_string() } else { format!("{old}+{new}") });
        for statistic in side_statistics() {
            line.extend(row.samples.each_ref().map(|sample| match sample {
                Some(sample) => justified((statistic.of)(sample), ends(sample), 4),
                None => "-".to_owned(),
            }));
        }
        line.push(change(column, row));
        line.push(verdict(column, row));
        line.push(numbers.join(","));
        lines.push(line);
    }
    lines
}

/// The names that each side has.
fn names_in_words([old, new]: &[Vec<String>; 2]) -> String {
    format!("{}; {}", old.join(", "), new.join(", "))
}

fn note_in_words(note: &MedianNote) -> String {
    match note {
        MedianNote::NotOk(rows) => format!("not ok: {rows}"),
        MedianNote::Empty(rows) => format!("without a value: {}", counted(*rows, "row")),
        MedianNote::Shared([shared, old, new]) => format!(
            "shared: {shared} of {old} and {new} values are of the same calls, and the interval takes them for measured twice"
        ),
        MedianNote::Hosts(sides) => format!("other hosts: {}", names_in_words(sides)),
        MedianNote::Machines(sides) => format!("other machines: {}", names_in_words(sides)),
        MedianNote::Asked(sides) => format!("other resources: {}", names_in_words(sides)),
        MedianNote::Disturbed(disturbed) => disturbed.in_words().unwrap_or_default(),
        MedianNote::Times => {
            "measured at other times: one side had ended before the other one began".to_owned()
        }
        MedianNote::Uneven => "one side has more than twice as many values".to_owned(),
        MedianNote::Outliers(count) => format!(
            "outliers: {count}, more than 14.8 median absolute deviations off; none is left out"
        ),
        MedianNote::Resolution => {
            "resolution: rounding widens the interval; --exact if the values are no measurements"
                .to_owned()
        }
        MedianNote::Inexact => "values within a side differ, although they are exact".to_owned(),
    }
}

/// The notes of a row in words.
fn told(row: &MedianRow) -> Vec<String> {
    let mut told: Vec<String> = row.notes.iter().map(note_in_words).collect();
    let is_difference = row.compared.and_then(|it| it.change).is_some_and(|it| !it.is_ratio);
    if is_difference {
        told.push("the difference, not the ratio: a value is not above zero".to_owned());
    }
    told
}

fn change(column: &MedianColumn, row: &MedianRow) -> String {
    let Some(MedianChange { estimate, is_ratio }) = row.compared.and_then(|it| it.change) else {
        return "-".to_owned();
    };
    let has_interval = column.confidence.is_some() && !is_same_call(row);
    let (sign, [value, low, high]) = match is_ratio {
        true => ("×", ratio_texts(estimate)),
        false => {
            let Estimate { value, low, high } = estimate;
            (if value < 0.0 { "" } else { "+" }, [value, low, high].map(|it| significant(it, 3)))
        }
    };
    if has_interval { format!("{sign}{value} [{low}, {high}]") } else { format!("{sign}{value}") }
}

fn is_same_call(row: &MedianRow) -> bool {
    row.compared.is_some_and(|it| it.verdict == ChangeVerdict::SameCall)
}

fn verdict(column: &MedianColumn, row: &MedianRow) -> String {
    let Some(compared) = row.compared else {
        return if row.n()[0] + row.not_ok[0] > 0 { "only old" } else { "only new" }.to_owned();
    };
    match (compared.verdict, is_better(compared.verdict, column.measure.better)) {
        (_, Some(true)) => "better".to_owned(),
        (_, Some(false)) => "worse".to_owned(),
        (ChangeVerdict::Unclear { .. }, _) if compared.is_rounded => "unclear (digits)".to_owned(),
        (ChangeVerdict::Unclear { needed: Some(needed) }, _) => format!("unclear ({needed})"),
        (ChangeVerdict::Unclear { needed: None }, _) => "unclear (>1000)".to_owned(),
        (ChangeVerdict::Infinite, _) => "unclear (infinite)".to_owned(),
        (verdict, _) => verdict.to_string(),
    }
}

/// The lines below a table.
fn below(table: &MedianTable, column: &MedianColumn, threshold: f64) -> Vec<String> {
    let mut lines = Vec::new();
    let compared = column.compared().count();
    if let Some(mean) = column.mean() {
        let [value, low, high] = ratio_texts(mean);
        let mut line = format!("geometric mean of {compared} ratios: ×{value}");
        if column.confidence.is_some() {
            let _written = write!(line, " [{low}, {high}]");
        }
        lines.push(line);
    }
    let has = |is: fn(&ChangeVerdict) -> bool| column.compared().any(|it| is(&it.verdict));
    if has(|it| *it == ChangeVerdict::Infinite) {
        lines.push("unclear (infinite): an end of an interval is infinite".to_owned());
    }
    let is_unclear = |it: &ChangeVerdict| matches!(it, ChangeVerdict::Unclear { .. });
    if column.compared().any(|it| is_unclear(&it.verdict) && !it.is_rounded) {
        lines.push("unclear (N): about N values a side would decide".to_owned());
    }
    if column.compared().any(|it| it.is_rounded) {
        lines.push(
            "unclear (digits): values with more digits would decide, and more values would not"
                .to_owned(),
        );
    }
    if let Some(confidence) = column.confidence {
        let least = statistics::least_values(confidence);
        if has(|it| *it == ChangeVerdict::TooFew) {
            lines.push(format!("too few: an interval needs {least} values a side"));
        }
        if confidence != statistics::CONFIDENCE {
            let percent = significant(confidence * 100.0, 4);
            lines.push(format!("intervals have {percent} %: all of them together 95 %"));
        } else if column.decidable() > 1 {
            let groups = column.decidable();
            let family = 1.0 - (1.0 - confidence) / groups as f64;
            lines.push(format!(
                "{groups} groups: without any change, {} of 100 such tables would show one; --family needs {} values a side",
                false_alarms(groups),
                statistics::least_values(family)
            ));
        }
    }
    if threshold != statistics::THRESHOLD {
        lines.push(format!(
            "a change below {} % does not matter",
            significant(threshold * 100.0, 3)
        ));
    }
    if !table.differing.is_empty() {
        let verb = if table.differing.len() == 1 { "differs" } else { "differ" };
        lines.push(format!(
            "{} {verb} between the sides, and tell no groups apart",
            table.differing.join(", ")
        ));
    }
    if !table.pooled.is_empty() {
        lines.push(format!("groups are pooled over {}", table.pooled.join(", ")));
    }
    let single = column.rows.len() - compared;
    if single > 0 {
        lines.push(format!("{} of one side only", counted(single, "group")));
    }
    lines
}

fn text(
    lines: &[Vec<String>],
    column: &MedianColumn,
    groups: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let used: Vec<usize> =
        (0..lines[0].len()).filter(|at| *at < groups || has_text(lines, *at)).collect();
    let shown: Vec<Vec<String>> = lines
        .iter()
        .map(|line| used.iter().map(|at| harmless(&line[*at]).into_owned()).collect())
        .collect();
    let styles: Vec<ColumnStyle> = used
        .iter()
        .map(|at| {
            let mut texts = lines[1..].iter().map(|line| &line[*at]);
            let is_number = texts.all(|text| text.parse::<f64>().is_ok());
            ColumnStyle {
                is_number: is_number || number_columns(groups).contains(at),
                may_be_cut: *at < groups && !is_number,
                ..ColumnStyle::default()
            }
        })
        .collect();
    let stdout = io::stdout();
    let (lines, _) = fitted_within(&shown, &styles, terminal_width(&stdout));
    let has_colours = stdout.is_terminal() && AutoStream::choice(&stdout) != ColorChoice::Never;
    let better = std::iter::once(None).chain(
        column
            .rows
            .iter()
            .map(|row| row.compared.and_then(|it| is_better(it.verdict, column.measure.better))),
    );
    for (line, better) in lines.zip(better) {
        let word = better.map(|is_better| if is_better { "better" } else { "worse" });
        match word.and_then(|word| Some((word, line.rfind(word)?))) {
            Some((word, at)) if has_colours => {
                let colour = if better == Some(true) { 32 } else { 31 };
                let (before, rest) = line.split_at(at);
                writeln!(out, "{before}\u{1b}[{colour}m{word}\u{1b}[0m{}", &rest[word.len()..])?;
            }
            _ => writeln!(out, "{line}")?,
        }
    }
    Ok(())
}

fn markdown(lines: &[Vec<String>], groups: usize, out: &mut dyn Write) -> io::Result<()> {
    for (at, line) in lines.iter().enumerate() {
        let cells: Vec<String> = line.iter().map(|cell| escaped(cell)).collect();
        writeln!(out, "| {} |", cells.join(" | "))?;
        if at == 0 {
            let align =
                |at: usize| if number_columns(groups).contains(&at) { "---:" } else { "---" };
            let rules: Vec<&str> = (0..line.len()).map(align).collect();
            writeln!(out, "| {} |", rules.join(" | "))?;
        }
    }
    Ok(())
}

/// A text in Markdown.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in harmless(text).chars() {
        if "\\|*_`<>[]#".contains(character) {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// A column, as JSON.
#[derive(Serialize)]
struct JsonMedians<'a> {
    column: &'a str,
    #[serde(flatten)]
    measure: JsonMeasure<'a>,
    sides: [&'a str; 2],
    threshold: f64,
    confidence: Option<f64>,
    differing: &'a [String],
    pooled: &'a [String],
    groups: Vec<JsonMedian<'a>>,
    mean: Option<JsonRatio>,
    by_chance: Option<f64>,
}

#[derive(Serialize)]
struct JsonRatio {
    ratio: f64,
    low: f64,
    high: f64,
}

#[derive(Serialize)]
struct JsonMedian<'a> {
    group: JsonCells<'a>,
    n: [usize; 2],
    not_ok: [usize; 2],
    #[serde(flatten)]
    statistics: JsonSides<'a>,
    ratio: Option<f64>,
    difference: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    verdict: Option<String>,
    is_better: Option<bool>,
    needed: Option<u32>,
    notes: Vec<String>,
}

/// The statistics of both sides.
struct JsonSides<'a>(&'a MedianRow);

impl Serialize for JsonSides<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(side_statistics().map(|statistic| {
            let values = self.0.samples.each_ref().map(|it| it.as_ref().map(statistic.of));
            (statistic.name, values)
        }))
    }
}

impl<'a> JsonMedians<'a> {
    fn new(
        table: &'a MedianTable,
        column: &'a MedianColumn,
        sides: [&'a str; 2],
        threshold: f64,
    ) -> Self {
        let mean = column.mean();
        let mean = mean.map(|Estimate { value: ratio, low, high }| JsonRatio { ratio, low, high });
        let by_chance = column.confidence.filter(|it| *it == statistics::CONFIDENCE);
        let by_chance = by_chance.map(|_| statistics::false_change(column.decidable()));
        Self {
            column: &column.name,
            measure: JsonMeasure::from(&column.measure),
            sides,
            threshold,
            confidence: column.confidence,
            differing: &table.differing,
            pooled: &table.pooled,
            groups: column
                .rows
                .iter()
                .map(|row| JsonMedian::new(table, row, column.measure.better))
                .collect(),
            mean,
            by_chance,
        }
    }
}

impl<'a> JsonMedian<'a> {
    fn new(table: &'a MedianTable, row: &'a MedianRow, better: Option<Better>) -> Self {
        let change = row.compared.and_then(|it| it.change);
        let verdict = row.compared.map(|it| it.verdict);
        Self {
            group: JsonCells::new(&table.groups, &row.group),
            n: row.n(),
            not_ok: row.not_ok,
            statistics: JsonSides(row),
            ratio: change.filter(|it| it.is_ratio).map(|it| it.estimate.value),
            difference: change.filter(|it| !it.is_ratio).map(|it| it.estimate.value),
            low: change.map(|it| it.estimate.low),
            high: change.map(|it| it.estimate.high),
            verdict: verdict.map(|it| it.to_string()),
            is_better: verdict.and_then(|it| is_better(it, better)),
            needed: match verdict {
                Some(ChangeVerdict::Unclear { needed }) => needed,
                _ => None,
            },
            notes: row.notes.iter().map(note_in_words).collect(),
        }
    }
}

/// The label with the subject of a commit.
const SUBJECT_LABEL: &str = "subject";

/// The steps of a column, a line each. Without any, a line says why, unless only steps are asked for.
pub fn steps_in_words(table: &MeasuredTable<'_>, column: usize, only_steps: bool) -> Vec<String> {
    let name = &table.columns[column].name;
    let mut lines = Vec::new();
    let mut found = table.steps(column);
    found.retain(|it| !only_steps || !it.steps.is_empty());
    for CommitSteps { point, n, steps } in found {
        let others = (0..table.axes.len()).filter(|axis| Some(*axis) != table.commits());
        let others = others.map(|axis| {
            format!("{} = {}", table.axes[axis].name, table.label(&table.points[point], axis))
        });
        let others: Vec<String> = others.collect();
        let place =
            if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
        let commits = counted(n, "measured commit");
        match (&steps[..], n < LEAST_SERIES) {
            (_, true) => {
                lines.push(format!("{name}{place}: {commits}, and steps need {LEAST_SERIES}"));
            }
            ([], _) => lines.push(format!("{name}{place}: no step in {commits}")),
            (steps, _) => {
                let steps =
                    steps.iter().map(|step| format!("{name}{place}: {}", in_words(table, step)));
                lines.extend(steps);
            }
        }
    }
    lines
}

/// A step: `+1452 % [1449, 1460] at fe700c15 "simpler", after 50e4de5f`.
fn in_words(
    table: &MeasuredTable<'_>,
    CommitStep { points: [old, new], step }: &CommitStep,
) -> String {
    let [before, after] = step.levels;
    let is_ratio = before > 0.0 && after > 0.0;
    let shown = |change: f64| match is_ratio {
        true => significant((change - 1.0) * 100.0, 3),
        false => significant(change, 3),
    };
    let value = if is_ratio { after / before } else { after - before };
    let sign = if after > before { "+" } else { "" };
    let unit = if is_ratio { " %" } else { "" };
    let ends = match step.change {
        Some(MedianChange { estimate: Estimate { low, high, .. }, is_ratio: of_ratio })
            if of_ratio == is_ratio =>
        {
            format!(" [{}, {}]", shown(low), shown(high))
        }
        _ => String::new(),
    };
    let axis = table.commits().unwrap_or_default();
    let [old, new] = [old, new].map(|number| &table.points[*number]);
    let subject = table.labels.iter().position(|label| *label == SUBJECT_LABEL);
    let subject = subject.and_then(|at| new.labels.get(at));
    let subject = subject.map(|subject| format!(" {subject:?}")).unwrap_or_default();
    let (first, last) = (table.label(new, axis), table.label(old, axis));
    format!("{sign}{}{unit}{ends} at {first}{subject}, after {last}", shown(value))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use ce_queries::compared_medians::{MedianRules, MedianTables};
    use ce_queries::table_from_file::read_table;

    use super::*;

    #[test]
    fn an_interval_end_near_one_is_printed_with_more_digits() {
        let texts = |value, low, high| ratio_texts(Estimate { value, low, high });
        assert_eq!(texts(1.08, 1.0044, 1.19), ["1.080", "1.004", "1.190"]);
        assert_eq!(texts(0.8, 0.6, 0.9957), ["0.800", "0.600", "0.996"]);
        assert_eq!(texts(1.08, 1.0, 1.19), ["1.08", "1.00", "1.19"]);
        assert_eq!(texts(1.08, 1.02, 1.19), ["1.08", "1.02", "1.19"]);
    }

    /// The lines that a comparison of two files prints.
    fn printed(old: &str, new: &str, rules: MedianRules, format: MedianFormat) -> String {
        let [old, new] =
            [old, new].map(|text| read_table(Path::new("t"), text.as_bytes()).unwrap());
        let rules = MedianRules { threshold: statistics::THRESHOLD, ..rules };
        let table = MedianTable::new(MedianTables::Tables([&old, &new]), &rules).unwrap();
        let mut out = Vec::new();
        medians(&table, ["old", "new"], rules.threshold, format, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn column(values: &str) -> String {
        format!("s\n{}\n", values.replace(' ', "\n"))
    }

    #[test]
    fn a_difference_is_not_taken_for_a_ratio() {
        let (old, new) = (column("-2 -1 0 1 2 3"), column("0 1 2 3 4 5 6"));
        let text = printed(&old, &new, MedianRules::default(), MedianFormat::Text);
        assert!(text.contains("6+7  0.5    3  +2.5 [-1.62, 6.62]"), "{text}");
        assert!(text.contains(": the difference, not the ratio"), "{text}");
    }

    #[test]
    fn more_digits_are_requested_where_more_values_would_not_decide() {
        let same = column(&["1.5"; 6].join(" "));
        let text = printed(&same, &same, MedianRules::default(), MedianFormat::Text);
        assert!(text.contains("unclear (digits)"), "{text}");
        assert!(text.contains("values with more digits would decide, and more values would not"));
        assert!(!text.contains("about N values"), "{text}");
    }

    #[test]
    fn exact_values_have_no_interval() {
        let rules = MedianRules { exact: vec!["s".to_owned()], ..MedianRules::default() };
        let json = printed(&column("100 100"), &column("110 111"), rules, MedianFormat::Json);
        assert!(json.contains("\"confidence\":null,"), "{json}");
        assert!(json.contains("\"n\":[2,2],\"not_ok\":[0,0],\"medians\":[100.0,110.5],"), "{json}");
        let note = "\"notes\":[\"values within a side differ, although they are exact\"]";
        assert!(json.contains(note), "{json}");
    }

    #[test]
    fn the_confidence_of_a_family_is_printed() {
        let old: String = (1..=6).map(|at| format!("a,{at}.5\nb,{at}.5\n")).collect();
        let old = format!("bench,s\n{old}");
        let rules = MedianRules { is_family: true, ..MedianRules::default() };
        let text = printed(&old, &old, rules.clone(), MedianFormat::Text);
        assert!(text.contains("intervals have 97.5 %: all of them together 95 %"), "{text}");
        let json = printed(&old, &old, rules, MedianFormat::Json);
        assert!(json.contains("\"by_chance\":null"), "{json}");
        let json = printed(&old, &old, MedianRules::default(), MedianFormat::Json);
        assert!(json.contains("\"by_chance\":0.05"), "{json}");
    }
}
