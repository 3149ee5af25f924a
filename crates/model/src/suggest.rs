//! Suggestions: the known names that are similar to a mistyped one.

use std::fmt;

/// A name that does not exist, and the existing names. It is displayed in quotes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownName {
    pub name: String,
    /// All names that could have been meant.
    pub known: Vec<String>,
}

/// The most names that a hint lists.
const LISTED: usize = 20;

impl UnknownName {
    /// A name that is not known.
    pub fn new<T: ToString>(name: impl Into<String>, known: impl IntoIterator<Item = T>) -> Self {
        Self { name: name.into(), known: known.into_iter().map(|name| name.to_string()).collect() }
    }

    /// Asks for the most similar name: `did you mean NAME?`.
    pub fn meant(&self) -> Option<String> {
        nearest(&self.name, &self.known).map(|name| format!("did you mean {name}?"))
    }

    /// Suggests the most similar name, and lists the names that these things have, such as columns.
    pub fn suggestion(&self, things: &str) -> String {
        let meant = nearest(&self.name, &self.known);
        let meant = meant.map(|name| format!("did you mean {name:?}? ")).unwrap_or_default();
        let listed = self.known.iter().take(LISTED).map(|name| format!("{name:?}"));
        let listed = listed.collect::<Vec<_>>().join(", ");
        let more = match self.known.len().saturating_sub(LISTED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{meant}the {things} are {listed}{more}")
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.name)
    }
}

/// Asks for a name that may have been meant: `did you mean "NAME"?`. Without one, this is other advice.
pub fn meant_or(nearest: Option<&str>, other: impl Into<String>) -> String {
    nearest.map_or_else(|| other.into(), |name| format!("did you mean {name:?}?"))
}

/// Returns the name that a user may have meant.
pub fn nearest(wanted: &str, names: &[String]) -> Option<String> {
    near(wanted, names).first().map(|name| (*name).clone())
}

/// Returns the names that a user may have meant, the most similar first.
pub fn near<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a String> {
    let most = 1 + wanted.len() / 4;
    let near = names.iter().filter(|name| {
        let distance = strsim::damerau_levenshtein(wanted, name);
        // Names that have no letter in common are not similar, however short they are.
        distance <= most && distance < wanted.chars().count().max(name.chars().count())
            || wanted.to_lowercase() == name.to_lowercase()
    });
    nearest_first(wanted, near)
}

/// Puts names into order, the most similar first.
pub fn nearest_first<'a>(
    wanted: &str,
    names: impl IntoIterator<Item = &'a String>,
) -> Vec<&'a String> {
    let mut names: Vec<&String> = names.into_iter().collect();
    names.sort_by_cached_key(|name| (strsim::damerau_levenshtein(wanted, name), name.as_str()));
    names
}

/// Whether a name may be another one, mistyped: it differs by one letter, by two if it is not short, or by a
/// [slip](is_slip).
pub fn is_close(wanted: &str, name: &str) -> bool {
    let most = if wanted.len() < 4 { 1 } else { 2 };
    let is_near = wanted.chars().count().abs_diff(name.chars().count()) <= most;
    is_near && strsim::damerau_levenshtein(wanted, name) <= most || is_slip(wanted, name)
}

/// Whether a name is probably another one, mistyped: it has other cases or separators, a letter too many, too few or for another, or
/// two exchanged. Short names, and names that differ in a digit or in the last letter of a word, may well mean two things.
pub fn is_slip(wanted: &str, name: &str) -> bool {
    if wanted == name {
        return false;
    }
    let [wanted, name] = [wanted, name].map(str::to_lowercase);
    let is_same = without_separators(&wanted) == without_separators(&name);
    is_same && wanted.contains(char::is_alphanumeric) || has_slip(&wanted, &name)
}

/// A name without what separates its words. Between digits, a separator makes another number.
fn without_separators(name: &str) -> String {
    if name.contains(char::is_numeric) {
        return name.to_owned();
    }
    name.replace(|c: char| !c.is_alphanumeric(), "")
}

/// The same for names without upper case.
fn has_slip(wanted: &str, name: &str) -> bool {
    wanted.len().min(name.len()) > 4
        && wanted.len().abs_diff(name.len()) <= char::MAX.len_utf8()
        && strsim::damerau_levenshtein(wanted, name) == 1
        && (wanted.len() != name.len()
            || sorted(wanted, |_| true) == sorted(name, |_| true)
            || is_within_word(wanted, name))
        && sorted(wanted, is_other) == sorted(name, is_other)
}

fn is_other(letter: &char) -> bool {
    !letter.is_alphabetic()
}

/// The characters of a text that fit, in order.
fn sorted(text: &str, fits: fn(&char) -> bool) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().filter(fits).collect();
    letters.sort_unstable();
    letters
}

/// Whether the letter that differs between two names is followed by another letter.
fn is_within_word(wanted: &str, name: &str) -> bool {
    let mut letters = wanted.chars().zip(name.chars()).skip_while(|(a, b)| a == b).skip(1);
    letters.next().is_some_and(|(letter, _)| letter.is_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggestion_has_similar_names_or_some_of_all_names() {
        let unknown = UnknownName::new("tt", ["t", "s"]);
        assert_eq!(unknown.to_string(), "\"tt\"");
        assert_eq!(unknown.meant().as_deref(), Some("did you mean t?"));
        assert_eq!(
            unknown.suggestion("columns"),
            "did you mean \"t\"? the columns are \"t\", \"s\""
        );
        let unknown = UnknownName::new("other", 0..30);
        assert_eq!(unknown.meant(), None);
        let suggestion = unknown.suggestion("inputs");
        assert!(suggestion.starts_with("the inputs are \"0\", \"1\""), "{suggestion}");
        assert!(suggestion.ends_with("\"18\", \"19\" and 10 more"), "{suggestion}");
    }

    #[test]
    fn names_without_a_common_letter_are_not_near() {
        let names = ["x", "n", "foo", "add"].map(str::to_owned);
        for wanted in ["y", "c", "", "zz", "k1"] {
            assert_eq!(nearest(wanted, &names), None, "{wanted}");
        }
        for (wanted, name) in
            [("X", "x"), ("xx", "x"), ("fo", "foo"), ("ad", "add"), ("ADD", "add")]
        {
            assert_eq!(nearest(wanted, &names).as_deref(), Some(name), "{wanted}");
        }
    }

    #[test]
    fn one_wrong_letter_of_a_long_name_is_a_slip() {
        for slip in
            ["resuts", "ressults", "reuslts", "result", "rezults", "Results", "RESULTS", "Rezults"]
        {
            assert!(is_slip(slip, "results"), "{slip}");
        }
        assert!(
            is_slip("my_results", "my-results") && is_slip("Out", "out") && is_slip("a-b", "A B")
        );
        assert!(!is_slip("results-a", "results-b") && !is_slip("run-a-1", "run-b-1"));
        assert!(!is_slip("run-1-2", "run-12") && is_slip("Run-1-2", "run-1-2"));
        assert!(
            is_close("RESULTS", "results") && is_close("cat", "cut") && !is_close("cat", "cuts")
        );
        for other in ["results2", "resulta-", "resultx", "old-results", "results", "---"] {
            assert!(!is_slip(other, "results"), "{other}");
        }
        assert!(!is_slip("ab", "abc") && is_close("results2", "results"));
    }
}
