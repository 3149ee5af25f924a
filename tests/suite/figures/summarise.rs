//! Summaries of tables: statistics, groups, and refused inputs.

use super::{makes, one_call, refuses};

const NAME: &str = "summarise-table";

/// A row for each value of a column v.
fn values(numbers: &[&str]) -> String {
    numbers.iter().map(|number| format!("{{\"v\":{number}}}\n")).collect()
}

#[test]
fn each_group_has_its_statistics() {
    let table = "{\"t\":2,\"m\":\"a\",\"s\":6}\n\
                 {\"t\":1,\"m\":\"a\",\"s\":1}\n\
                 {\"t\":2,\"m\":\"a\",\"s\":1.0}\n\
                 {\"t\":2.0,\"m\":\"a\",\"s\":2}\n\
                 {\"t\":2,\"m\":\"b\",\"s\":null,\"status\":\"failed\"}\n\
                 {\"t\":2,\"m\":\"a\",\"s\":4}\n\
                 {\"t\":2,\"m\":\"a\",\"s\":null,\"status\":\"timeout\"}\n\
                 {\"t\":2,\"m\":\"a\",\"s\":3,\"status\":\"ok\"}\n\
                 {\"t\":2,\"m\":\"a\",\"s\":5}\n";
    // Of 1 to 6: t for 5 degrees of freedom is 2.5706, the standard error 0.7638.
    let expected = "{\"t\":2,\"m\":\"a\",\"n\":6,\"failed\":1,\"median\":3.5,\"median_ci95_low\":1,\
                    \"median_ci95_high\":6,\"mean\":3.5,\"mean_ci95_low\":1.53668569302,\
                    \"mean_ci95_high\":5.46331430698,\"sd\":1.87082869339,\"min\":1,\"max\":6}\n\
                    {\"t\":1,\"m\":\"a\",\"n\":1,\"failed\":0,\"median\":1,\"median_ci95_low\":null,\
                    \"median_ci95_high\":null,\"mean\":1,\"mean_ci95_low\":null,\
                    \"mean_ci95_high\":null,\"sd\":null,\"min\":1,\"max\":1}\n\
                    {\"t\":2,\"m\":\"b\",\"n\":0,\"failed\":1,\"median\":null,\
                    \"median_ci95_low\":null,\"median_ci95_high\":null,\"mean\":null,\
                    \"mean_ci95_low\":null,\"mean_ci95_high\":null,\"sd\":null,\"min\":null,\
                    \"max\":null}\n";
    assert_eq!(makes(NAME, &[table, "t, m\n", "s\n"]), expected);
}

/// Returns the field of a column in a summary of some values.
fn column(numbers: &[&str], name: &str) -> String {
    let summary = makes(NAME, &[&values(numbers), "", "v"]);
    let (_, rest) = summary.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().to_owned()
}

#[test]
fn the_interval_of_the_median_agrees_with_ce_table() {
    // Ranks of published tables: none of 5, 1 and 6 of 6, 2 and 9 of 10, 10 and 21 of 30.
    for (n, low, high) in
        [(5, "null", "null"), (6, "1", "6"), (10, "2", "9"), (30, "10", "21"), (1001, "469", "533")]
    {
        let numbers: Vec<String> = (1..=n).rev().map(|number: u32| number.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        let ends = ["median_ci95_low", "median_ci95_high"].map(|name| column(&numbers, name));
        assert_eq!(ends, [low, high], "of {n}");
    }
}

#[test]
fn numbers_of_all_sizes_have_finite_statistics() {
    assert_eq!(column(&["1.25e308", "1.25e308"], "mean"), "1.25e+308");
    assert_eq!(column(&["5e-324", "5e-324", "5e-324"], "mean"), "5e-324");
    assert_eq!(column(&["0", "-0.0"], "sd"), "0");
    assert_eq!(column(&["1722345678901234", "1722345678901234"], "median"), "1722345678901234");
    assert_eq!(column(&["0.1", "0.1", "0.1"], "mean"), "0.1");
    assert_eq!(column(&["0.1", "0.2"], "median"), "0.15");
    assert_eq!(column(&["1.1", "2.2", "9", "0"], "median"), "1.65");
    assert_eq!(column(&["0.30000000000000004", "1", "0"], "median"), "0.30000000000000004");
}

#[test]
fn an_empty_table_and_one_without_values_have_summaries() {
    assert_eq!(makes(NAME, &["", "threads", "seconds"]), "");
    assert_eq!(column(&["null", "null"], "failed"), "2");
}

#[test]
fn names_of_groups_are_kept_unchanged() {
    for name in [r#""a \"b\" 'c' \\d""#, r#""line\nline\t""#, "\"Größe 大\"", r#""\ud800""#, "null"]
    {
        let table = format!("{{\"größe\":{name},\"v\":1}}\n");
        let summary = makes(NAME, &[&table, "größe", "v"]);
        assert!(summary.starts_with(&format!("{{\"größe\":{name},\"n\":1,")), "{summary}");
    }
    let table = "{\"a\":1,\"v\":1}\n{\"a\":\"1\",\"v\":1}\n{\"a\":true,\"v\":1}\n{\"v\":1}\n";
    assert_eq!(makes(NAME, &[table, "a", "v"]).lines().count(), 4);
}

#[test]
fn wrong_inputs_are_refused_with_one_line() {
    let table = "{\"t\":1,\"s\":2}\n\n{\"t\":1,\"s\":\"slow\",\"n\":1}\n";
    let cases: [(&[&str; 3], &str); 13] = [
        (
            &[table, "t size", "t"],
            "the table has no column \"size\", which by names; it has \"t\", \"s\", \"n\"",
        ),
        (
            &[table, "", "time\n"],
            "the table has no column \"time\", which value names; it has \"t\", \"s\", \"n\"",
        ),
        (&[table, "", "s"], "column \"s\" is not numeric: the table has \"slow\" in line 3"),
        (
            &[table, "n", "t"],
            "by names \"n\", which is a column of the summary; give it another name",
        ),
        (&[table, "t,t", "s"], "by has \"t\" twice"),
        (&[table, "", "s\nt\n"], "value is not one line"),
        (&["{\"s\":NaN}", "", "s"], "the table, line 1: NaN is not a number of JSON"),
        (&["{\"s\":1e999}", "", "s"], "the table, line 1: the number 1e999 is too large"),
        (&["{\"s\":1}\n[1]", "", "s"], "the table, line 2 is not a JSON object: \"[1]\""),
        (
            &["{\"s\":1}\n{\"s\":1,}", "", "s"],
            "the table, line 2 is not a JSON object: \"{\\\"s\\\":1,}\"",
        ),
        (
            &["{\"s\":{}}", "", "s"],
            "the table, line 1: column \"s\" is an object, not a number or a text",
        ),
        (&["{\"s\":1,\"s\":2}", "", "s"], "the table, line 1: column \"s\" is there twice"),
        (&["{\"s\":1.7e308}\n{\"s\":-1.7e308}", "", "s"], "the values are too large for a mean"),
    ];
    let mut lab = one_call(NAME);
    for (texts, line) in cases {
        lab = refuses(lab, NAME, texts, line);
    }
}
