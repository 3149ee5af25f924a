//! Sweeps made up from a seed, as a model that knows nothing of how sweeps are planned.

use std::collections::BTreeMap;

use crate::generator::Random;
use crate::lab::Lab;

/// The texts of levels. There is a computation `t-LEVEL` for each of them, and for the replicates.
pub(super) const LEVELS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// The greatest number of replicates.
const MAX_REPLICATES: usize = 3;

/// The texts of the names at a point.
pub(super) type Point = BTreeMap<String, String>;

/// Names that vary together, and their levels: a list if it is one name.
#[derive(Clone, Debug)]
pub(super) struct Factor {
    pub(super) names: Vec<String>,
    pub(super) rows: Vec<Vec<String>>,
}

/// A sweep.
#[derive(Clone, Debug)]
pub(super) struct MadeUp {
    pub(super) factors: Vec<Factor>,
    /// Points with all texts of one of these are left out.
    pub(super) exclude: Vec<Point>,
    pub(super) replicates: Option<usize>,
    /// Whether the columns of its table are written.
    pub(super) has_columns: bool,
    pub(super) body: Body,
}

/// An expression in which names stand for texts.
#[derive(Clone, Debug)]
pub(super) enum Body {
    /// Outputs of a computation, in whose name there may be a name in braces.
    Call(String, Vec<Self>, Vec<usize>),
    Name(String),
    /// A file in the storage, in whose name there may be a name in braces.
    Literal(String),
    Input,
    Sweep(Box<MadeUp>),
}

/// A laboratory with the computations that made-up sweeps call. Each has two outputs.
pub(super) fn lab() -> Lab {
    let mut lab = Lab::empty().data("x", "x").computation("f", "one other", "o0 o1", "exit 1");
    let replicates = (1..=MAX_REPLICATES + 1).map(|number| number.to_string());
    for level in LEVELS.map(str::to_owned).into_iter().chain(replicates) {
        lab = lab.computation(&format!("t-{level}"), "one", "o0 o1", "exit 1");
    }
    lab.inputs = vec!["x".to_owned()];
    lab.commit()
}

/// Makes up a sweep, with others in its body.
pub(super) fn made_up(random: &mut Random) -> MadeUp {
    let depth = random.below(3);
    Generator { random, names: 0 }.sweep(depth, &[])
}

struct Generator<'a> {
    random: &'a mut Random,
    names: usize,
}

impl Generator<'_> {
    fn name(&mut self) -> String {
        self.names += 1;
        format!("n{}", self.names)
    }

    /// Some of the levels, each once, in any order. The last one is left for those that want one more.
    fn levels(&mut self, count: usize) -> Vec<String> {
        let mut levels = LEVELS[..LEVELS.len() - 1].to_vec();
        (0..count).map(|_| levels.swap_remove(self.random.below(levels.len())).to_owned()).collect()
    }

    fn factor(&mut self) -> Factor {
        let width = [1, 1, 2, 3][self.random.below(4)];
        let names = (0..width).map(|_| self.name()).collect();
        let count = 1 + self.random.below(3);
        let mut rows = Vec::new();
        for level in self.levels(count) {
            let mut row = vec![level];
            row.extend((1..width).map(|_| self.random.one_of(&LEVELS).to_owned()));
            rows.push(row);
        }
        Factor { names, rows }
    }

    /// A sweep within others that bind these names.
    fn sweep(&mut self, depth: usize, around: &[String]) -> MadeUp {
        let factors: Vec<Factor> = (0..1 + self.random.below(2)).map(|_| self.factor()).collect();
        let is_outer = around.is_empty();
        let replicates =
            (is_outer && self.random.below(3) == 0).then(|| 1 + self.random.below(MAX_REPLICATES));
        // Of each factor, the first name is read, and the others perhaps.
        let mut read: Vec<String> = factors.iter().map(|factor| factor.names[0].clone()).collect();
        read.extend(replicates.map(|_| "replicate".to_owned()));
        let all: Vec<String> =
            factors.iter().flat_map(|factor| factor.names.clone()).chain(around.to_vec()).collect();
        read.push(all[self.random.below(all.len())].clone());
        let mut parts: Vec<Body> = read.into_iter().map(|name| self.leaf(name)).collect();
        if depth > 0 {
            parts.push(Body::Sweep(Box::new(self.sweep(depth - 1, &all))));
        }
        parts.push(
            [Body::Input, Body::Literal("by hand/one".to_owned())][self.random.below(2)].clone(),
        );
        let body = self.folded(parts);
        let (exclude, has_columns) = (Vec::new(), self.random.below(2) == 0);
        let mut sweep = MadeUp { factors, exclude, replicates, has_columns, body };
        self.exclude(&mut sweep);
        sweep
    }

    /// A node that depends on a name.
    fn leaf(&mut self, name: String) -> Body {
        match self.random.below(4) {
            0 => Body::Literal(format!("by hand/{{{name}}}")),
            1 => self.call(&format!("t-{{{name}}}"), vec![Body::Input]),
            2 => {
                let inner = Body::Name(name);
                self.call("t-a", vec![inner])
            }
            _ => Body::Name(name),
        }
    }

    fn call(&mut self, name: &str, inputs: Vec<Body>) -> Body {
        Body::Call(name.to_owned(), inputs, vec![self.random.below(2)])
    }

    /// One expression that reads all of these, in any order.
    fn folded(&mut self, mut parts: Vec<Body>) -> Body {
        while parts.len() > 1 {
            let [one, other] = [0, 1].map(|_| parts.swap_remove(self.random.below(parts.len())));
            let call = self.call("f", vec![one, other]);
            parts.push(call);
        }
        match parts.swap_remove(0) {
            Body::Call(name, inputs, _) => {
                let outputs = [vec![0], vec![1], vec![0, 1], vec![1, 0]];
                Body::Call(name, inputs, outputs[self.random.below(4)].clone())
            }
            other => other,
        }
    }

    /// Leaves out up to two kinds of points, but not all.
    fn exclude(&mut self, sweep: &mut MadeUp) {
        for _ in 0..self.random.below(3) {
            let points = sweep.points();
            let point = &points[self.random.below(points.len())];
            let mut pattern = point.clone();
            pattern.retain(|_, _| self.random.below(2) == 0);
            let others = points.iter().filter(|point| !has(point, &pattern)).count();
            if !pattern.is_empty() && others > 0 {
                sweep.exclude.push(pattern);
            }
        }
    }
}

/// Whether a point has all of these texts.
fn has(point: &Point, pattern: &Point) -> bool {
    pattern.iter().all(|(name, text)| point.get(name) == Some(text))
}

impl MadeUp {
    /// Its points, in the order of the table.
    pub(super) fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new()];
        for Factor { names, rows } in &self.factors {
            let with = |point: &Point, row: &Vec<String>| {
                let texts = names.iter().cloned().zip(row.iter().cloned());
                point.clone().into_iter().chain(texts).collect::<Point>()
            };
            let all = points.iter().flat_map(|point| rows.iter().map(move |row| with(point, row)));
            points = all.collect();
        }
        if let Some(replicates) = self.replicates {
            let with = |point: &Point, number: usize| {
                let text = ("replicate".to_owned(), number.to_string());
                point.clone().into_iter().chain([text]).collect::<Point>()
            };
            let all = points.iter().flat_map(|it| (1..=replicates).map(move |n| with(it, n)));
            points = all.collect();
        }
        points.retain(|point| !self.exclude.iter().any(|pattern| has(point, pattern)));
        points
    }

    /// The columns of its table behind the columns of the points.
    pub(super) fn columns(&self) -> Vec<String> {
        let outputs = match &self.body {
            Body::Call(_, _, outputs) => outputs.clone(),
            _ => panic!("a body is a call"),
        };
        let name = |(at, number): (usize, &usize)| match self.has_columns {
            true => format!("column {at}"),
            false => format!("o{number}"),
        };
        outputs.iter().enumerate().map(name).collect()
    }

    /// The sweep as text.
    pub(super) fn text(&self) -> String {
        let quoted = |texts: &[String]| {
            texts.iter().map(|text| format!("'{text}'")).collect::<Vec<_>>().join(" ")
        };
        let row = |texts: &[String]| format!(" ({})", quoted(texts));
        let mut files = Vec::new();
        for (number, Factor { names, rows }) in self.factors.iter().enumerate() {
            files.push(match &names[..] {
                [name] => format!(":factors/{number:02}-{name} {}", quoted(&rows.concat())),
                names => {
                    let rows: String = rows.iter().map(|texts| row(texts)).collect();
                    format!(":factors/{number:02}-f.tsv{}{rows}", row(names))
                }
            });
        }
        if !self.exclude.is_empty() {
            let names: Vec<String> = self.points()[0].keys().cloned().collect();
            let cells = |pattern: &Point| {
                let cell = |name| pattern.get(name).cloned().unwrap_or_default();
                row(&names.iter().map(cell).collect::<Vec<_>>())
            };
            let rows: String = self.exclude.iter().map(cells).collect();
            files.push(format!(":exclude.tsv{}{rows}", row(&names)));
        }
        files.extend(self.replicates.map(|count| format!(":replicates '{count}'")));
        if self.has_columns {
            let column = |(at, name)| format!("{at:02} {name}");
            let columns: Vec<String> = self.columns().into_iter().enumerate().map(column).collect();
            files.push(format!(":columns {}", quoted(&columns)));
        }
        format!("SWEEP({}\n:body {})[00]", files.join("\n"), self.body.text())
    }
}

impl Body {
    /// The expression as text.
    pub(super) fn text(&self) -> String {
        self.text_with(&mut |leaf| match leaf {
            Self::Name(name) => format!("INPUT('{name}')"),
            Self::Sweep(sweep) => sweep.text(),
            other => other.text(),
        })
    }

    /// The expression as text, in which a function writes names and sweeps.
    pub(super) fn text_with(&self, write: &mut dyn FnMut(&Self) -> String) -> String {
        match self {
            Self::Call(name, inputs, outputs) => {
                let inputs: String =
                    inputs.iter().map(|input| format!(" {}", input.text_with(write))).collect();
                let outputs: Vec<String> = outputs.iter().map(|it| format!("{it:02}")).collect();
                format!("({name}{inputs})[{}]", outputs.join(", "))
            }
            Self::Literal(name) => format!("FILE('{name}')"),
            Self::Input => "INPUT('x')".to_owned(),
            Self::Name(_) | Self::Sweep(_) => write(self),
        }
    }
}
