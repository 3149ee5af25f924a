//! Names: whether files can have all names of the layout, and whether different names are different
//! files.

use std::path::Path;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Disk;
use crate::disk::{Result, StorageError};
use crate::layout;
use ce_model::diagnosis::Diagnosis;
use ce_model::task::slice::MAX_ARITY;

/// A letter with an accent, in two forms of Unicode.
const ACCENT: [&str; 2] = ["c_\u{e9}", "c_e\u{301}"];

/// Characters with a special meaning on some file systems.
const MARKS: &str = "c_a:b*c?d\"e<f>g|h\\i. ";

/// The greatest lengths of names.
#[derive(Clone, Copy, Debug)]
struct Longest {
    /// The length of the longest file name, in bytes.
    bytes: usize,
    /// The greatest number of inputs of a call whose record can have its name and path.
    inputs: usize,
}

/// Probes whether names can be as long as those of calls with many inputs.
pub(super) fn long_names(site: &ProbeSite) -> Diagnosis {
    match longest(site) {
        Ok(longest) => diagnose_length(longest),
        Err(error) => {
            refused("long names", &error, "results cannot have the names they need", ELSEWHERE)
        }
    }
}

fn longest(site: &ProbeSite) -> Result<Longest> {
    Ok(Longest {
        bytes: most(layout::LONGEST_FILE, |bytes| fits(site, &"0".repeat(bytes)))?,
        inputs: most(MAX_ARITY, |inputs| fits(site, &layout::longest_record(inputs)))?,
    })
}

/// Returns the greatest number up to `all` for which a condition holds. It holds for all smaller
/// ones, too.
fn most(all: usize, holds: impl Fn(usize) -> Result<bool>) -> Result<usize> {
    if holds(all)? {
        return Ok(all);
    }
    let (mut right, mut wrong) = (0, all);
    while right + 1 < wrong {
        let middle = usize::midpoint(right, wrong);
        if holds(middle)? { right = middle } else { wrong = middle }
    }
    Ok(right)
}

/// Whether a file can have this name, which may have directories in it.
fn fits(site: &ProbeSite, name: &str) -> Result<bool> {
    let path = site.room()?.join(name);
    let parent = path.parent().unwrap_or(site.dir());
    is_accepted(site.disk().make_dirs(parent).and_then(|()| site.disk().write(&path, b"")))
}

/// Whether an operation succeeded. A full disk does not say anything about names.
fn is_accepted(done: Result<()>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(error) if error.is_full() => Err(error),
        Err(StorageError::Io { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

fn diagnose_length(Longest { bytes, inputs }: Longest) -> Diagnosis {
    let probe = "long names";
    if bytes >= layout::LONGEST_FILE && inputs >= MAX_ARITY {
        let found = format!("{bytes} bytes, and paths for a call of {inputs} inputs");
        return Diagnosis::ok(probe, found);
    }
    let found = format!("{bytes} bytes at most, and paths for a call of {inputs} inputs");
    let found = Diagnosis::ok(probe, found);
    if inputs < MAX_ARITY {
        found
            .broken(format!("a call of more than {inputs} inputs cannot be published"))
            .hint("put the storage on another file system, or where its path is shorter")
    } else {
        let need = layout::LONGEST_FILE;
        found.note(format!("computations and tasks with names near {need} bytes do not fit"))
    }
}

/// Probes whether names that differ only in case are different.
pub(super) fn case(site: &ProbeSite) -> Diagnosis {
    let probe = || {
        let room = site.room()?;
        site.disk().write(&room.join("c_add"), b"")?;
        Ok(site.disk().metadata(&room.join("c_ADD"))?.is_none())
    };
    match probe() {
        Ok(two) => diagnose_case(two),
        Err(error) => {
            refused("case", &error, "it is not known which names are the same", ELSEWHERE)
        }
    }
}

fn diagnose_case(two: bool) -> Diagnosis {
    let probe = "case";
    if two {
        return Diagnosis::ok(probe, "c_add and c_ADD are two names");
    }
    Diagnosis::ok(probe, "c_add and c_ADD are one name")
        .broken(
            "computations or tasks whose names differ only in case share a directory: \
             outputs without a record are taken for the other's, and other results conflict",
        )
        .hint("tell them apart by more than case, or put the storage on another file system")
}

/// The treatment of a name by the file system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameHandling {
    /// The name is listed unchanged.
    Kept,
    /// It is listed as another name.
    Changed,
    /// No file can have it.
    Refused,
}

/// The treatment of characters beyond letters and digits.
#[derive(Clone, Copy, Debug)]
struct Characters {
    accent: NameHandling,
    /// The two forms of the letter are the same name.
    merged: bool,
    marks: NameHandling,
}

/// Probes whether names are listed unchanged.
pub(super) fn characters(site: &ProbeSite) -> Diagnosis {
    let probe = || {
        let room = site.room()?;
        let accent = handling(site.disk(), &room, ACCENT[0])?;
        let merged = accent != NameHandling::Refused
            && site.disk().metadata(&room.join(ACCENT[1]))?.is_some();
        Ok(Characters { accent, merged, marks: handling(site.disk(), &site.room()?, MARKS)? })
    };
    match probe() {
        Ok(characters) => diagnose_characters(characters),
        Err(error) => {
            refused("characters", &error, "it is not known which names are kept", ELSEWHERE)
        }
    }
}

fn handling(disk: &Disk, room: &Path, name: &str) -> Result<NameHandling> {
    if !is_accepted(disk.write(&room.join(name), b""))? {
        return Ok(NameHandling::Refused);
    }
    let is_kept = disk.list(room)?.iter().any(|path| path.file_name() == Some(name.as_ref()));
    Ok(if is_kept { NameHandling::Kept } else { NameHandling::Changed })
}

fn diagnose_characters(characters: Characters) -> Diagnosis {
    let probe = "characters";
    let Characters { accent, merged, marks } = characters;
    if merged {
        return Diagnosis::ok(probe, "\u{e9} as one character and as two are one name")
            .broken(
                "computations or tasks whose names look the same share a directory: \
                 outputs without a record are taken for the other's",
            )
            .hint("name them in ASCII, or put the storage on another file system");
    }
    let which = match (accent, marks) {
        (NameHandling::Kept, NameHandling::Kept) => {
            return Diagnosis::ok(probe, "names are kept as they are, byte for byte");
        }
        (_, NameHandling::Kept) => "letters with accents",
        (NameHandling::Kept, _) => "marks such as : * ? and a dot at the end",
        _ => "letters with accents, and marks such as : * ?,",
    };
    let is_refused = accent == NameHandling::Refused || marks == NameHandling::Refused;
    let what = if is_refused { "refused" } else { "changed" };
    Diagnosis::ok(probe, format!("{which} are {what}"))
        .note("results of computations and tasks with such names cannot be kept")
        .hint(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn short_names_limit_the_inputs() {
        let fine = Longest { bytes: 255, inputs: 100 };
        let text = "255 bytes, and paths for a call of 100 inputs; ";
        assert_eq!(summary(&diagnose_length(fine)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose_length(Longest { bytes: 143, inputs: 10 }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.ends_with("more than 10 inputs cannot be published"), "{text}");
        assert_eq!(diagnose_length(Longest { bytes: 254, ..fine }).grade(), Some(Grade::Note));
    }

    #[test]
    fn the_greatest_number_is_found() {
        for limit in [0, 1, 54, 99, 100] {
            assert_eq!(most(100, |number| Ok(number <= limit)).unwrap(), limit);
        }
    }

    #[test]
    fn names_that_are_one_are_told() {
        assert_eq!(diagnose_case(true).grade(), None);
        let (grade, text) = summary(&diagnose_case(false));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("differ only in case share a directory"), "{text}");
    }

    #[test]
    fn characters_that_are_not_kept_are_told() {
        let fine =
            Characters { accent: NameHandling::Kept, merged: false, marks: NameHandling::Kept };
        assert_eq!(diagnose_characters(fine).grade(), None);
        let merged = Characters { merged: true, ..fine };
        assert_eq!(diagnose_characters(merged).grade(), Some(Grade::Broken));
        for (characters, what) in [
            (
                Characters { accent: NameHandling::Changed, ..fine },
                "letters with accents are changed;",
            ),
            (Characters { marks: NameHandling::Refused, ..fine }, "a dot at the end are refused;"),
            (
                Characters { accent: NameHandling::Changed, marks: NameHandling::Refused, ..fine },
                "accents, and marks such as : * ?, are refused;",
            ),
        ] {
            let (grade, text) = summary(&diagnose_characters(characters));
            assert_eq!(grade, Some(Grade::Note));
            assert!(text.contains(what), "{text}");
        }
    }
}
