//! The files that tools for benchmarks write: JSON of hyperfine, Google Benchmark and pytest-benchmark, and the text of `go test -bench`.
//!
//! Each measured value is a row: the benchmark with its parameters, which are keys, the number of the value, and what was measured, in
//! seconds where it is a time. Statistics that a tool has made are left out. The computation `read-benchmarks` of the library makes the
//! same rows.

use std::collections::{BTreeMap, HashMap};

use ce_model::exit::Explain;
use ce_model::sweep::{
    Better, CellTable, CellValue, ColumnMeasure, REPLICATE, STATUS, read_object,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The reason why the file of a tool has no measurements.
#[derive(Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum BenchmarkFileError {
    /// A tool was asked for statistics only.
    #[error("the file of {tool} has statistics, and no measurements")]
    #[hint("make it with {option}")]
    Statistics { tool: &'static str, option: &'static str },
    /// A field is not what the tool writes.
    #[error("the file of {tool} has {field:?} where a value of {name} is expected")]
    #[hint(
        "a file of another version may have another form; compare a table of the values, as CSV"
    )]
    Field { tool: &'static str, name: &'static str, field: String },
    /// There is no benchmark.
    #[error("the file of {0} has no benchmarks")]
    #[hint("look at it: a filter may have left out all of them, or all have failed")]
    Nothing(&'static str),
}

/// Measurements, with the units and directions of their columns.
pub type BenchmarkTable = (CellTable, BTreeMap<String, ColumnMeasure>);

/// Names and their values, in order.
type Cells = Vec<(String, CellValue)>;

/// A measured value of a benchmark.
struct BenchmarkRow {
    /// The place where the benchmark is defined: a column if a file has several.
    place: Option<(&'static str, String)>,
    /// The benchmark and its parameters.
    point: Cells,
    /// What was measured; nothing if it has failed.
    measured: Cells,
}

/// The tools that write a document of JSON.
#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    results: Option<Vec<HyperfineResult<'a>>>,
    #[serde(borrow)]
    benchmarks: Option<Vec<&'a RawValue>>,
    #[serde(borrow)]
    machine_info: Option<&'a RawValue>,
}

/// Reads the file of a tool. `None` if it is not of one of these tools.
///
/// # Errors
///
/// Fails if it has no measurements.
pub fn read_benchmarks(contents: &[u8]) -> Option<Result<BenchmarkTable, BenchmarkFileError>> {
    let text = std::str::from_utf8(contents).ok()?;
    if !text.trim_start().starts_with('{') {
        return go_lines(text).next().is_some().then(|| table("go test", go_rows(text)));
    }
    let Document { results, benchmarks, machine_info } = serde_json::from_str(text).ok()?;
    let (tool, rows) = match (results, benchmarks) {
        (Some(results), _) => ("hyperfine", results.iter().map(HyperfineResult::rows).collect()),
        (None, None) => return None,
        (None, Some(all)) if machine_info.is_some() => {
            ("pytest-benchmark", all.into_iter().map(pytest_rows).collect())
        }
        (None, Some(all)) => ("Google Benchmark", all.into_iter().map(google_rows).collect()),
    };
    let rows: Result<Vec<Vec<BenchmarkRow>>, BenchmarkFileError> = rows;
    Some(rows.and_then(|rows| table(tool, rows.into_iter().flatten().collect())))
}

/// Makes a table of rows, and counts the values of each point.
fn table(
    tool: &'static str,
    rows: Vec<BenchmarkRow>,
) -> Result<BenchmarkTable, BenchmarkFileError> {
    if rows.iter().all(|row| row.measured.is_empty()) {
        return Err(BenchmarkFileError::Nothing(tool));
    }
    let mut places = rows.iter().map(|row| &row.place);
    let first = places.next();
    let has_places = places.any(|place| Some(place) != first);
    let has_failed = rows.iter().any(|row| row.measured.is_empty());
    let mut counts: HashMap<String, usize> = HashMap::new();
    let rows: Vec<[Cells; 3]> = rows
        .into_iter()
        .map(|BenchmarkRow { place, mut point, measured }| {
            if let Some((name, place)) = place.filter(|_| has_places) {
                point.insert(0, (name.to_owned(), CellValue::Text(place)));
            }
            let count = counts.entry(format!("{point:?}")).or_default();
            *count += 1;
            let count = CellValue::Number(count.to_string());
            let status = text(if measured.is_empty() { "failed" } else { "ok" });
            let status = has_failed.then(|| (STATUS.to_owned(), status));
            let measured = [(REPLICATE.to_owned(), count)].into_iter().chain(measured);
            [point, measured.collect(), status.into_iter().collect()]
        })
        .collect();
    // The columns of all points stand before the replicate, and the status is the last one.
    let mut table = CellTable::default();
    for (name, _) in (0..3).flat_map(|part| rows.iter().flat_map(move |row| &row[part])) {
        if !table.names.contains(name) {
            table.names.push(name.clone());
        }
    }
    for row in rows {
        let mut cells = vec![CellValue::Null; table.names.len()];
        for (name, cell) in row.into_iter().flatten() {
            if let Some(at) = table.names.iter().position(|known| *known == name) {
                cells[at] = cell;
            }
        }
        table.rows.push(cells);
    }
    let measures = table.names.iter().filter_map(|name| Some((name.clone(), measure(name)?)));
    let measures = measures.collect();
    Ok((table, measures))
}

/// The unit and the direction of a column that tools have.
fn measure(name: &str) -> Option<ColumnMeasure> {
    let (unit, better) = match name {
        "seconds" | "cpu_seconds" => (Some("s"), Better::Less),
        "B/op" | "allocs/op" => (None, Better::Less),
        "MB/s" | "items_per_second" | "bytes_per_second" => (None, Better::More),
        _ => return None,
    };
    Some(ColumnMeasure { unit: unit.map(Into::into), better: Some(better) })
}

/// A parameter: a number where it is written as one.
fn parameter(text: &str) -> CellValue {
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() && serde_json::from_str::<f64>(text).is_ok() => {
            CellValue::Number(text.to_owned())
        }
        _ => CellValue::Text(text.to_owned()),
    }
}

/// A number divided by a power of ten, as it is spelled shortest.
fn divided(spelled: &str, by: f64) -> Option<CellValue> {
    let number = spelled.parse::<f64>().ok()? / by;
    number.is_finite().then(|| CellValue::Number(format!("{number:?}")))
}

fn text(text: &str) -> CellValue {
    CellValue::Text(text.to_owned())
}

/// The fields of an object, in their order.
fn fields(
    tool: &'static str,
    name: &'static str,
    object: &RawValue,
) -> Result<Cells, BenchmarkFileError> {
    let wrong = |_| BenchmarkFileError::Field { tool, name, field: shortened(object.get()) };
    read_object(object.get().as_bytes()).map_err(wrong)
}

fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[derive(Deserialize)]
struct HyperfineResult<'a> {
    command: String,
    #[serde(borrow)]
    parameters: Option<&'a RawValue>,
    #[serde(borrow)]
    times: Option<Vec<&'a RawValue>>,
    exit_codes: Option<Vec<Option<i32>>>,
}

impl HyperfineResult<'_> {
    fn rows(&self) -> Result<Vec<BenchmarkRow>, BenchmarkFileError> {
        let tool = "hyperfine";
        let Some(times) = &self.times else {
            return Err(BenchmarkFileError::Statistics { tool, option: "--export-json" });
        };
        let mut point = vec![("command".to_owned(), text(&self.command))];
        if let Some(parameters) = self.parameters {
            let parameters = fields(tool, "parameters", parameters)?.into_iter();
            point.extend(parameters.map(|(name, value)| (name, parameter(value.text()))));
        }
        let codes = self.exit_codes.iter().flatten().copied().chain(std::iter::repeat(Some(0)));
        let rows = times.iter().zip(codes).map(|(seconds, code)| {
            let seconds = ("seconds".to_owned(), CellValue::Number(seconds.get().to_owned()));
            let code = code.filter(|code| *code != 0);
            let code = code.map(|code| CellValue::Number(code.to_string()));
            let code = code.map(|code| ("exit_code".to_owned(), code));
            let measured = [seconds].into_iter().chain(code).collect();
            BenchmarkRow { place: None, point: point.clone(), measured }
        });
        Ok(rows.collect())
    }
}

#[derive(Deserialize)]
struct PytestResult<'a> {
    name: String,
    fullname: Option<String>,
    group: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    stats: PytestStatistics<'a>,
}

#[derive(Deserialize)]
struct PytestStatistics<'a> {
    #[serde(borrow)]
    data: Option<Vec<&'a RawValue>>,
}

fn pytest_rows(result: &RawValue) -> Result<Vec<BenchmarkRow>, BenchmarkFileError> {
    let tool = "pytest-benchmark";
    let wrong = |_| {
        let field = shortened(result.get());
        BenchmarkFileError::Field { tool, name: "benchmarks", field }
    };
    let result: PytestResult<'_> = serde_json::from_str(result.get()).map_err(wrong)?;
    let Some(data) = &result.stats.data else {
        return Err(BenchmarkFileError::Statistics { tool, option: "--benchmark-save-data" });
    };
    let full = result.fullname.as_deref().unwrap_or(&result.name);
    let (file, name) = full.split_once("::").unwrap_or(("", full));
    let name = name.split('[').next().unwrap_or(name);
    let mut point = vec![("benchmark".to_owned(), text(name))];
    if let Some(params) = result.params.filter(|params| params.get() != "null") {
        point.extend(fields(tool, "params", params)?);
    }
    point.extend(result.group.map(|group| ("group".to_owned(), CellValue::Text(group))));
    let rows = data.iter().map(|seconds| BenchmarkRow {
        place: Some(("file", file.to_owned())),
        point: point.clone(),
        measured: vec![("seconds".to_owned(), CellValue::Number(seconds.get().to_owned()))],
    });
    Ok(rows.collect())
}

/// The parts of a name such as `sort/threads=4/1024`: the benchmark, and its parameters.
fn named(name: &str) -> Cells {
    let mut parts = name.split('/');
    let mut point = vec![("benchmark".to_owned(), text(parts.next().unwrap_or(name)))];
    for (number, part) in parts.filter(|part| !is_setting(part)).enumerate() {
        let named = part.split_once('=').or_else(|| part.split_once(':'));
        let (name, value) = named
            .map_or((format!("parameter{number}"), part), |(name, value)| (name.to_owned(), value));
        point.push((name, parameter(value)));
    }
    point
}

/// Whether a part of a name of Google Benchmark says how it was measured.
fn is_setting(part: &str) -> bool {
    let settings = ["repeats:", "iterations:", "min_time:", "min_warmup_time:"];
    ["real_time", "process_time", "manual_time"].contains(&part)
        || settings.iter().any(|setting| part.starts_with(setting))
}

/// Fields of Google Benchmark that are neither parameters nor measured.
const NOT_MEASURED: [&str; 17] = [
    "name",
    "run_name",
    "run_type",
    "repetitions",
    "repetition_index",
    "threads",
    "iterations",
    "real_time",
    "cpu_time",
    "time_unit",
    "family_index",
    "per_family_instance_index",
    "aggregate_name",
    "aggregate_unit",
    "error_occurred",
    "error_message",
    "label",
];

fn google_rows(result: &RawValue) -> Result<Vec<BenchmarkRow>, BenchmarkFileError> {
    let tool = "Google Benchmark";
    let cells = fields(tool, "benchmarks", result)?;
    let of = |name: &str| cells.iter().find(|(it, _)| it == name).map(|(_, value)| value.text());
    let is_measured = of("run_type").is_none_or(|kind| kind == "iteration");
    let Some(name) = of("run_name").or_else(|| of("name")).filter(|_| is_measured) else {
        return Ok(Vec::new());
    };
    let mut point = named(name);
    let threads = of("threads").filter(|threads| *threads != "1");
    if let Some(threads) = threads.filter(|_| point.iter().all(|(name, _)| name != "threads")) {
        point.push(("threads".to_owned(), CellValue::Number(threads.to_owned())));
    }
    if of("error_occurred") == Some("true") {
        return Ok(vec![BenchmarkRow { place: None, point, measured: Vec::new() }]);
    }
    let unit = of("time_unit").unwrap_or("ns");
    let by = match unit {
        "ns" => 1e9,
        "us" => 1e6,
        "ms" => 1e3,
        "s" => 1.0,
        other => {
            let field = other.to_owned();
            return Err(BenchmarkFileError::Field { tool, name: "time_unit", field });
        }
    };
    let mut measured = Vec::new();
    for (column, field) in [("seconds", "real_time"), ("cpu_seconds", "cpu_time")] {
        let spelled = of(field).unwrap_or_default();
        let wrong = || BenchmarkFileError::Field { tool, name: "real_time", field: spelled.into() };
        measured.push((column.to_owned(), divided(spelled, by).ok_or_else(wrong)?));
    }
    let others = cells.iter().filter(|(name, value)| {
        !NOT_MEASURED.contains(&&**name) && matches!(value, CellValue::Number(_))
    });
    measured.extend(others.cloned());
    Ok(vec![BenchmarkRow { place: None, point, measured }])
}

/// The words of lines of `go test -bench` that have measurements: the name, the number of iterations, and values with units.
fn go_lines(text: &str) -> impl Iterator<Item = (usize, Vec<&str>)> {
    text.lines().enumerate().filter_map(|(number, line)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let is_measured = line.starts_with("Benchmark")
            && words.len() >= 4
            && words.len().is_multiple_of(2)
            && words[1].parse::<u64>().is_ok()
            && words[2..].chunks(2).all(|it| it[0].parse::<f64>().is_ok());
        is_measured.then_some((number, words))
    })
}

fn go_rows(text: &str) -> Vec<BenchmarkRow> {
    let packages = text
        .lines()
        .enumerate()
        .filter_map(|(number, line)| Some((number, line.strip_prefix("pkg:")?.trim())));
    let packages: Vec<(usize, &str)> = packages.collect();
    let rows = go_lines(text).map(|(number, words)| {
        let package = packages.iter().rev().find(|(at, _)| *at < number).map_or("", |it| it.1);
        let (name, cpus) = match words[0].rsplit_once('-') {
            Some((name, cpus)) if cpus.parse::<u32>().is_ok() => (name, Some(cpus)),
            _ => (words[0], None),
        };
        let mut point = named(name);
        point.extend(cpus.map(|cpus| ("cpus".to_owned(), CellValue::Number(cpus.to_owned()))));
        let measured = words[2..].chunks(2).filter_map(|it| match it {
            [nanoseconds, "ns/op"] => Some(("seconds".to_owned(), divided(nanoseconds, 1e9)?)),
            [value, unit] => Some(((*unit).to_owned(), parameter(value))),
            _ => None,
        });
        let measured = measured.collect();
        BenchmarkRow { place: Some(("pkg", package.to_owned())), point, measured }
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table in words: the names, and the rows; or the reason why there is none.
    fn read(text: &str) -> String {
        match read_benchmarks(text.as_bytes()) {
            None => "another file".to_owned(),
            Some(Err(error)) => format!("{error}; {}", error.hint().unwrap_or_default()),
            Some(Ok((table, _))) => {
                let rows = table
                    .rows
                    .iter()
                    .map(|row| row.iter().map(CellValue::text).collect::<Vec<_>>().join(" "));
                let rows: Vec<String> = rows.collect();
                format!("{}: {}", table.names.join(" "), rows.join(", "))
            }
        }
    }

    #[test]
    fn parameters_stand_before_the_replicate_and_values_keep_their_spelling() {
        let hyperfine = r#"{"results": [
            {"command": "a 1", "times": [1.50, 2], "exit_codes": [0, 3], "parameters": {"z": "1", "n": "x"}},
            {"command": "b", "times": [3]}]}"#;
        let expected =
            "command z n replicate seconds exit_code: a 1 1 x 1 1.50 , a 1 1 x 2 2 3, b   1 3 ";
        assert_eq!(read(hyperfine), expected);
        let google = r#"{"benchmarks": [
            {"run_name": "f/8/k:2/repeats:2", "run_type": "iteration", "threads": 4, "real_time": 1.5e3, "cpu_time": 2, "time_unit": "us", "x": 7},
            {"name": "f/8_mean", "run_type": "aggregate", "real_time": 1},
            {"name": "g", "error_occurred": true}]}"#;
        let expected = "benchmark parameter0 k threads replicate seconds cpu_seconds x status: \
            f 8 2 4 1 0.0015 2e-6 7 ok, g    1    failed";
        assert_eq!(read(google), expected);
        let pytest = |second: &str| {
            format!(
                r#"{{"machine_info": {{}}, "benchmarks": [
                {{"name": "t[1]", "fullname": "a.py::C::t[1]", "params": {{"n": 1}}, "stats": {{"data": [1, 2]}}}},
                {{"name": "t", "fullname": "{second}::t", "params": null, "group": "g", "stats": {{"data": [3]}}}}]}}"#
            )
        };
        let expected = "benchmark n group replicate seconds: C::t 1  1 1, C::t 1  2 2, t  g 1 3";
        assert_eq!(read(&pytest("a.py")), expected);
        assert!(
            read(&pytest("b.py"))
                .starts_with("file benchmark n group replicate seconds: a.py C::t")
        );
    }

    #[test]
    fn lines_of_go_have_the_package_if_there_are_several() {
        let go = "pkg: a\nBenchmarkX/n=8-4  10  1500 ns/op  16 B/op\nok a\nBenchmarkX: a log\n";
        assert_eq!(read(go), "benchmark n cpus replicate seconds B/op: BenchmarkX 8 4 1 1.5e-6 16");
        let two = format!("{go}pkg: b\nBenchmarkX/n=8-4  10  1500 ns/op\n");
        assert!(
            read(&two).starts_with("pkg benchmark n cpus replicate seconds B/op: a BenchmarkX")
        );
    }

    #[test]
    fn a_file_without_measurements_says_how_to_make_one_with_them() {
        let told = read(r#"{"results": [{"command": "a", "mean": 1}]}"#);
        assert_eq!(
            told,
            "the file of hyperfine has statistics, and no measurements; make it with --export-json"
        );
        let told =
            read(r#"{"machine_info": {}, "benchmarks": [{"name": "t", "stats": {"mean": 1}}]}"#);
        assert!(told.ends_with("make it with --benchmark-save-data"), "{told}");
        let told = read(r#"{"benchmarks": []}"#);
        assert!(told.starts_with("the file of Google Benchmark has no benchmarks"), "{told}");
        let told = read(r#"{"benchmarks": [{"name": "f", "real_time": 1, "time_unit": "h"}]}"#);
        assert!(
            told.starts_with("the file of Google Benchmark has \"h\" where a value of time_unit"),
            "{told}"
        );
    }

    #[test]
    fn a_table_is_not_taken_for_the_file_of_a_tool() {
        for text in [
            "",
            "{\"results\": 1}\n{\"results\": 2}\n",
            "{\"results\": [1]}",
            "Benchmark,seconds\na,1\n",
            "Benchmark\tn\nBenchmarkX\t8\n",
            "{",
            "[1]",
        ] {
            assert_eq!(read(text), "another file", "{text}");
        }
    }
}
