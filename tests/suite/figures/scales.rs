//! The places of points in plots, their ticks, and the changes that a history marks.

use std::process::Command;

use ce_model::statistics::series_steps;

use super::plots::{drawn, has, notes, of_kind, said};
use super::{library, one_call, refuses};
use crate::generator::Random;
use crate::needs::needs;

/// The places of the marks of the first group, in pixels.
fn marks(svg: &str) -> Vec<(f64, f64)> {
    let uses = svg.split("<use xlink:href='#gpPt6' transform='translate(").skip(1);
    let place = |text: &str| {
        let (x, y) = text.split_once(')').unwrap().0.split_once(',').unwrap();
        (x.parse().unwrap(), y.parse().unwrap())
    };
    uses.map(place).collect()
}

/// The second of three points is between the others.
#[track_caller]
fn in_the_middle(svg: &str) {
    let [a, b, c] = marks(svg)[..] else { panic!("{:?}", marks(svg)) };
    assert!(
        (a.0 + c.0 - 2.0 * b.0).abs() < 0.3 && (a.1 + c.1 - 2.0 * b.1).abs() < 0.3,
        "{a:?} {b:?} {c:?}"
    );
    assert!(a.0 + 100.0 < b.0 && a.1 > b.1 + 100.0, "{a:?} {b:?} {c:?}");
}

#[test]
fn points_are_drawn_at_their_values() {
    let linear = "{\"x\":1,\"y\":0}\n{\"x\":2,\"y\":5}\n{\"x\":3,\"y\":10}\n";
    let log = "{\"x\":1,\"y\":1}\n{\"x\":8,\"y\":10}\n{\"x\":64,\"y\":100}\n";
    for name in ["groups", "scatter"] {
        in_the_middle(&drawn(name, &[linear, "x", "y", ""]));
        in_the_middle(&drawn(name, &[log, "x", "y", ""]));
        in_the_middle(&drawn(name, &[log, "x\nscale: log", "y\nscale: log", ""]));
    }
    in_the_middle(&drawn("history", &[log, "x", "y", ""]));
    let linear = "{\"x\":1,\"y\":1}\n{\"x\":50,\"y\":50}\n{\"x\":99,\"y\":99}\n";
    in_the_middle(&drawn("groups", &[linear, "x\nscale: linear", "y\nscale: linear", ""]));
}

#[test]
fn ticks_tell_close_and_large_numbers_apart() {
    let table = |a: &str, b: &str| format!("{{\"x\":1,\"y\":{a}}}\n{{\"x\":2,\"y\":{b}}}\n");
    for (a, b, tick) in [
        ("1000123", "1000456", "1000200"),
        ("0.00000021", "0.00000039", "3×10⁻⁷"),
        ("-2", "-1", "−1.6"),
        ("1", "1e9", "10⁶"),
        ("2000000", "3000000", "2.4×10⁶"),
        ("5", "5", "5.2"),
    ] {
        has(&said("groups", &[&table(a, b), "x", "y", ""]), tick);
    }
}

/// A history with a value for each commit.
fn history(values: &[f64]) -> String {
    let row = |(at, value)| format!("{{\"commit\":\"c{at}\",\"ms\":{value}}}\n");
    values.iter().enumerate().map(row).collect()
}

/// The changes that a history marks.
fn changes(table: &str) -> Vec<String> {
    let mut said = said("history", &[table, "commit", "ms", ""]);
    said.retain(|line| line.ends_with(" %"));
    said
}

#[test]
fn a_history_marks_where_the_level_changes_and_stays() {
    let noise = [100.0, 101.0, 99.5, 100.5, 99.0, 100.0, 101.5, 100.5];
    assert!(changes(&history(&noise)).is_empty());
    let after = noise.map(|value| value * 1.2);
    assert_eq!(changes(&history(&[noise, after].concat())), ["+20 %"]);
    let back = changes(&history(&[noise, after, noise].concat()));
    assert_eq!(back, ["+20 %", "−16.7 %"]);
    let spike = [&noise[..], &[150.0], &noise[..]].concat();
    assert!(changes(&history(&spike)).is_empty());
    let row = |commit: &str, ms: f64| format!("{{\"commit\":\"{commit}\",\"ms\":{ms}}}\n");
    let measured =
        |(at, scale): (usize, f64)| noise.map(|ms| row(&at.to_string(), ms * scale)).concat();
    // Points in a row with the same values are one.
    let few = [1.0, 1.001, 1.0, 0.999, 1.3, 1.302, 1.301];
    let same: Vec<f64> = few.into_iter().flat_map(|scale| [scale; 3]).collect();
    let table: String = same.into_iter().enumerate().map(measured).collect();
    assert!(changes(&table).is_empty());
    notes(
        &said("history", &[&table, "commit", "ms", ""]),
        "Steps are not looked for in less than 8 measured points.",
    );
    let more = few.into_iter().chain([1.299]).flat_map(|scale| [scale; 3]);
    assert_eq!(changes(&more.enumerate().map(measured).collect::<String>()), ["+30 %"]);
    let said = said(
        "history",
        &[&history(&[noise.map(|it| it - 101.0), noise].concat()), "commit", "ms", ""],
    );
    assert!(said.iter().any(|text| text == "+101"), "{said:?}");
}

/// The step that the library finds, and `ce table --steps`.
#[test]
fn a_history_has_the_same_steps_as_a_table() {
    let mut random = Random::new(11);
    let mut all: Vec<Vec<f64>> = vec![[2.0; 8].into_iter().chain([3.0; 4]).collect()];
    for length in [7, 8, 9, 20, 41, 120] {
        for level in [0.0, 100.0] {
            let mut level = level;
            let mut value = || {
                level += if random.below(12) == 0 { 9.0 } else { 0.0 };
                level + f64::from(u32::try_from(random.below(1000)).unwrap()) / 256.0
            };
            all.push((0..length).map(|_| value()).collect());
        }
    }
    needs(&["python3"]);
    let program = "import json, sys, steps\n\
                   print(json.dumps([steps.steps(it) for it in json.loads(sys.argv[1])]))";
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", library().join("plot")).env("PYTHONDONTWRITEBYTECODE", "1");
    let ran = python.args(["-c", program, &serde_json::to_string(&all).unwrap()]).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found: Vec<Vec<(usize, f64, f64)>> = serde_json::from_slice(&ran.stdout).unwrap();
    let expected = all.iter().map(|values| series_steps(values));
    let expected: Vec<Vec<(usize, f64, f64)>> = expected
        .map(|steps| steps.iter().map(|it| (it.at, it.levels[0], it.levels[1])).collect())
        .collect();
    assert_eq!(found, expected);
    assert!(expected.iter().filter(|steps| !steps.is_empty()).count() > 4, "{expected:?}");
}

#[test]
fn a_history_marks_failures_and_abbreviates_commits() {
    let table = "{\"commit\":\"0123456789abcdef0123456789abcdef01234567\",\"ms\":1}\n\
                 {\"commit\":\"b\",\"ms\":null,\"status\":\"failed\"}\n\
                 {\"commit\":\"c\",\"ms\":1.5}\n";
    let said = said("history", &[table, "commit", "ms", ""]);
    has(&said, "0123456789");
    notes(&said, "Steps are not looked for in less than 8 measured points.");
    notes(&said, "Crosses at the bottom: rows failed or have no value.");
    assert_eq!(drawn("history", &[table, "commit", "ms", ""]).matches("#gpPt1'").count(), 1);
}

#[test]
fn texts_have_no_scale() {
    let texts = "{\"x\":\"a\",\"y\":1}\n";
    let line = "column \"x\" is not drawn as numbers, so it has no scale";
    for (name, table) in [("groups", texts), ("history", "{\"x\":1,\"y\":1}\n")] {
        refuses(one_call("plot"), "plot", &of_kind(name, &[table, "x\nscale: log", "y", ""]), line);
    }
}
