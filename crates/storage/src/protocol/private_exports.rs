//! The place of exports that only one run uses: computations run from them without isolation, and open the files there by their paths.
//!
//! So no other user may redirect these paths. The run's directory in the storage will do if others can write neither
//! there nor in any directory above. Otherwise the exports are in the user's private directory or, failing that, in the
//! directory for temporary files.

use std::sync::{Mutex, OnceLock};
use std::{env, fs};

use ce_files::state::{check_private, own_directory, remove_left};
use ce_files::umask;
use ce_files::walk::is_out_of_reach;
use rustix::process::geteuid;

use super::heartbeat::CurrentRun;
use crate::disk::{Disk, IoContext, Result, Root, StorageError, lock};
use crate::paths::RunName;

/// The name of the directory with a directory for each run, among the user's private files.
const EXPORTS: &str = "exports";

/// The directory in the run's directory.
const OWN: &str = "own";

/// The place of a run's own exports, once it is needed.
#[derive(Debug, Default)]
pub(super) struct PrivateExports {
    /// `None` within: they are in the storage.
    place: OnceLock<Option<Root>>,
    choosing: Mutex<()>,
}

impl PrivateExports {
    /// The directory of the storage, or another one, in which the run makes exports for itself.
    pub(super) fn place<'a>(&'a self, storage: &'a Root, run: &CurrentRun) -> Result<&'a Root> {
        if self.place.get().is_none() {
            let _choosing = lock(&self.choosing);
            if self.place.get().is_none() {
                let own = storage.place(&format!("{}/{OWN}", run.directory()))?;
                let own = own.parent().unwrap_or(&own);
                let is_safe = is_out_of_reach(own, geteuid().as_raw());
                let outside = if is_safe { None } else { Some(outside(run)?) };
                self.place.get_or_init(|| outside);
            }
        }
        Ok(self.known().unwrap_or(storage))
    }

    /// The directory outside of the storage, if there is one.
    pub(super) fn known(&self) -> Option<&Root> {
        self.place.get()?.as_ref()
    }

    /// Removes the exports outside of the storage.
    pub(super) fn remove(&self) {
        if let Some(root) = self.known() {
            drop(root.disk.remove_tree(&root.path(OWN)));
            drop(fs::remove_dir(root.disk.root()));
        }
    }
}

/// Makes a directory of the run that only this user can enter.
fn outside(run: &CurrentRun) -> Result<Root> {
    let name = run.name().to_string();
    let path = match own_directory(EXPORTS) {
        Ok(exports) => {
            // On the same host, it is known at once which runs have ended.
            remove_left(&exports, |name| {
                let other: RunName = name.to_str()?.parse().ok()?;
                other.is_near(run.name()).then(|| run.is_over(&other))
            });
            exports.join(name)
        }
        // There, only its owner removes a directory.
        Err(_) => env::temp_dir().join(format!("compeval-{name}")),
    };
    umask::create_private_dir(&path).context("make the directory", &path)?;
    check_private(&path).map_err(|source| StorageError::NotPrivate(Box::new(source)))?;
    run.keep(&path);
    let disk = Disk::open(&path)?;
    Ok(Root::new(&path, disk, OWN.to_owned()))
}
