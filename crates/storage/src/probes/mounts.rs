//! Whether the whole storage is on one file system: files are linked and moved within it.

use super::{ProbeSite, refused};
use crate::disk::Result;
use ce_model::diagnosis::Diagnosis;

/// Probes whether the contents of the storage are on the file system of its `tmp/`.
pub(super) fn mounts(site: &ProbeSite) -> Diagnosis {
    match elsewhere(site) {
        Ok(elsewhere) => diagnose(&elsewhere),
        Err(error) => {
            let means = "what cannot be looked at cannot be used";
            refused("mounts", &error, means, "check who may read the storage")
        }
    }
}

/// Lists entries of the storage that are on another file system, or symbolic links. They are never
/// used.
fn elsewhere(site: &ProbeSite) -> Result<Vec<String>> {
    let device = |path: &_| Ok(site.disk().metadata(path)?.map(|metadata| metadata.id().0));
    let own = device(site.dir())?;
    let mut elsewhere = Vec::new();
    for path in site.disk().list(&site.storage)? {
        if device(&path)?.is_some_and(|device| Some(device) != own) {
            elsewhere.push(format!("{} is on another file system than tmp/", path.display()));
        } else if site.disk().metadata(&path)?.is_some_and(|metadata| metadata.is_link()) {
            elsewhere.push(format!("{} is a symbolic link", path.display()));
        }
    }
    elsewhere.sort_unstable();
    Ok(elsewhere)
}

fn diagnose(elsewhere: &[String]) -> Diagnosis {
    let probe = "mounts";
    match elsewhere {
        [] => Diagnosis::ok(probe, "all of the storage is on one file system"),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            Diagnosis::ok(probe, format!("{first}{more}"))
                .broken("nothing is published there: calls of that name fail")
                .hint("mount, or link to, the storage as a whole")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    #[test]
    fn a_part_on_another_file_system_is_told() {
        assert_eq!(diagnose(&[]).grade(), None);
        let (grade, text) =
            summary(&diagnose(&["results/c_add is a link".to_owned(), "results/tmp".to_owned()]));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("results/c_add is a link (and 1 more)"), "{text}");
    }

    #[test]
    fn links_are_found() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/proc", dir.path().join("c_far")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("c_lost")).unwrap();
        let elsewhere = elsewhere(&ProbeSite::new(dir.path())).unwrap();
        let link = |name| format!("{} is a symbolic link", dir.path().join(name).display());
        assert_eq!(elsewhere, ["c_far", "c_lost"].map(link));
    }
}
