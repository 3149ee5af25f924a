//! The measurements of sweeps: a row a point, with medians, their intervals and all values; the default plot; and two levels compared.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use maud::{Markup, PreEscaped, html};

use ce_model::host_use::DisturbedCalls;
use ce_model::humanize::counted;
use ce_model::statistics::{
    CONFIDENCE, ChangeVerdict, ComparedSides, Estimate, Measurements, MedianChange, THRESHOLD,
    percent_up,
};
use ce_model::sweep::{Better, CellValue, Until};
use ce_queries::compared_medians::{ComparedMedians, is_better, mean_ratio};
use ce_queries::frame::{FrameColumn, RowStatus};
use ce_queries::page::{AxisKind, MeasuredPoint, MeasuredTable, PageData, PageTable};

use super::gallery::gallery;
use super::plot::{self, AxisScale};
use super::{ShownUnit, capitalised, different, grouped, short, text};
use crate::compared_medians::{false_alarms, ratio_texts, steps_in_words};
use crate::digits::ends;
use crate::sentences::ComparedLevels;
use crate::table::row_labels_in_words;

/// The largest number of points that are shown, and of columns of a table.
const POINTS: usize = 200;
const COLUMNS: usize = 3;

/// The largest number of levels that are compared with each other, and of levels that are compared at all: more than the former only
/// with the first one.
const LEVELS_IN_PAIRS: usize = 5;
const LEVELS: usize = 6;

/// The largest number of pairs of levels in the head. Of more, the pairs with the first level are.
const PAIRS: usize = 3;

/// The half width above which an interval counts as wide: a share of the median.
const WIDE: f64 = 0.2;

/// The size of the drawing of all values of a point, and of a ratio.
const STRIP: [f64; 2] = [150.0, 18.0];

/// A table of the page, with its measurements.
pub(super) struct ShownTable<'a> {
    table: &'a PageTable,
    pub(super) measured: MeasuredTable<'a>,
}

impl<'a> ShownTable<'a> {
    /// Collects the measurements of a table.
    pub(super) fn new(table: &'a PageTable) -> Self {
        Self { table, measured: MeasuredTable::new(&table.frame) }
    }
}

/// Says at how many points replicates have not ended by their results: their medians are known less well than was wanted.
pub(super) fn missed_goals(tables: &[ShownTable<'_>]) -> Vec<String> {
    let goals = tables.iter().filter_map(|ShownTable { measured, .. }| {
        let until = measured.until?;
        let column = measured.columns.iter().position(|it| *it.name == *until.column)?;
        let samples = measured.points.iter().map(|point| point.sample(column));
        let missed =
            samples.filter(|it| !it.as_ref().is_some_and(|it| until.is_met_by(it))).count();
        let all = counted(measured.points.len(), "point");
        (missed > 0).then(|| {
            format!("The goal, to know the median of {until}, was missed at {missed} of {all}")
        })
    });
    goals.collect()
}

/// Describes in a sentence how well the medians are known; `None` if nothing was measured repeatedly.
pub(super) fn known(tables: &[ShownTable<'_>]) -> Option<String> {
    let (mut all, mut wide, mut few, mut widest) = (0, 0, 0, 0.0_f64);
    for table in tables.iter().map(|it| &it.measured).filter(|it| it.has_replicates) {
        for point in &table.points {
            for column in 0..table.columns.len() {
                let Some(sample) = point.sample(column) else { continue };
                all += 1;
                match sample.relative_half_width() {
                    Some(width) => {
                        widest = widest.max(width);
                        wide += usize::from(width > WIDE);
                    }
                    None => few += 1,
                }
            }
        }
    }
    Some(match (all, wide, few) {
        (0, ..) => return None,
        _ if few == all => {
            "Fewer than 6 measurements of each point: too few for an interval".to_owned()
        }
        (_, 0, 0) => format!("All {all} medians are known to ± {} % or better", percent_up(widest)),
        (_, 0, few) => {
            format!("{few} of {all} medians rest on too few measurements for an interval")
        }
        (_, wide, 0) => format!("{wide} of {all} medians are known no better than ± 20 %"),
        (_, wide, few) => format!(
            "{} of {all} medians are known no better than ± 20 %: {few} rest on too few measurements",
            wide + few
        ),
    })
}

/// Says during how many calls that made rows others used the processors, if they did.
pub(super) fn disturbed(data: &PageData) -> Option<String> {
    let calls: BTreeSet<usize> =
        data.tables.iter().flat_map(|it| &it.calls).flatten().copied().collect();
    let shares = calls.into_iter().filter_map(|call| data.calls.get(call)?.others);
    Some(capitalised(&DisturbedCalls::count(shares).in_words()?))
}

/// The measurements of all tables. Plots are drawn unless the study draws figures of its own.
pub(super) fn section(tables: &[ShownTable<'_>], has_figures: bool) -> Markup {
    html! {
        @if !tables.is_empty() {
            section #measurements {
                h2 { "Measurements" }
                @for ShownTable { table, measured } in tables {
                    @if tables.len() > 1 || table.title != "measurements" { h3 { (text(&table.title)) } }
                    @for (name, value) in &measured.mixed {
                        p.hint { (text(name)) " has no medians: one of its values is " (text(&format!("{value:?}"))) "." }
                    }
                    @for line in row_labels_in_words(&table.frame) { p.hint { (text(&line)) "." } }
                    @if measured.has_replicates {
                        @for column in 0..measured.columns.len().min(COLUMNS) {
                            (of_column(measured, column, has_figures))
                        }
                    } @else {
                        @if !has_figures {
                            @for column in 0..measured.columns.len().min(COLUMNS) {
                                (figure(measured, column, &unit_of(measured, column)))
                            }
                        }
                        (first_rows(table, measured))
                    }
                    (pictures(table))
                    (all_rows(table))
                }
            }
        }
    }
}

/// The pictures of points, in a grid for each column.
fn pictures(table: &PageTable) -> Markup {
    let columns = different(table.pictures.iter().map(|it| &*it.column));
    let left = table.pictures.iter().filter(|it| it.contents.held.is_err()).count();
    html! {
        @for column in &columns {
            @if columns.len() > 1 { h4 { (text(column)) } }
            (gallery(table.pictures.iter().filter(|it| it.column == *column).map(|it| (&*it.point, &it.contents))))
        }
        @if left > 0 { p.hint { (counted(left, "picture")) " of points without room on this page." } }
    }
}

fn unit_of(table: &MeasuredTable<'_>, column: usize) -> ShownUnit {
    let medians = table.points.iter().filter_map(|point| Some(point.sample(column)?.median()));
    ShownUnit::choose(table.columns[column].measure.unit.as_deref(), medians)
}

fn figure(table: &MeasuredTable<'_>, column: usize, unit: &ShownUnit) -> Markup {
    html! {
        @if let Some(plot) = plot::plot(table, column, unit) {
            figure { (PreEscaped(plot.svg)) figcaption { (text(&plot.caption)) } }
        }
    }
}

/// The medians of a column, and the number of values behind them.
fn of_column(table: &MeasuredTable<'_>, column: usize, has_figures: bool) -> Markup {
    let unit = unit_of(table, column);
    let samples: Vec<(&MeasuredPoint<'_>, Option<Measurements>)> =
        table.points.iter().map(|point| (point, point.sample(column))).collect();
    let [least, most] = table.counts(column);
    let has_intervals = samples.iter().flat_map(|(_, it)| it).any(|it| it.interval().is_some());
    let range = samples.iter().flat_map(|(_, it)| it).map(Measurements::range);
    let range = range.reduce(|all, one| [all[0].min(one[0]), all[1].max(one[1])]);
    let strip = range.filter(|_| most > 1).map(|range| Strip::new(range, has_intervals));
    let has_absent = table.points.iter().any(|point| point.absent > 0);
    let until = table.until.filter(|it| *it.column == *table.columns[column].name);
    let shown = ShownColumn {
        title: unit.label(&table.columns[column].name),
        unit: &unit,
        most,
        has_intervals,
        until,
    };
    let statistics: Vec<(String, &PointStatistic)> =
        STATISTICS.iter().filter_map(|it| Some(((it.title)(&shown)?, it))).collect();
    html! {
        @if !has_figures { (figure(table, column, &unit)) }
        @for line in steps_in_words(table, column, true) { p { (text(&line)) } }
        p.hint { (caption(table, column, &unit, strip.as_ref())) }
        div.scroll { table.measured {
            thead { tr {
                @for axis in &table.axes { th.number[axis.kind == AxisKind::Number] scope="col" { (text(axis.name)) } }
                @for label in &table.labels { th scope="col" { (text(label)) } }
                @if least != most || has_absent { th.number scope="col" { "values" } }
                @for (title, _) in &statistics { th.number scope="col" { (text(title)) } }
                @if strip.is_some() { th scope="col" { "all measurements" } }
            } }
            tbody { @for (at, (point, sample)) in samples.iter().enumerate().take(POINTS) { tr {
                @let same = samples[..at].iter().find(|(it, _)| point.shares_calls(it, column));
                (labels(table, point))
                @for label in &point.labels { td { (text(label)) } }
                @if least != most || has_absent {
                    @let n = sample.as_ref().map_or(0, Measurements::n);
                    td.number { (n) @if point.absent > 0 { " of " (n + point.absent) } }
                }
                @match sample {
                    None => {
                        @for _ in &statistics { td.number { "–" } }
                        @if strip.is_some() { td {} }
                    },
                    Some(sample) => {
                        @for (_, statistic) in &statistics { ((statistic.cell)(&shown, sample)) }
                        @if let Some((first, _)) = same { td.hint { "the same measurements as " (text(&point_label(table, first))) } }
                        @else if let Some(strip) = &strip { td { (strip.draw(&point.columns[column].values, sample, &unit)) } }
                    }
                }
            } } }
        } }
        @if samples.len() > POINTS { p.hint { "The first " (POINTS) " of " (counted(samples.len(), "point")) "." } }
    }
}

/// A column of measurements, as it is shown.
struct ShownColumn<'a> {
    title: String,
    unit: &'a ShownUnit,
    /// The number of measurements of the point that was measured most often.
    most: usize,
    has_intervals: bool,
    until: Option<&'a Until>,
}

impl ShownColumn<'_> {
    /// Whether an interval is narrow enough for replicates to end.
    fn is_enough(&self, sample: &Measurements) -> bool {
        self.until.is_none_or(|until| until.is_met_by(sample))
    }
}

/// A statistic of the measurements at a point.
struct PointStatistic {
    /// The title of its column; `None` if it is not shown.
    title: fn(&ShownColumn<'_>) -> Option<String>,
    cell: fn(&ShownColumn<'_>, &Measurements) -> Markup,
}

/// The statistics of each point, in the order of their columns.
const STATISTICS: [PointStatistic; 3] = [
    PointStatistic {
        title: |column| {
            Some(if column.most > 1 { "median".to_owned() } else { column.title.clone() })
        },
        cell: |column, sample| {
            html! { td.number { b { (column.unit.justified(sample.median(), ends(sample))) } } }
        },
    },
    PointStatistic {
        title: |column| column.has_intervals.then(|| "95 % interval".to_owned()),
        cell: |column, sample| match sample.interval() {
            Some(ends) => {
                let [low, high] = ends.map(|end| column.unit.justified(end, ends));
                html! { td.number { (low) " – " (high) } }
            }
            None => html! { td.number { "–" } },
        },
    },
    PointStatistic {
        title: |column| column.has_intervals.then(|| "half width".to_owned()),
        // It is marked if it is not narrow enough for replicates to end.
        cell: |column, sample| {
            let is_enough = column.is_enough(sample);
            let mark = if is_enough { "" } else { " *" };
            match sample.relative_half_width() {
                Some(width) => html! {
                    td.number.wide[width > WIDE || !is_enough] { "± " (percent_up(width)) " %" (mark) }
                },
                None => html! { td.number { "–" (mark) } },
            }
        },
    },
];

/// A point in words.
fn point_label(table: &MeasuredTable<'_>, point: &MeasuredPoint<'_>) -> String {
    (0..table.axes.len()).map(|at| table.label(point, at)).collect::<Vec<_>>().join(", ")
}

/// The points that lack values, in words.
pub(super) fn without_values(tables: &[ShownTable<'_>]) -> Vec<String> {
    let mut points = Vec::new();
    for ShownTable { measured: table, .. } in tables {
        for point in table.points.iter().filter(|point| point.absent > 0) {
            let texts = table.axes.iter().enumerate();
            let texts =
                texts.map(|(at, axis)| format!("{} = {}", axis.name, table.label(point, at)));
            let texts = texts.collect::<Vec<_>>().join(", ");
            points.push(format!("{texts} ({})", counted(point.absent, "row")));
        }
    }
    points
}

/// The cells with the texts of a point.
fn labels(table: &MeasuredTable<'_>, point: &MeasuredPoint<'_>) -> Markup {
    html! {
        @for (at, axis) in table.axes.iter().enumerate() {
            @if axis.kind == AxisKind::Number { td.number { (text(&grouped(table.label(point, at)))) } }
            @else { td title=[(axis.kind == AxisKind::Commit).then(|| axis.levels[point.levels[at]])] { (text(table.label(point, at))) } }
        }
    }
}

fn caption(
    table: &MeasuredTable<'_>,
    column: usize,
    unit: &ShownUnit,
    strip: Option<&Strip>,
) -> Markup {
    let [least, most] = table.counts(column);
    let name = unit.label(&table.columns[column].name);
    let better = table.columns[column].measure.better;
    html! {
        (text(&name)) ": "
        @if most <= 1 { "one measurement of each point. " }
        @else if least == most { "medians of " (most) " measurements each. " }
        @else { "medians of " (least) " to " (most) " measurements. " }
        @match better {
            Some(Better::Less) => "Less is better. ",
            Some(Better::More) => "More is better. ",
            None => {},
        }
        @if let Some(until) = table.until.filter(|it| *it.column == *table.columns[column].name) {
            "Each point was measured until its median is known to " (text(&until.precision.to_string())) ", or as often as is allowed (*). "
        }
        @if let Some(strip) = strip { (strip.caption(unit)) " " }
        (left_out(table))
    }
}

/// The names of points that are not columns, and why.
fn left_out(table: &MeasuredTable<'_>) -> Markup {
    html! {
        @for (name, by) in &table.determined { (text(name)) " follows from " (text(by)) " and is not shown. " }
        @for (name, level) in &table.constant { (text(name)) " is " (text(level)) " everywhere. " }
    }
}

/// The first rows of a table as they are.
fn first_rows(table: &PageTable, measured: &MeasuredTable<'_>) -> Markup {
    let hidden = measured.determined.iter().chain(&measured.constant);
    let names: Vec<&str> = hidden.map(|(name, _)| *name).collect();
    let frame = &table.frame;
    let places = frame.places(|column| !names.contains(&&*column.name));
    let numbers = places.iter().map(|at| {
        let mut cells = frame.rows.iter().map(|row| &row.cells[*at]);
        cells.all(|cell| {
            matches!(cell, CellValue::Number(_) | CellValue::NotANumber | CellValue::Null)
        })
    });
    let numbers: Vec<bool> = numbers.collect();
    let has_status = has_status(table);
    html! {
        p.hint { (left_out(measured)) }
        div.scroll { table.measured {
            thead { tr {
                @for (at, is_number) in places.iter().zip(&numbers) { th.number[*is_number] scope="col" { (text(&frame.columns[*at].title())) } }
                @if has_status { th scope="col" { "state" } }
            } }
            tbody { @for (number, row) in frame.rows.iter().enumerate().take(POINTS) { tr {
                @for (at, is_number) in places.iter().zip(&numbers) {
                    @let cell = table.shown(number, *at).text();
                    td.number[*is_number] { (text(&if *is_number { grouped(cell) } else { cell.to_owned() })) }
                }
                @if has_status { td { (text(&row.status.in_words().unwrap_or_else(|| "ok".to_owned()))) } }
            } } }
        } }
        @if frame.rows.len() > POINTS { p.hint { "The first " (POINTS) " of " (counted(table.rows_in_all, "row")) "." } }
    }
}

/// Whether a row is not there.
fn has_status(table: &PageTable) -> bool {
    table.frame.rows.iter().any(|row| row.status != RowStatus::Ok)
}

/// A line of a file in which tabs separate cells. Tabs and ends of lines in cells become blanks.
fn tsv_line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let cells = cells.map(|cell| cell.replace(['\t', '\n', '\r'], " "));
    cells.collect::<Vec<_>>().join("\t") + "\n"
}

/// All rows of a table, as a file to be saved.
fn all_rows(table: &PageTable) -> Markup {
    let (frame, has_status) = (&table.frame, has_status(table));
    let mut file = tsv_line(frame.names().chain(has_status.then_some("status")));
    for row in &frame.rows {
        let status = row.status.in_words().unwrap_or_else(|| "ok".to_owned());
        let status = has_status.then_some(&*status);
        file += &tsv_line(row.cells.iter().map(CellValue::text).chain(status));
    }
    let address = format!(
        "data:text/tab-separated-values;base64,{}",
        data_encoding::BASE64.encode(file.as_bytes())
    );
    html! {
        p.hint {
            @if frame.rows.len() < table.rows_in_all { "The first " (frame.rows.len()) " of " (table.rows_in_all) " rows: " }
            @else { "All " (counted(frame.rows.len(), "row")) ": " }
            a download="measurements.tsv" href=(address) { "Save measurements.tsv" } " (" (ce_model::humanize::size(file.len() as u64)) ")"
        }
    }
}

/// The drawing of all values of points on one scale.
struct Strip {
    scale: AxisScale,
    has_intervals: bool,
}

/// The place of a value from left to right.
fn place_in_strip(scale: AxisScale, value: f64) -> String {
    format!("{:.1}", 4.0 + scale.at(value) * (STRIP[0] - 8.0))
}

impl Strip {
    fn new([low, high]: [f64; 2], has_intervals: bool) -> Self {
        let is_log = low > 0.0 && high / low >= 4.0;
        Self { scale: AxisScale { is_log, low, high }, has_intervals }
    }

    fn caption(&self, unit: &ShownUnit) -> String {
        let AxisScale { is_log, low, high } = self.scale;
        let scale = if is_log { ", logarithmic" } else { "" };
        let (low, high) = (unit.with_unit(low), unit.with_unit(high));
        let bar = if self.has_intervals { "; bar: 95 % interval" } else { "" };
        format!("Dots: every measurement, {low} to {high}{scale}{bar}; line: median.")
    }

    fn draw(&self, values: &[f64], sample: &Measurements, unit: &ShownUnit) -> Markup {
        let [width, height] = STRIP;
        let middle = height / 2.0;
        let place = |value: f64| place_in_strip(self.scale, value);
        let ends = sample.interval();
        let label = format!(
            "{}, median {}",
            counted(values.len(), "measurement"),
            unit.with_unit(sample.median())
        );
        html! {
            svg.strip width=(width) height=(height) role="img" aria-label=(label) {
                @if let Some([low, high]) = ends { line.ci x1=(place(low)) x2=(place(high)) y1=(middle) y2=(middle) {} }
                @for value in values { circle cx=(place(*value)) cy=(middle) r="2.2" {} }
                line.median x1=(place(sample.median())) x2=(place(sample.median())) y1="2" y2=(height - 2.0) {}
            }
        }
    }
}

/// Levels of factors compared with each other, or commits with earlier ones: how the medians change.
pub(super) fn compared<'a>(
    tables: &'a [ShownTable<'_>],
    data: &PageData,
) -> Vec<LevelComparison<'a>> {
    let shown = tables.iter().filter(|it| it.measured.has_replicates);
    let all = shown.flat_map(|it| {
        let calls: BTreeSet<usize> = it.table.calls.iter().flatten().copied().collect();
        let known = calls.iter().filter_map(|call| data.calls.get(*call)?.seconds);
        let (count, sum) = known.fold((0, 0.0), |(count, sum), it| (count + 1, sum + it));
        let seconds = (count > 0).then(|| sum / f64::from(count));
        LevelComparison::all(&it.measured, seconds)
    });
    all.collect()
}

/// The tables of comparisons.
pub(super) fn compared_section(comparisons: &[LevelComparison<'_>]) -> Markup {
    html! {
        @if !comparisons.is_empty() {
            section #compared {
                @for comparison in comparisons { (comparison.draw()) }
            }
        }
    }
}

/// Two levels of an axis, for each level of the others.
pub(super) struct LevelComparison<'a> {
    table: &'a MeasuredTable<'a>,
    axis: usize,
    column: usize,
    /// How long a call of its table has taken on average, if that is known.
    seconds: Option<f64>,
    rows: Vec<LevelChange<'a>>,
}

struct LevelChange<'a> {
    sides: [&'a MeasuredPoint<'a>; 2],
    compared: ComparedMedians,
}

impl<'a> LevelComparison<'a> {
    /// Compares each column of a table by each factor of few texts or commits; by the factor with the fewest numbers, if there is none.
    fn all(table: &'a MeasuredTable<'a>, seconds: Option<f64>) -> Vec<Self> {
        let axes = (0..table.axes.len()).filter(|at| {
            let axis = &table.axes[*at];
            axis.is_factor && (2..=LEVELS).contains(&axis.levels.len())
        });
        let (numbers, mut axes): (Vec<usize>, Vec<usize>) =
            axes.partition(|at| table.axes[*at].kind == AxisKind::Number);
        if axes.is_empty() {
            axes.extend(numbers.into_iter().min_by_key(|at| table.axes[*at].levels.len()));
        }
        let columns = 0..table.columns.len().min(COLUMNS);
        let all = columns.flat_map(|column| {
            axes.iter().map(move |&axis| Self {
                table,
                axis,
                column,
                seconds,
                rows: rows_of(table, axis, column),
            })
        });
        all.filter(|it| it.rows.iter().any(|row| row.compared.change.is_some())).collect()
    }

    /// The comparisons of each pair of levels, in the order of the levels.
    fn pairs(&self) -> BTreeMap<[usize; 2], Vec<&LevelChange<'a>>> {
        let mut pairs: BTreeMap<[usize; 2], Vec<&LevelChange<'a>>> = BTreeMap::new();
        for row in &self.rows {
            pairs.entry(row.sides.map(|side| side.levels[self.axis])).or_default().push(row);
        }
        pairs
    }

    /// Pairs of levels in a sentence each. If they are many, the pairs with the first level; commits are in the table alone then.
    pub(super) fn in_words(&self) -> Vec<String> {
        let mut pairs = self.pairs();
        if pairs.len() > PAIRS {
            let is_commit = self.table.axes[self.axis].kind == AxisKind::Commit;
            pairs.retain(|[old, _], _| *old == 0 && !is_commit);
        }
        let FrameColumn { name, measure, .. } = self.table.columns[self.column];
        let sentences = pairs.into_iter().filter_map(|(levels, rows)| {
            let rows = rows.into_iter();
            let rows = rows.map(|row| (row.compared, row.n(self.column).into_iter().sum()));
            ComparedLevels {
                name,
                better: measure.better,
                levels: levels.map(|level| self.table.level(self.axis, level)),
                rows: rows.collect(),
                seconds: self.seconds,
            }
            .sentence()
        });
        sentences.collect()
    }

    fn draw(&self) -> Markup {
        let Self { table, axis, column, rows, .. } = self;
        let (pairs, chart) = (self.pairs(), RatioChart::new(rows));
        let name = table.axes[*axis].name;
        let better = table.columns[*column].measure.better;
        let others = table.axes.iter().enumerate().filter(|(at, _)| at != axis);
        let cannot = [ChangeVerdict::SameCall, ChangeVerdict::TooFew];
        let decidable = rows.iter().filter(|it| !cannot.contains(&it.compared.verdict)).count();
        html! {
            h2 { "Compared: " (text(&table.columns[*column].name)) " by " (text(name)) }
            p.hint {
                    "The median of the second divided by the median of the first, with its 95 % interval"
                    @match better { Some(Better::Less) => "; below 1 is better. ", Some(Better::More) => "; above 1 is better. ", None => ". " }
                    "A change of less than 1 % does not count. "
                    @if decidable > 2 {
                        "If no median differed, " (false_alarms(decidable)) " of 100 such tables would show some change by chance."
                    }
            }
            div.scroll { table.measured {
                thead { tr {
                    @for (_, axis) in others.clone() { th.number[axis.kind == AxisKind::Number] scope="col" { (text(axis.name)) } }
                    th scope="col" { (text(name)) }
                    th.number scope="col" { "values" }
                    th.number scope="col" { "ratio" }
                    th.number scope="col" { "95 % interval" }
                    @if chart.is_some() { th scope="col" { "ratios" } }
                    th scope="col" { "verdict" }
                } }
                tbody { @for row in rows.iter().take(POINTS) { tr {
                    @for (at, axis) in others.clone() {
                        td.number[axis.kind == AxisKind::Number] { (text(&grouped(table.label(row.sides[0], at)))) }
                    }
                    td { (text(table.label(row.sides[0], *axis))) " → " (text(table.label(row.sides[1], *axis))) }
                    (counts(row, *column))
                    (change(row.compared.change))
                    @if let Some(chart) = &chart { td { (chart.draw(row.compared)) } }
                    td { (verdict(row.compared, better)) }
                } } }
            } }
            @if let Some(chart) = &chart { p.hint { (chart.caption()) } }
            // Comparisons of several pairs share sides, so they have no mean.
            @if pairs.len() == 1 && rows.len() > 1 && let Some(mean) = mean_ratio(rows.iter().map(|row| &row.compared)) {
                @let [value, low, high] = ratio_texts(mean);
                p.hint { "Geometric mean of the ratios, with its 95 % interval: ×" (value) " [" (low) ", " (high) "]." }
            }
        }
    }
}

/// The ratios of comparisons and their intervals on one logarithmic scale, with a line at 1.
struct RatioChart {
    scale: AxisScale,
}

impl RatioChart {
    /// The chart of rows, if some have ratios.
    fn new(rows: &[LevelChange<'_>]) -> Option<Self> {
        let ratios = rows.iter().filter_map(|row| ratio(row.compared));
        let [low, high] = ratios
            .map(|it| [it.low, it.high])
            .reduce(|all, one| [all[0].min(one[0]), all[1].max(one[1])])?;
        let [low, high] = [low.min(1.0), high.max(1.0)];
        let is_drawable = low > 0.0 && high.is_finite() && low < high;
        is_drawable.then_some(Self { scale: AxisScale { is_log: true, low, high } })
    }

    fn caption(&self) -> String {
        let [low, high] = [self.scale.low, self.scale.high].map(short);
        format!("Dots: ratios, ×{low} to ×{high}; bars: 95 % intervals; line: no change.")
    }

    fn draw(&self, compared: ComparedMedians) -> Markup {
        let Some(Estimate { value, low, high }) = ratio(compared) else { return html! {} };
        let [width, height] = STRIP;
        let middle = height / 2.0;
        let place = |value: f64| place_in_strip(self.scale, value);
        let label = format!("×{}, between {} and {}", short(value), short(low), short(high));
        html! {
            svg.strip width=(width) height=(height) role="img" aria-label=(label) {
                line.median x1=(place(1.0)) x2=(place(1.0)) y1="2" y2=(height - 2.0) {}
                line.ci x1=(place(low)) x2=(place(high)) y1=(middle) y2=(middle) {}
                circle cx=(place(value)) cy=(middle) r="3" {}
            }
        }
    }
}

/// The ratio of a comparison, if it has one.
fn ratio(compared: ComparedMedians) -> Option<Estimate> {
    Some(compared.change.filter(|change| change.is_ratio)?.estimate)
}

/// The points of an axis with their others alike: each level with each one before, or if they are many with the first one; and commits with
/// the last one before that was measured.
fn rows_of<'a>(table: &'a MeasuredTable<'a>, axis: usize, column: usize) -> Vec<LevelChange<'a>> {
    let is_commit = table.axes[axis].kind == AxisKind::Commit;
    let has_all_pairs = table.axes[axis].levels.len() <= LEVELS_IN_PAIRS;
    // Points are in the order of levels, so each point comes after the points that it is compared with.
    let mut bases: HashMap<Vec<usize>, Vec<&MeasuredPoint<'_>>> = HashMap::new();
    let mut rows = Vec::new();
    for new in table.points.iter().filter(|point| point.sample(column).is_some()) {
        let mut others = new.levels.clone();
        others.remove(axis);
        let bases = bases.entry(others).or_default();
        for old in bases.iter().copied() {
            let kind = if old.shares_calls(new, column) {
                ComparedSides::SameCalls
            } else {
                ComparedSides::measured(CONFIDENCE)
            };
            let values = [old, new].map(|point| &point.columns[column]);
            let compared = ComparedMedians::new(values, kind, THRESHOLD);
            rows.push(LevelChange { sides: [old, new], compared });
        }
        match (is_commit, has_all_pairs) {
            (true, _) => *bases = vec![new],
            (false, true) => bases.push(new),
            (false, false) if bases.is_empty() => bases.push(new),
            (false, false) => {}
        }
    }
    rows
}

impl LevelChange<'_> {
    /// The number of measurements of both sides in a column.
    fn n(&self, column: usize) -> [usize; 2] {
        self.sides.map(|point| point.columns[column].values.len())
    }
}

fn counts(row: &LevelChange<'_>, column: usize) -> Markup {
    let [old, new] = row.n(column);
    html! { td.number { (old) @if old != new { "+" (new) } } }
}

fn change(change: Option<MedianChange>) -> Markup {
    html! {
        @match change {
            None => { td.number { "–" } td.number { "–" } },
            Some(MedianChange { estimate, is_ratio: true }) => {
                @let [value, low, high] = ratio_texts(estimate);
                td.number { b { "×" (value) } }
                td.number { (low) " – " (high) }
            },
            Some(MedianChange { estimate, .. }) => {
                td.number { b { (short(estimate.value)) } " (difference)" }
                td.number { (short(estimate.low)) " – " (short(estimate.high)) }
            },
        }
    }
}

/// A verdict in words, and whether the change is good where that is known.
fn verdict(compared: ComparedMedians, better: Option<Better>) -> Markup {
    let ComparedMedians { verdict, is_rounded, .. } = compared;
    html! {
        @match verdict {
            ChangeVerdict::Unclear { .. } if is_rounded => { "not decided: values with more digits would" },
            ChangeVerdict::Unclear { needed: Some(needed) } => { "not decided: about " (needed) " measurements would" },
            ChangeVerdict::Unclear { needed: None } => { "not decided: more than 1000 measurements would" },
            ChangeVerdict::Infinite => "not decided: infinite values count",
            ChangeVerdict::SameCall => "the same measurements",
            ChangeVerdict::TooFew => "too few measurements",
            ChangeVerdict::Same => "no change",
            ChangeVerdict::More => "more",
            ChangeVerdict::Less => "less",
        }
        @match is_better(verdict, better) {
            Some(true) => { " " span.good { "(better)" } },
            Some(false) => { " " span.bad { "(worse)" } },
            None => {},
        }
    }
}
