//! The free space, in bytes and files.

use rustix::fs::statvfs;

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::Doing;
use ce_model::diagnosis::Diagnosis;
use ce_model::words::size;

/// Less than this many free bytes is little.
const LITTLE: u64 = 1 << 30;

/// Fewer than this many free files is little: a call makes a handful.
const FEW: u64 = 10_000;

/// The space that is free for this user.
#[derive(Clone, Copy, Debug)]
struct Space {
    free: u64,
    all: u64,
    /// The number of files that can still be created; `None` if they are not counted.
    files: Option<u64>,
}

/// Measures the free space.
pub(super) fn space(site: &ProbeSite) -> Diagnosis {
    let place = site.nearest();
    match statvfs(place).map_err(std::io::Error::from).doing("look at", place) {
        Ok(it) => diagnose(Space {
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

fn diagnose(Space { free, all, files }: Space) -> Diagnosis {
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
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn little_room_is_told() {
        let much = Space { free: 46 << 30, all: 252 << 30, files: Some(16_777_216) };
        let text = "46.0 GiB of 252.0 GiB are free, and 16 million files; ";
        assert_eq!(summary(&diagnose(much)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose(Space { free: LITTLE - 1, ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("1024.0 MiB of") && text.contains("little room left"), "{text}");
        let (grade, text) = summary(&diagnose(Space { files: Some(7), ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("and 7 files") && text.contains("few more files"), "{text}");
        assert_eq!(summary(&diagnose(Space { files: None, ..much })).0, None);
    }
}
