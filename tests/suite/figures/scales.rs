//! Where plots put points, which ticks they have, and which changes a history marks.

use super::plots::{drawn, has, notes, of_kind, said};
use super::{one_call, refuses};

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
fn points_are_at_their_values() {
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
fn a_history_marks_changes_beyond_the_noise() {
    let noise = [100.0, 101.0, 99.5, 100.5, 99.0, 100.0, 101.5, 100.5];
    assert!(changes(&history(&noise)).is_empty());
    let after = noise.map(|value| value * 1.2);
    assert_eq!(changes(&history(&[noise, after].concat())), ["+19.4 %"]);
    let back = changes(&history(&[noise, after, noise].concat()));
    assert_eq!(back, ["+19.4 %", "−17.1 %"]);
    // One that is off is an outlier, unless it was measured repeatedly.
    let outlier = [&noise[..], &[150.0], &noise[..]].concat();
    assert!(changes(&history(&outlier)).is_empty());
    // Three values have no noise to compare with, unless they were measured repeatedly.
    assert!(changes(&history(&[100.0, 101.0, 150.0])).is_empty());
    let row = |commit: &str, ms: f64| format!("{{\"commit\":\"{commit}\",\"ms\":{ms}}}\n");
    let measured =
        |scale: f64| -> String { noise.map(|ms| row(&scale.to_string(), ms * scale)).concat() };
    assert_eq!(changes(&(measured(1.0) + &measured(1.3))), ["+30 %"]);
    let once = [1.0, 1.001, 1.3, 1.002].map(measured).concat();
    assert_eq!(changes(&once), ["+29.9 %", "−22.9 %"]);
    // Noise grows with the values, if none is zero or less.
    let level = |at: u8| if at < 12 { 1.0 } else { 25.0 };
    let factor = |at: u8| 1.0 + f64::from(at % 3) / 200.0 + f64::from(at) / 1e6;
    let levels: String = (0..20).map(|at| measured(level(at) * factor(at))).collect();
    assert_eq!(changes(&levels), ["+2388 %"]);
    let below = [noise.map(|value| value - 101.0), noise.map(|value| value + 99.0)].concat();
    assert_eq!(changes(&history(&below)).len(), 1);
}

#[test]
fn a_history_marks_failures_and_abbreviates_commits() {
    let table = "{\"commit\":\"0123456789abcdef0123456789abcdef01234567\",\"ms\":1}\n\
                 {\"commit\":\"b\",\"ms\":null,\"status\":\"failed\"}\n\
                 {\"commit\":\"c\",\"ms\":1.5}\n";
    let said = said("history", &[table, "commit", "ms", ""]);
    has(&said, "0123456789");
    notes(&said, "Changes are not marked where the noise is unknown.");
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
