//! The default plot of a table: medians over the axis that suits best, as SVG that needs no script.
//!
//! A commit is on the axis before a number, and a number before a text. The next axis makes series, and the others make panels with common
//! scales. Points that differ are never joined in one mark.

use std::collections::BTreeMap;
use std::fmt::Write;

use ce_model::statistics::Measurements;
use ce_queries::page::{AxisKind, MeasuredPoint, MeasuredTable, PointAxis};

use super::{ShownUnit, escaped, grouped, short};

/// The largest number of panels and of series that are drawn.
const PANELS: usize = 12;
const SERIES: usize = 7;

/// The largest number of texts on an axis.
const TEXTS: usize = 40;

/// The largest number of single values drawn behind the medians.
const VALUES: usize = 1000;

/// The size of the area of a panel, and its margins.
const WIDTH: f64 = 520.0;
const SMALL_WIDTH: f64 = 230.0;
const HEIGHT: f64 = 260.0;
const SMALL_HEIGHT: f64 = 160.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 28.0;
const BOTTOM: f64 = 46.0;
const LEGEND: f64 = 150.0;

/// A plot, and what its caption says.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct DefaultPlot {
    /// The drawing.
    pub(super) svg: String,
    /// The description of the drawing.
    pub(super) caption: String,
}

/// A mark of a plot.
struct Mark<'a> {
    x: f64,
    values: &'a [f64],
    median: f64,
    bar: Option<[f64; 2]>,
}

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AxisScale {
    pub(super) is_log: bool,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl AxisScale {
    /// The place of a value, from 0 to 1.
    pub(super) fn at(self, value: f64) -> f64 {
        let [value, low, high] =
            [value, self.low, self.high].map(|it| if self.is_log { it.ln() } else { it });
        if high == low { 0.5 } else { (value - low) / (high - low) }
    }

    /// The scale of the measured values.
    fn of_values(least: f64, largest: f64) -> Self {
        if least > 0.0 && largest / least >= 50.0 {
            return Self { is_log: true, low: least / 1.15, high: largest * 1.15 };
        }
        let span = if largest > least { largest - least } else { largest.abs().max(1.0) };
        let low = if least >= 0.0 && least <= 0.4 * largest { 0.0 } else { least - 0.08 * span };
        Self { is_log: false, low, high: largest + 0.08 * span }
    }

    /// The scale of numbers on the axis of points, which are in order.
    fn of_levels(levels: &[f64]) -> Self {
        let (least, largest) = (levels[0], levels[levels.len() - 1]);
        let steps = levels.windows(2).map(|pair| pair[1] / pair[0]);
        let (small, large) =
            steps.fold((f64::MAX, 0.0_f64), |(a, b), step| (a.min(step), b.max(step)));
        let is_even =
            levels.len() > 2 && small >= 1.5 && large / small <= 1.5 && largest > 4.0 * least;
        let is_log = least > 0.0 && (largest / least >= 50.0 || is_even);
        let margin = if is_log { (largest / least).powf(0.05) } else { 0.05 * (largest - least) };
        match is_log {
            true => Self { is_log, low: least / margin, high: largest * margin },
            false => Self { is_log, low: least - margin, high: largest + margin },
        }
    }

    /// Round numbers on the scale.
    fn ticks(self) -> Vec<f64> {
        let mut ticks = Vec::new();
        if self.is_log {
            let decades = (self.high / self.low).log10();
            let parts: &[f64] = if decades > 3.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
            let first = self.low.log10().floor() as i32;
            for decade in first..=self.high.log10().ceil() as i32 {
                ticks.extend(parts.iter().map(|part| part * 10_f64.powi(decade)));
            }
        } else {
            let rough = (self.high - self.low) / 5.0;
            let unit = 10_f64.powf(rough.log10().floor());
            let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|it| it * unit >= rough);
            let step = step.unwrap_or(10.0) * unit;
            let first = (self.low / step).ceil() as i64;
            ticks.extend((first..first + 12).map(|number| number as f64 * step));
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }
}

/// The axes of a plot: numbers of axes of the table.
struct Roles {
    x: usize,
    series: Option<usize>,
    panels: Vec<usize>,
}

impl Roles {
    fn assign(axes: &[PointAxis<'_>]) -> Option<Self> {
        let kinds = [AxisKind::Commit, AxisKind::Number, AxisKind::Text];
        let x = kinds.into_iter().find_map(|kind| {
            let found = (0..axes.len()).filter(|at| axes[*at].kind == kind);
            found.max_by_key(|at| (axes[*at].levels.len(), std::cmp::Reverse(*at)))
        })?;
        let mut panels: Vec<usize> = (0..axes.len()).filter(|at| *at != x).collect();
        let mut few = panels.iter().copied().filter(|at| axes[*at].levels.len() <= SERIES);
        let text = few.clone().find(|at| axes[*at].kind == AxisKind::Text);
        let series = text.or_else(|| few.next());
        panels.retain(|at| Some(*at) != series);
        Some(Self { x, series, panels })
    }
}

/// Draws a column of a table. `None` if nothing varies, or there is nothing to draw.
pub(super) fn plot(
    table: &MeasuredTable<'_>,
    column: usize,
    unit: &ShownUnit,
) -> Option<DefaultPlot> {
    let plot = Plot::from_column(table, column, unit)?;
    Some(DefaultPlot { svg: plot.draw(), caption: plot.caption() })
}

/// The marks of a panel, by the number of their series.
type Panel<'a> = BTreeMap<usize, Vec<Mark<'a>>>;

/// The data of a plot.
struct Plot<'a> {
    table: &'a MeasuredTable<'a>,
    unit: &'a ShownUnit,
    roles: Roles,
    /// The name of the column, with the unit that is shown.
    column: String,
    /// The number of levels on the axis.
    shown: usize,
    /// The panels, by the numbers of their levels; some may be left out.
    panels: BTreeMap<Vec<usize>, Panel<'a>>,
    panels_in_all: usize,
    has_intervals: bool,
    is_single: bool,
    has_values: bool,
    across: AxisScale,
    up: AxisScale,
}

impl<'a> Plot<'a> {
    fn from_column(
        table: &'a MeasuredTable<'a>,
        column: usize,
        unit: &'a ShownUnit,
    ) -> Option<Self> {
        let roles = Roles::assign(&table.axes)?;
        let axis = &table.axes[roles.x];
        let most = if axis.kind == AxisKind::Text { TEXTS } else { usize::MAX };
        let shown = axis.levels.len().min(most);
        let points = table.points.iter().filter(|point| point.levels[roles.x] < shown);
        let samples: Vec<(&MeasuredPoint<'_>, Measurements)> =
            points.filter_map(|point| Some((point, point.sample(column)?))).collect();
        let has_intervals = samples.iter().all(|(_, sample)| sample.interval().is_some());
        let is_single = samples.iter().all(|(_, sample)| sample.n() == 1);
        let values: usize = samples.iter().map(|(_, sample)| sample.n()).sum();
        let levels: Vec<f64> = axis.levels.iter().filter_map(|text| text.parse().ok()).collect();
        let mut panels: BTreeMap<Vec<usize>, Panel<'a>> = BTreeMap::new();
        for (point, sample) in samples {
            let panel = roles.panels.iter().map(|at| point.levels[*at]).collect();
            let series = roles.series.map_or(0, |at| point.levels[at]);
            let bar = if has_intervals { sample.interval() } else { Some(sample.range()) };
            let x = match axis.kind {
                AxisKind::Number => levels[point.levels[roles.x]],
                _ => point.levels[roles.x] as f64,
            };
            let (values, bar) = (&*point.columns[column].values, bar.filter(|_| !is_single));
            let marks = panels.entry(panel).or_default().entry(series).or_default();
            marks.push(Mark { x, values, median: sample.median(), bar });
        }
        let panels_in_all = panels.len();
        let panels: BTreeMap<_, _> = panels.into_iter().take(PANELS).collect();
        let marks = panels.values().flat_map(BTreeMap::values).flatten();
        let ends = marks.flat_map(|mark| mark.bar.into_iter().flatten().chain([mark.median]));
        let ends = ends.map(|end| [unit.scaled(end); 2]);
        let [least, largest] = ends.reduce(|all, end| [all[0].min(end[0]), all[1].max(end[1])])?;
        let across = match axis.kind {
            AxisKind::Number => AxisScale::of_levels(&levels),
            _ => AxisScale { is_log: false, low: -0.5, high: shown as f64 - 0.5 },
        };
        Some(Self {
            table,
            unit,
            roles,
            column: unit.label(&table.columns[column].name),
            shown,
            panels,
            panels_in_all,
            has_intervals,
            is_single,
            has_values: !is_single && values <= VALUES,
            across,
            up: AxisScale::of_values(least, largest),
        })
    }

    fn axis(&self) -> &'a PointAxis<'a> {
        &self.table.axes[self.roles.x]
    }

    fn title(&self) -> String {
        let others = self.roles.series.iter().chain(&self.roles.panels);
        let others: Vec<&str> = others.map(|at| self.table.axes[*at].name).collect();
        let each = match &others[..] {
            [] => String::new(),
            others => format!(", for each {}", others.join(" and ")),
        };
        format!("{} by {}{each}", self.column, self.axis().name)
    }

    fn draw(&self) -> String {
        let is_small = self.panels.len() > 1;
        let (width, height) = if is_small { (SMALL_WIDTH, SMALL_HEIGHT) } else { (WIDTH, HEIGHT) };
        let in_row = if is_small { self.panels.len().min(3) } else { 1 };
        let (step_x, step_y) = (width + LEFT, height + TOP + BOTTOM);
        let beside = step_x * in_row as f64;
        let all_width = beside + if self.roles.series.is_some() { LEGEND } else { 20.0 };
        let all_height = step_y * self.panels.len().div_ceil(in_row) as f64;
        let mut drawing = Canvas { plot: self, svg: String::new(), width, height };
        drawing.add(format_args!(
            "<svg class=\"plot\" viewBox=\"0 0 {all_width} {all_height}\" role=\"img\" aria-label=\"{}\">",
            escaped(&self.title())
        ));
        for (at, (levels, panel)) in self.panels.iter().enumerate() {
            let origin =
                ((at % in_row) as f64 * step_x + LEFT, (at / in_row) as f64 * step_y + TOP);
            drawing
                .add(format_args!("<g transform=\"translate({:.1} {:.1})\">", origin.0, origin.1));
            let texts = self.roles.panels.iter().zip(levels).map(|(axis, level)| {
                let axis = &self.table.axes[*axis];
                format!("{} = {}", axis.name, level_label(axis, *level))
            });
            drawing.text(width / 2.0, -9.0, "heading", &texts.collect::<Vec<_>>().join(", "));
            drawing.frame();
            panel.iter().for_each(|(number, marks)| drawing.series(*number, marks));
            drawing.svg.push_str("</g>");
        }
        if let Some(series) = self.roles.series {
            drawing.legend(&self.table.axes[series], beside + 14.0);
        }
        drawing.svg.push_str("</svg>");
        drawing.svg
    }

    fn caption(&self) -> String {
        let what = if self.is_single { "Values" } else { "Medians" };
        let mut said = vec![format!("{what} of {}.", self.title())];
        match (self.is_single, self.has_intervals) {
            (true, _) => {}
            (_, true) => said.push("Bars: 95 % confidence intervals of the medians.".to_owned()),
            (_, false) => said.push("Bars: from the least to the largest value.".to_owned()),
        }
        if self.has_values {
            said.push("Pale dots: all values.".to_owned());
        }
        if self.up.is_log {
            said.push("The upright scale is logarithmic.".to_owned());
        } else if self.up.low != 0.0 {
            said.push("The upright scale does not begin at 0.".to_owned());
        }
        if self.panels.len() < self.panels_in_all {
            said.push(format!("The first {PANELS} of {} panels.", self.panels_in_all));
        }
        let levels = self.axis().levels.len();
        if self.shown < levels {
            said.push(format!("The first {} of {levels} of {}.", self.shown, self.axis().name));
        }
        said.join(" ")
    }
}

/// A level as a label.
fn level_label(axis: &PointAxis<'_>, level: usize) -> String {
    let text = &axis.levels[level];
    match axis.kind {
        AxisKind::Commit => text.chars().take(8).collect(),
        AxisKind::Number => grouped(text),
        AxisKind::Text => cut(text),
    }
}

/// A text of at most 24 characters, cut in the middle.
fn cut(text: &str) -> String {
    let letters: Vec<char> = text.chars().collect();
    if letters.len() <= 24 {
        return text.to_owned();
    }
    let (begin, end) = (&letters[..12], &letters[letters.len() - 11..]);
    begin.iter().chain(&['…']).chain(end).collect()
}

/// The drawing of panels.
struct Canvas<'a> {
    plot: &'a Plot<'a>,
    svg: String,
    width: f64,
    height: f64,
}

impl Canvas<'_> {
    fn add(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes everything that is written.
        let _ = self.svg.write_fmt(text);
    }

    fn x(&self, value: f64) -> f64 {
        self.plot.across.at(value) * self.width
    }

    /// The height of a value in the unit that is shown.
    fn y(&self, value: f64) -> f64 {
        (1.0 - self.plot.up.at(value)) * self.height
    }

    fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        self.add(format_args!(
            "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\">{}</text>",
            escaped(text)
        ));
    }

    /// The axes of a panel, with their ticks and names.
    fn frame(&mut self) {
        let (axis, shown, width, height) =
            (self.plot.axis(), self.plot.shown, self.width, self.height);
        for tick in self.plot.up.ticks() {
            let y = self.y(tick);
            self.add(format_args!("<path class=\"grid\" d=\"M0 {y:.1}H{width}\"/>"));
            self.text(-7.0, y + 4.0, "tick left", &short(tick));
        }
        self.add(format_args!("<path class=\"axis\" d=\"M0 0V{height}H{width}\"/>"));
        let ticks: Vec<(f64, String)> = match axis.kind {
            AxisKind::Number if axis.levels.len() > 9 => {
                self.plot.across.ticks().into_iter().map(|tick| (tick, short(tick))).collect()
            }
            AxisKind::Number => {
                let levels = axis.levels.iter();
                levels.map(|text| (text.parse().unwrap_or_default(), grouped(text))).collect()
            }
            _ => {
                let every = shown.div_ceil(12);
                let some = (0..shown).filter(|at| at % every == 0 || at + 1 == shown);
                some.map(|at| (at as f64, level_label(axis, at))).collect()
            }
        };
        let letters = ticks.iter().map(|(_, text)| text.chars().count()).max().unwrap_or_default();
        let is_slanted = letters as f64 * 7.0 * ticks.len() as f64 > width;
        for (value, text) in ticks {
            let x = self.x(value);
            self.add(format_args!("<path class=\"axis\" d=\"M{x:.1} {height}v4\"/>"));
            if is_slanted {
                self.add(format_args!(
                    "<text class=\"tick slanted\" transform=\"translate({x:.1} {:.1}) rotate(-25)\">{}</text>",
                    height + 15.0,
                    escaped(&text)
                ));
            } else {
                self.text(x, height + 17.0, "tick", &text);
            }
        }
        self.text(width / 2.0, height + 38.0, "name", axis.name);
        self.add(format_args!(
            "<text class=\"name\" transform=\"translate(-52 {:.1}) rotate(-90)\">{}</text>",
            height / 2.0,
            escaped(&self.plot.column)
        ));
    }

    /// The marks of a series, with bars, a line if that means something, and all values behind them.
    fn series(&mut self, number: usize, marks: &[Mark<'_>]) {
        self.add(format_args!("<g class=\"series s{}\">", number % SERIES));
        let mut marks: Vec<&Mark<'_>> = marks.iter().collect();
        marks.sort_by(|a, b| a.x.total_cmp(&b.x));
        // Series beside each other do not hide their bars.
        let shift = (number as f64 - 1.0) * 3.0;
        let mut places = Vec::with_capacity(marks.len());
        for mark in marks {
            let x = self.x(mark.x) + shift;
            let height = |value: f64| self.y(self.plot.unit.scaled(value));
            let values = mark.values.iter().filter(|_| self.plot.has_values);
            let values: Vec<f64> = values
                .map(|value| height(*value))
                .filter(|y| (0.0..=self.height).contains(y))
                .collect();
            let bar = mark.bar.map(|ends| ends.map(height));
            places.push((x, height(mark.median)));
            for y in values {
                self.add(format_args!(
                    "<circle class=\"value\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"1.8\"/>"
                ));
            }
            if let Some([low, high]) = bar {
                self.add(format_args!("<path class=\"bar\" d=\"M{x:.1} {low:.1}V{high:.1}\"/>"));
            }
        }
        if self.plot.axis().kind != AxisKind::Text && places.len() > 1 {
            let path: Vec<String> = places.iter().map(|(x, y)| format!("{x:.1} {y:.1}")).collect();
            self.add(format_args!("<path class=\"line\" d=\"M{}\"/>", path.join("L")));
        }
        for (x, y) in places {
            self.mark(number, x, y);
        }
        self.svg.push_str("</g>");
    }

    /// A mark, whose shape tells the series.
    fn mark(&mut self, series: usize, x: f64, y: f64) {
        let path = match series % SERIES {
            0 => format!("M{:.1} {y:.1}a4 4 0 1 0 8 0a4 4 0 1 0 -8 0", x - 4.0),
            1 => format!("M{:.1} {:.1}h7v7h-7z", x - 3.5, y - 3.5),
            2 => format!("M{x:.1} {:.1}l4.5 8h-9z", y - 5.0),
            3 => format!("M{x:.1} {:.1}l5 5l-5 5l-5 -5z", y - 5.0),
            4 => format!("M{x:.1} {:.1}l4.5 -8h-9z", y + 5.0),
            5 => format!("M{:.1} {:.1}h3v9h-3z", x - 1.5, y - 4.5),
            _ => format!("M{:.1} {:.1}h9v3h-9z", x - 4.5, y - 1.5),
        };
        self.add(format_args!("<path class=\"mark\" d=\"{path}\"/>"));
    }

    fn legend(&mut self, axis: &PointAxis, x: f64) {
        self.text(x, TOP + 4.0, "legend head", axis.name);
        for level in 0..axis.levels.len() {
            let y = TOP + 22.0 + 18.0 * level as f64;
            self.add(format_args!("<g class=\"series s{}\">", level % SERIES));
            self.add(format_args!("<path class=\"line\" d=\"M{x:.1} {y:.1}h22\"/>"));
            self.mark(level, x + 11.0, y);
            self.svg.push_str("</g>");
            self.text(x + 29.0, y + 4.0, "legend", &level_label(axis, level));
        }
    }
}
