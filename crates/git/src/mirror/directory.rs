//! The directory of a mirror: a bare repository that has nothing which the other one has not.

use std::env;
use std::fs;
use std::path::Path;

use gix::Repository;
use gix::odb::store::init::Slots;
use gix::open::Options;

use crate::GitResult;
use crate::command::can_stop_lazy_fetch;

/// The configuration of a mirror that may lack files. No other setting in it ever counts.
const PARTIAL: &str =
    "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n";

/// The configuration of a mirror with all files.
const WHOLE: &str = "[core]\n\trepositoryFormatVersion = 1\n\tbare = true\n";

/// The file of a repository with the commits whose parents it lacks.
const SHALLOW: &str = "shallow";

/// The number of packs from which a mirror is made anew when it is opened: each push adds a few, and each look into all of them
/// takes longer.
const MAX_PACKS: usize = 200;

/// The number of packs that can be open: far more than one push adds.
const SLOTS: Slots = Slots::Given(4096);

/// The files that a mirror has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MirrorFiles {
    /// Those that were asked for.
    Asked,
    /// All. Without them, a `git` that cannot be kept from that would fetch what is missing by itself: from a shallow clone again
    /// and again, each time by one more process.
    All,
}

impl MirrorFiles {
    /// The arguments of `git fetch` for it.
    pub(super) const fn filter(self) -> &'static [&'static str] {
        match self {
            Self::Asked => &["--filter=blob:none"],
            Self::All => &[],
        }
    }

    const fn configuration(self) -> &'static str {
        match self {
            Self::Asked => PARTIAL,
            Self::All => WHOLE,
        }
    }
}

/// Opens a mirror, which is made if it is not there or cannot be used.
pub(super) fn open_or_create(dir: &Path) -> GitResult<(Repository, MirrorFiles)> {
    // Without a current directory, gix opens nothing.
    env::current_dir()?;
    let is_usable = packs(dir, b".pack") <= MAX_PACKS && !dir.join(SHALLOW).exists();
    // One that is damaged has nothing that the other repository has not.
    let repository = if dir.exists() && is_usable {
        open_configured(dir, MirrorFiles::Asked).or_else(|_| recreate(dir, MirrorFiles::Asked))?
    } else {
        recreate(dir, MirrorFiles::Asked)?
    };
    if can_stop_lazy_fetch(dir)? {
        return Ok((repository, MirrorFiles::Asked));
    }
    let repository = match packs(dir, b".promisor") {
        0 => open_configured(dir, MirrorFiles::All)?,
        _ => recreate(dir, MirrorFiles::All)?,
    };
    Ok((repository, MirrorFiles::All))
}

/// Makes an empty mirror, in place of one that is there.
pub(super) fn recreate(dir: &Path, files: MirrorFiles) -> GitResult<Repository> {
    if dir.exists() {
        fs::remove_dir_all(dir)?;
    }
    make(dir)?;
    open_configured(dir, files)
}

/// The number of files with packs of a mirror whose names have an end.
fn packs(dir: &Path, end: &[u8]) -> usize {
    let Ok(entries) = fs::read_dir(dir.join("objects/pack")) else { return 0 };
    let names = entries.flatten().map(|entry| entry.file_name());
    names.filter(|name| name.as_encoded_bytes().ends_with(end)).count()
}

/// Opens a mirror with the configuration of one.
fn open_configured(dir: &Path, files: MirrorFiles) -> GitResult<Repository> {
    configure(dir, files.configuration())?;
    Ok(gix::open_opts(dir, Options::default().object_store_slots(SLOTS))?)
}

/// Makes an empty mirror, which appears whole.
fn make(dir: &Path) -> GitResult<()> {
    let new = dir.with_extension("new");
    if new.exists() {
        fs::remove_dir_all(&new)?;
    }
    gix::init_bare(&new)?;
    Ok(fs::rename(new, dir)?)
}

/// Gives a mirror its configuration, if it has another one: settings there could name programs.
fn configure(dir: &Path, configuration: &str) -> GitResult<()> {
    let file = dir.join("config");
    if fs::read(&file).is_ok_and(|text| text == configuration.as_bytes()) {
        return Ok(());
    }
    let new = dir.with_extension("config");
    fs::write(&new, configuration)?;
    Ok(fs::rename(new, file)?)
}
