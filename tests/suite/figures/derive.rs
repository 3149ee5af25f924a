//! Columns that are computed from others.

use super::{makes, one_call, refuses};

const TABLE: &str =
    "{\"size\":\"300\",\"threads\":2,\"name\":\"a\"}\n\n{\"size\":\"7\",\"threads\":null}\n";

#[test]
fn columns_are_computed_row_by_row() {
    let columns = "passes = max(1, 1000 // size)\n\nrest = -size % 8 + floor(1.5)\nhalf=passes / 2\n\
                   third = (round(size) + min(3)) / 9\nshare = size / threads\n";
    assert_eq!(
        makes("derive-columns", &[TABLE, columns]),
        "{\"size\":\"300\",\"threads\":2,\"name\":\"a\",\"passes\":3,\"rest\":5,\"half\":1.5,\
         \"third\":33.6666666667,\"share\":150}\n\
         {\"size\":\"7\",\"threads\":null,\"passes\":142,\"rest\":2,\"half\":71,\
         \"third\":1.11111111111,\"share\":null}\n"
    );
    assert_eq!(makes("derive-columns", &["", "x = y + 1\n"]), "");
}

#[test]
fn texts_are_joined_compared_and_chosen() {
    let table = "{\"size\":\"007\",\"version\":\"1.10\",\"mode\":\"fast\",\"n\":1.50}\n\
                 {\"size\":\"8\",\"version\":\"1.9-rc\",\"mode\":null,\"n\":2}\n";
    let columns = "unit = text('s', size, '-', n, \"/\", size * 2)\n\
                   old = 'no' if version == '1.10' else 'yes'\n\
                   kind = mode if mode in ('fast', 'slow') and not size > 7 else 0\n\
                   least = size if n <= 1.5 or size == 8 else -1\n";
    assert_eq!(
        makes("derive-columns", &[table, columns]),
        "{\"size\":\"007\",\"version\":\"1.10\",\"mode\":\"fast\",\"n\":1.50,\"unit\":\"s007-1.50/14\",\
         \"old\":\"no\",\"kind\":\"fast\",\"least\":7}\n\
         {\"size\":\"8\",\"version\":\"1.9-rc\",\"mode\":null,\"n\":2,\"unit\":\"s8-2/16\",\
         \"old\":\"yes\",\"kind\":null,\"least\":8}\n"
    );
}

#[test]
fn invalid_columns_are_refused() {
    let mut lab = one_call("derive-columns");
    for (columns, line) in [
        ("passes 1000\n", "columns, line 1 is not NAME = EXPRESSION: \"passes 1000\""),
        ("a = 1\n\nb c = 2\n", "columns, line 3 is not NAME = EXPRESSION: \"b c = 2\""),
        ("a = size +\n", "columns, line 1: \"size +\" is not an expression"),
        ("a = size ** 9\n", "columns, line 1: \"size ** 9\" is not an expression"),
        ("a = open(size)\n", "columns, line 1: \"open(size)\" is not an expression"),
        ("a = size.real\n", "columns, line 1: \"size.real\" is not an expression"),
        ("a = size > 7\n", "columns, line 1: \"size > 7\" is not an expression"),
        ("a = 1 if size else 2\n", "columns, line 1: \"1 if size else 2\" is not an expression"),
        (
            "a = 1 if 0 < size < 9 else 2\n",
            "columns, line 1: \"1 if 0 < size < 9 else 2\" is not an expression",
        ),
        (
            "a = 1 if size == '7' else 2\n",
            "column \"a\" cannot be computed in line 1 of the table: \"7\" is a text, and is compared with the number 300",
        ),
        (
            "a = 'b' * 2\n",
            "column \"a\" cannot be computed in line 1 of the table: \"b\" is a text, and no number",
        ),
        ("a = text\n", "columns, line 1: \"text\" is not an expression"),
        ("a = min\n", "columns, line 1: \"min\" is not an expression"),
        ("size = 1\n", "the table has a column \"size\" already"),
        ("a = 1\na = 2\n", "the table has a column \"a\" already"),
        (
            "a = 1\nb = a + seize\n",
            "the table has no column \"seize\", which columns, line 2 names; \
             it has \"size\", \"threads\", \"name\", \"a\"",
        ),
        ("a = name + 1\n", "column \"name\" is not numeric: the table has \"a\" in line 1"),
        (
            "a = 1 / (size - 7)\n",
            "column \"a\" cannot be computed in line 3 of the table: division by zero",
        ),
        (
            "a = round(size, 1)\n",
            "column \"a\" cannot be computed in line 1 of the table: round has one argument",
        ),
    ] {
        lab = refuses(lab, "derive-columns", &[TABLE, columns], line);
    }
}
