//! How much room there is for bytes and for files.

use rustix::fs::statvfs;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::doctor::Diagnosis;
use crate::storage::disk::Doing;
use crate::words::size;

/// Less is nearly nothing, in bytes.
const LITTLE: u64 = 1 << 30;

/// Fewer are nearly none: a call makes a handful.
const FEW: u64 = 10_000;

/// What this user may still write.
#[derive(Clone, Copy, Debug)]
struct Space {
    free: u64,
    all: u64,
    /// How many files can still be made; `None` if they are not counted.
    files: Option<u64>,
}

/// How much room there is.
pub(super) fn space(site: &ProbeSite) -> Diagnosis {
    let place = site.nearest();
    match statvfs(place).map_err(std::io::Error::from).doing("look at", place) {
        Ok(it) => told(Space {
            free: it.f_bavail.saturating_mul(it.f_frsize),
            all: it.f_blocks.saturating_mul(it.f_frsize),
            files: (it.f_files > 0).then_some(it.f_favail),
        }),
        Err(error) => {
            let means = "the free space is not known";
            refused("space", &error, means, ELSEWHERE)
        }
    }
}

fn told(Space { free, all, files }: Space) -> Diagnosis {
    let files_free = files.map(|files| format!(", and {} files", count(files)));
    let files_free = files_free.unwrap_or_default();
    let found = format!("{} of {} are free{files_free}", size(free), size(all));
    let found = Diagnosis::ok("space", found);
    let hint = "make room before a run fails; finished calls are kept";
    match files {
        _ if free < LITTLE => found.note("there is little room left").hint(hint),
        Some(files) if files < FEW => {
            found.note("few more files can be made, however small").hint(hint)
        }
        _ => found,
    }
}

/// Writes a number for humans.
fn count(number: u64) -> String {
    match number {
        0..10_000 => number.to_string(),
        10_000..1_000_000 => format!("{} thousand", number / 1000),
        _ => format!("{} million", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::doctor::Grade;

    #[test]
    fn little_room_is_told() {
        let much = Space { free: 46 << 30, all: 252 << 30, files: Some(16_777_216) };
        let text = "46.0 GiB of 252.0 GiB are free, and 16 million files; ";
        assert_eq!(said(&told(much)), (None, text.to_owned()));
        let (grade, text) = said(&told(Space { free: LITTLE - 1, ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("1024.0 MiB of") && text.contains("little room left"), "{text}");
        let (grade, text) = said(&told(Space { files: Some(7), ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("and 7 files") && text.contains("few more files"), "{text}");
        assert_eq!(said(&told(Space { files: None, ..much })).0, None);
    }
}
