//! Whether all of the storage is on one file system: files are linked and moved across it.

use std::os::unix::fs::MetadataExt;

use super::{Site, refused};
use crate::diagnosis::Diagnosis;
use crate::storage::{Result, disk};

/// Whether what is in the storage is on the file system of its `tmp/`.
pub(super) fn mounts(site: &Site) -> Diagnosis {
    match elsewhere(site) {
        Ok(elsewhere) => told(&elsewhere),
        Err(error) => {
            let means = "what cannot be looked at cannot be used";
            refused("mounts", &error, means, "check who may read the storage")
        }
    }
}

/// The directories of the storage that are on another file system.
fn elsewhere(site: &Site) -> Result<Vec<String>> {
    let device = |path: &_| Ok(disk::metadata(path)?.map(|metadata| metadata.dev()));
    let own = device(site.dir())?;
    let mut elsewhere = Vec::new();
    for path in disk::list(&site.storage)? {
        if device(&path)?.is_some_and(|device| Some(device) != own) {
            elsewhere.push(path.display().to_string());
        }
    }
    elsewhere.sort_unstable();
    Ok(elsewhere)
}

fn told(elsewhere: &[String]) -> Diagnosis {
    let probe = "mounts";
    match elsewhere {
        [] => Diagnosis::ok(probe, "all of the storage is on one file system"),
        [first, rest @ ..] => {
            let more = match rest.len() {
                0 => String::new(),
                count => format!(" (and {count} more)"),
            };
            let found = format!("{first}{more} is on another file system than tmp/");
            Diagnosis::ok(probe, found)
                .broken("no result can be moved there: calls of that name cannot be published")
                .hint("mount, or link to, the storage as a whole")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::said;
    use super::*;
    use crate::diagnosis::Grade;

    #[test]
    fn a_part_on_another_file_system_is_told() {
        assert_eq!(told(&[]).grade(), None);
        let (grade, text) = said(&told(&["results/c_add".to_owned(), "results/tmp".to_owned()]));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("results/c_add (and 1 more) is on another"), "{text}");
    }

    #[test]
    fn a_link_that_leads_to_another_file_system_is_found() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/proc", dir.path().join("c_far")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("c_lost")).unwrap();
        let elsewhere = elsewhere(&Site::new(dir.path())).unwrap();
        assert_eq!(elsewhere, [dir.path().join("c_far").display().to_string()]);
    }
}
