//! The place of exports that only one run uses: computations run from them without isolation, and open the files there by their paths.
//!
//! So nobody else may lead these paths elsewhere. The run's directory in the storage will do if others can write neither there nor in
//! any directory above. Otherwise the exports are in the user's private directory or, if there is none, in the directory for temporary files.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};
use std::time::SystemTime;
use std::{env, fs};

use ce_files::state::{LEFT, own_directory};
use ce_files::umask;
use ce_files::walk::is_out_of_reach;
use rustix::process::geteuid;

use super::heartbeat::CurrentRun;
use crate::disk::{Disk, IoContext, Result, Root, lock};

/// The name of the directory with a directory for each run, among the user's private files.
const EXPORTS: &str = "exports";

/// The directory in that of the run.
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

    /// Removes what is outside of the storage.
    pub(super) fn remove(&self) {
        if let Some(root) = self.known() {
            drop(root.disk.remove_tree(&root.path(OWN)));
            drop(fs::remove_dir(root.disk.root()));
        }
    }
}

/// Makes a directory of the run that nobody else can enter.
fn outside(run: &CurrentRun) -> Result<Root> {
    let name = run.name().to_string();
    let path = match own_directory(EXPORTS) {
        Ok(exports) => {
            remove_left(&exports, run);
            exports.join(name)
        }
        // There, only its owner removes a directory.
        Err(_) => env::temp_dir().join(format!("compeval-{name}")),
    };
    umask::create_private_dir(&path).context("make the directory", &path)?;
    let disk = Disk::open(&path)?;
    Ok(Root::new(&path, disk, OWN.to_owned()))
}

/// Removes what runs have left that were killed: at once on the same host, and otherwise when it was not changed for long.
fn remove_left(exports: &Path, run: &CurrentRun) {
    let old = SystemTime::now().checked_sub(LEFT);
    let is_left = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()?.parse().ok());
        let changed = || path.symlink_metadata().and_then(|it| it.modified()).ok();
        match name {
            Some(name) if run.name().is_near(&name) => run.is_over(&name),
            _ => changed().zip(old).is_some_and(|(changed, old)| changed < old),
        }
    };
    let Ok(disk) = Disk::open(exports) else { return };
    for path in disk.list(exports).unwrap_or_default().iter().filter(|path| is_left(path)) {
        // The next run tries it again.
        drop(disk.remove_tree(path));
    }
}
