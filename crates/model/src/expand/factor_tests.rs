//! Tests of factors, also by properties over generated ones.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use super::SheetFormat::Tsv;
use super::tests::{Numbers, points as sheet, written};
use super::*;
use crate::exit::Explain;
use crate::task::points::SweepPoints;

/// Two factors, the second of which has two columns.
fn factors() -> Vec<SweepPoints> {
    vec![read_levels("t", b"1\n2").unwrap(), sheet(Tsv, "s\tw\n10\tx\n20\ty\n30\tx\n")]
}

#[test]
fn the_last_factor_varies_fastest_and_replicates_are_innermost() {
    let product = product(factors(), NonZeroU32::new(2)).unwrap();
    assert_eq!(product.names(), ["t", "s", "w", "replicate"]);
    assert_eq!(product.len(), 12);
    let rows: Vec<String> = product
        .iter()
        .map(|point| point.values().map(|(_, text)| text.as_ref()).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(rows[..4], ["1 10 x 1", "1 10 x 2", "1 20 y 1", "1 20 y 2"]);
    assert_eq!((rows[6].as_str(), rows[11].as_str()), ("2 10 x 1", "2 30 x 2"));
    assert_eq!(product.get(1).unwrap().level_numbers(), [0, 0, 0, 1]);
    assert_eq!(product.get(1).unwrap().at(3).as_ref(), "2");
}

#[test]
fn factors_that_have_no_product_are_told() {
    assert_eq!(product(Vec::new(), None), Err(vec![FactorFault::NoFactors]));
    assert_eq!(product(Vec::new(), NonZeroU32::new(3)).unwrap().len(), 3);
    let levels = |name, levels: &str| read_levels(name, levels.as_bytes()).unwrap();
    let wrong = vec![levels("a", "1"), levels("b", ""), levels("a", "2"), levels("replicate", "1")];
    let name =
        |name: &str, factor, first| FactorFault::SameName { name: name.to_owned(), factor, first };
    assert_eq!(
        product(wrong, NonZeroU32::new(1)),
        Err(vec![FactorFault::NoLevels { factor: 1 }, name("a", 2, 0), name("replicate", 4, 3)])
    );
    let many = (0..3000).map(|at| format!("{at}\n")).collect::<String>();
    let many =
        |count| (0..count).map(|at| levels(["a", "b", "c", "d", "e", "f"][at], &many)).collect();
    assert_eq!(product(many(6), NonZeroU32::new(u32::MAX)), Err(vec![FactorFault::TooMany]));
    assert_eq!(product(many(2), NonZeroU32::new(2)), Err(vec![FactorFault::TooMany]));
    assert_eq!(product(many(1), NonZeroU32::new(2)).unwrap().len(), 6000);
}

#[test]
fn an_exclusion_removes_what_it_matches() {
    let excluded = |exclusion: &str| {
        let mut points = product(factors(), NonZeroU32::new(2)).unwrap();
        let faults = points.exclude(&sheet(Tsv, exclusion));
        (points.len(), faults.iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert_eq!(excluded("t\n1\n"), (6, vec![]));
    assert_eq!(excluded("w\tt\nx\t1\n\t2\n"), (2, vec![]));
    assert_eq!(excluded("s\tw\n10\tx\n10\t\n"), (8, vec![]));
    assert_eq!(excluded("replicate\tt\n2\t2\n"), (9, vec![]));
    assert_eq!(excluded("t\ts\n\t\n"), (0, vec![]));
    assert_eq!(excluded("t\ts\n"), (12, vec![]));
    let unmatched = "no point is excluded by s=10 w=y".to_owned();
    assert_eq!(excluded("s\tw\n10\ty\n20\ty\n"), (8, vec![unmatched]));
    assert_eq!(excluded("t\n01\n"), (12, vec!["no point is excluded by t=01".to_owned()]));
    assert_eq!(
        excluded("tt\tw\n1\tx\n"),
        (12, vec!["the points have no column \"tt\"".to_owned()])
    );
    let mut points = product(factors(), None).unwrap();
    let [fault] = &points.exclude(&sheet(Tsv, "tt\n1\n"))[..] else { panic!() };
    let columns = "the columns are \"t\", \"s\", \"w\"";
    assert_eq!(fault.hint(), Some(format!("did you mean \"t\"? {columns}")));
    let [fault] = &points.exclude(&sheet(Tsv, "other\n1\n"))[..] else { panic!() };
    assert_eq!(fault.hint().as_deref(), Some(columns));
    let many: Vec<String> = (0..30).map(|number| number.to_string()).collect();
    assert!(column_hint(None, &many).ends_with("\"18\", \"19\" and 10 more"));
}

#[test]
fn permuting_levels_permutes_points() {
    let mut numbers = Numbers(1);
    for _ in 0..50 {
        let levels =
            |numbers: &mut Numbers| (0..1 + numbers.below(5)).map(|at| format!("{at}x")).collect();
        let lists: Vec<Vec<String>> =
            (0..1 + numbers.below(4)).map(|_| levels(&mut numbers)).collect();
        let exclusion = sheet(Tsv, &format!("n0\n{}\n", lists[0][0]));
        let lines = |lists: &[Vec<String>]| {
            let factor = |(at, list): (usize, &Vec<String>)| {
                read_levels(&format!("n{at}"), list.join("\n").as_bytes())
            };
            let factors: Vec<_> = lists.iter().enumerate().map(|it| factor(it).unwrap()).collect();
            let mut points = product(factors, NonZeroU32::new(2)).unwrap();
            let size = 2 * lists.iter().map(Vec::len).product::<usize>();
            assert_eq!(points.len(), size);
            assert_eq!(points.exclude(&exclusion), []);
            assert_eq!(points.len(), size - size / lists[0].len());
            written(&points).lines().map(str::to_owned).collect::<Vec<_>>()
        };
        let before = lines(&lists);
        let mut permuted = lists.clone();
        for list in &mut permuted {
            let by = numbers.below(list.len());
            list.rotate_left(by);
            list.reverse();
        }
        let after = lines(&permuted);
        assert_eq!(before.len(), after.len());
        assert_eq!(before.into_iter().collect::<BTreeSet<_>>(), after.into_iter().collect());
    }
}
