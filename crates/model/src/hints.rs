//! Advice for users: about files that cannot be read or written, and the known names that are similar to a mistyped one.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use crate::humanize::quoted_path;

/// Returns advice for a shortage of threads, signals or open files.
pub fn raising_limits() -> String {
    "raise the limits of processes and open files (ulimit -u, ulimit -n), or give a smaller -j"
        .to_owned()
}

/// The most names of a directory that are compared with one that is not in it.
const MOST_NAMES: usize = 10_000;

/// Returns advice for a file that cannot be read, if there is any.
pub fn for_reading(path: &Path, source: &io::Error) -> Option<String> {
    match source.kind() {
        ErrorKind::IsADirectory => {
            Some(format!("give a file; ls {} shows those in the directory", shell(path)))
        }
        _ => for_finding(path, source),
    }
}

/// Returns advice for a directory that cannot be read, if there is any.
pub fn for_directory(path: &Path, source: &io::Error) -> Option<String> {
    match source.kind() {
        ErrorKind::NotADirectory if path.exists() => {
            Some(format!("give a directory: {} is none", path.display()))
        }
        _ => for_finding(path, source),
    }
}

/// Returns advice for a file or directory that cannot be written, if there is any.
pub fn for_writing(path: &Path, source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        ErrorKind::NotFound
            if let Some(missing) = parent(path).filter(|it| it.symlink_metadata().is_err()) =>
        {
            format!("mkdir -p {} makes its directory", shell(missing))
        }
        ErrorKind::IsADirectory => {
            format!("give the name of a file: {} is a directory", path.display())
        }
        ErrorKind::AlreadyExists => format!("give another name: {} exists", path.display()),
        ErrorKind::PermissionDenied => {
            let place = path.ancestors().find(|it| it.exists()).unwrap_or_else(|| Path::new("."));
            format!("give another place; ls -ld {} shows who may write there", shell(place))
        }
        ErrorKind::ReadOnlyFilesystem => {
            "give another place: this file system is mounted for reading only".to_owned()
        }
        ErrorKind::StorageFull => {
            "make room there (see df and df -i), or give another place".into()
        }
        ErrorKind::QuotaExceeded => {
            "make room there, have your quota raised, or give another place".to_owned()
        }
        _ => return for_finding(path, source),
    })
}

/// Returns advice for an error on the way to a file, if there is any.
fn for_finding(path: &Path, source: &io::Error) -> Option<String> {
    Some(match source.kind() {
        ErrorKind::NotFound => for_missing(path),
        ErrorKind::NotADirectory => {
            let file = path.ancestors().skip(1).find(|it| it.exists())?;
            format!("correct the path: {} is a file, not a directory", file.display())
        }
        ErrorKind::PermissionDenied => {
            let hidden = path.ancestors().find(|it| it.symlink_metadata().is_ok()).unwrap_or(path);
            format!("ls -ld {} shows who may read it", shell(hidden))
        }
        ErrorKind::InvalidFilename => {
            "give a shorter path, whose names have at most 255 bytes".into()
        }
        ErrorKind::StaleNetworkFileHandle | ErrorKind::NotConnected => {
            "check whether its file system is still mounted".to_owned()
        }
        // Of other errors of links, only a circle is left.
        _ if path.is_symlink() && !path.exists() => {
            format!("correct the links: ls -l {} shows where it leads", shell(path))
        }
        _ => return None,
    })
}

/// Returns advice for a path that leads to nothing: a similar name, or a look into the directory.
fn for_missing(path: &Path) -> String {
    let mut ways: Vec<&Path> = path.ancestors().filter(|it| !it.as_os_str().is_empty()).collect();
    ways.reverse();
    let Some(absent) = ways.into_iter().find(|it| !it.exists()) else {
        return "give the path of a file".to_owned();
    };
    if let Ok(target) = absent.read_link() {
        return format!("correct the link {}: there is no {}", absent.display(), target.display());
    }
    let dir = parent(absent).unwrap_or_else(|| Path::new("."));
    match similar(dir, absent) {
        Some(name) => format!("did you mean {}?", absent.with_file_name(name).display()),
        None if absent == path => format!("ls {} shows what is there", shell(dir)),
        None => format!(
            "correct the path: there is no {}; ls {} shows what is there",
            absent.display(),
            shell(dir)
        ),
    }
}

/// The name in a directory that may be meant.
fn similar(dir: &Path, absent: &Path) -> Option<String> {
    let entries = fs::read_dir(dir).ok()?.take(MOST_NAMES).filter_map(Result::ok);
    let names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    nearest(absent.file_name()?.to_str()?, &names)
}

/// The directory of a path, if it names one.
fn parent(path: &Path) -> Option<&Path> {
    path.parent().filter(|parent| !parent.as_os_str().is_empty())
}

/// A path as a word of a shell that is no option.
fn shell(path: &Path) -> String {
    let is_option = path.as_os_str().as_encoded_bytes().starts_with(b"-");
    let path = if is_option { Path::new(".").join(path) } else { PathBuf::from(path) };
    quoted_path(&path)
}

/// Returns the name that a user may have meant.
pub fn nearest(wanted: &str, names: &[String]) -> Option<String> {
    near(wanted, names).first().map(|name| (*name).clone())
}

/// Returns the names that a user may have meant, the most similar first.
pub fn near<'a>(wanted: &str, names: &'a [String]) -> Vec<&'a String> {
    let most = 1 + wanted.len() / 4;
    let is_near = |name: &&String| {
        let distance = strsim::damerau_levenshtein(wanted, name);
        // Names that have no letter in common are not similar, however short they are.
        distance <= most && distance < wanted.chars().count().max(name.chars().count())
            || wanted.to_lowercase() == name.to_lowercase()
    };
    nearest_first(wanted, names.iter().filter(is_near))
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

/// Whether a name may be another one, mistyped: it differs by one letter, by two if it is not short, or by what a [slip](is_slip)
/// changes.
pub fn is_close(wanted: &str, name: &str) -> bool {
    let most = if wanted.len() < 4 { 1 } else { 2 };
    let is_near = wanted.chars().count().abs_diff(name.chars().count()) <= most;
    is_near && strsim::damerau_levenshtein(wanted, name) <= most || is_slip(wanted, name)
}

/// Whether a name is probably another one, mistyped: it has other cases or separators, a letter too many, too few or for another, or
/// two exchanged. Short names, and names that differ in a digit or in the last letter of a word, may well be those of two things.
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

    fn read(path: &Path) -> Option<String> {
        for_reading(path, &fs::read(path).unwrap_err())
    }

    fn written(path: &Path) -> String {
        for_writing(path, &fs::write(path, "").unwrap_err()).unwrap()
    }

    #[test]
    fn each_error_of_a_path_names_the_part_that_is_wrong() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let shown = dir.display();
        fs::write(dir.join("points.tsv"), "").unwrap();
        std::os::unix::fs::symlink("gone", dir.join("link")).unwrap();
        std::os::unix::fs::symlink("round", dir.join("round")).unwrap();
        for (name, expected) in [
            ("round", format!("correct the links: ls -l {shown}/round shows where it leads")),
            ("point.tsv", format!("did you mean {shown}/points.tsv?")),
            ("some", format!("ls {shown} shows what is there")),
            ("link", format!("correct the link {shown}/link: there is no gone")),
            (".", format!("give a file; ls {shown}/. shows those in the directory")),
            (
                "some/where",
                format!(
                    "correct the path: there is no {shown}/some; ls {shown} shows what is there"
                ),
            ),
            (
                "points.tsv/row",
                format!("correct the path: {shown}/points.tsv is a file, not a directory"),
            ),
        ] {
            assert_eq!(read(&dir.join(name)), Some(expected), "{name}");
        }
        let long = "x".repeat(256);
        assert!(read(&dir.join(long)).unwrap().starts_with("give a shorter path"));
    }

    #[test]
    fn what_cannot_be_written_says_which_directory_is_missing() {
        let temporary = tempfile::tempdir().unwrap();
        let dir = temporary.path();
        let page = dir.join("a b/page");
        assert_eq!(written(&page), format!("mkdir -p '{}/a b' makes its directory", dir.display()));
        assert_eq!(
            written(dir),
            format!("give the name of a file: {} is a directory", dir.display())
        );
        let denied = ErrorKind::PermissionDenied.into();
        let expected =
            format!("give another place; ls -ld {} shows who may write there", dir.display());
        assert_eq!(for_writing(&page, &denied), Some(expected));
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
    fn a_slip_is_one_letter_of_a_long_name() {
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
