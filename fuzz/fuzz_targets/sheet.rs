//! The bytes of a sheet in each format: they are refused at a place in them, or are points that are written so
//! that they are read as the same again, also as a parameter file; and as factors they have a product from which any of them can be excluded,
//! by rows or by a condition.
#![no_main]

use std::num::NonZeroU32;

use compeval::sweep::{
    Condition, Parameters, SheetFormat, SweepPoints, product, read, read_levels,
};
use libfuzzer_sys::fuzz_target;

fn written(points: &SweepPoints) -> Vec<u8> {
    let mut text = Vec::new();
    points.write_ndjson(&mut text).unwrap();
    text
}

/// A condition is refused at a place in it, or chooses points that it holds for again.
fn select(text: &str, points: &SweepPoints) {
    let condition = Condition::try_from(Box::from(text));
    match condition.and_then(|it| Ok((it.select(points)?, it))) {
        Ok((selected, condition)) => {
            assert_eq!(condition.text(), text);
            assert!(selected.len() <= points.len());
            assert_eq!(condition.select(&selected), Ok(selected));
        }
        Err(fault) => assert!((1..=text.chars().count() + 1).contains(&fault.column)),
    }
}

fuzz_target!(|data: (&[u8], &[u8])| {
    let (sheet, other) = data;
    let levels = read_levels("level", other);
    let inputs = ["a", "b", "c"].map(str::to_owned);
    let defaults = [("a".to_owned(), Ok("1".to_owned()))].into();
    if let Ok(points) = Parameters::read(sheet, &inputs).and_then(|it| it.points(&defaults)) {
        // Their printed form is read as the same points.
        let text = written(&points);
        let again = Parameters::read(&text, &inputs).and_then(|it| it.points(&defaults));
        assert_eq!(again.unwrap(), points);
    }
    for format in [SheetFormat::Ndjson, SheetFormat::Tsv, SheetFormat::Csv] {
        let mut points = match read(format, sheet) {
            Ok(points) => points,
            Err(problems) => {
                let lines = 1 + sheet.iter().filter(|byte| **byte == b'\n').count();
                assert!(!problems.is_empty());
                assert!(
                    problems.iter().all(|problem| problem.line.is_none_or(|line| line <= lines))
                );
                continue;
            }
        };
        let text = written(&points);
        let again = read(SheetFormat::Ndjson, &text).unwrap();
        assert!(points.is_empty() || again == points);
        assert_eq!(written(&again), text);
        points.lookalikes();
        if let Ok(levels) = &levels {
            let factors = vec![points.clone(), levels.clone()];
            if let Ok(product) = product(factors, NonZeroU32::new(2)) {
                assert_eq!(product.len(), 2 * points.len() * levels.len());
            }
        }
        if let Ok(text) = std::str::from_utf8(other) {
            select(text, &points);
        }
        if let Ok(exclusion) = read(format, other) {
            points.exclude(&exclusion);
        }
    }
});
