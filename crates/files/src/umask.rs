//! The user's umask, which this program applies itself.
//!
//! In a storage that a group shares, a new file has the group's rights from its first moment, whatever the umask is:
//! another user may need it at once. So the umask of the process is 0, and each creation of a file gives its mode:
//! [`for_user`] where the umask decides, a private one, or the mode of a storage ([`exact`]). Other programs, and libraries
//! that make files, get the umask of the user ([`as_user`]).

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::fs::Mode;
use rustix::process::umask;

/// The umask with which the program was started, once it was taken.
static TAKEN: OnceLock<Mode> = OnceLock::new();

/// The numbers of threads that currently need each umask.
static USES: Mutex<Uses> = Mutex::new(Uses { exact: 0, user: 0 });

/// Notified when the last one of a kind has ended.
static ENDED: Condvar = Condvar::new();

/// The numbers of threads that make files with exact modes, and of threads that need the user's umask. One of them is
/// 0.
#[derive(Debug)]
struct Uses {
    exact: usize,
    user: usize,
}

/// Sets the umask of the process to 0, and remembers the user's. The process has one thread yet.
pub fn take() {
    TAKEN.get_or_init(|| umask(Mode::empty()));
}

/// The mode that a new file or directory of the user gets, given the one that it would get without a umask.
///
/// In a process that has not taken the umask, the kernel applies it.
pub fn for_user(mode: u32) -> u32 {
    mode & !TAKEN.get().map_or(0, |taken| taken.as_raw_mode())
}

/// Makes files with exactly the mode that is given, for example for a group. In a process that has not taken the umask,
/// the kernel applies it.
pub fn exact<T>(mode: u32, make: impl FnOnce() -> T) -> T {
    // The umask, even the user's, takes nothing from it.
    if for_user(mode) == mode {
        return make();
    }
    let _use = Use::begin(true);
    make()
}

/// Runs a function with the umask of the user: one that starts a process, or creates files by itself. The function must not
/// need an [`exact`] mode.
pub fn as_user<T>(act: impl FnOnce() -> T) -> T {
    if TAKEN.get().is_none() {
        return act();
    }
    let _use = Use::begin(false);
    act()
}

/// A use of one umask. It ends when dropped.
struct Use {
    is_exact: bool,
}

impl Use {
    /// Begins when no thread needs the other umask.
    fn begin(is_exact: bool) -> Self {
        let waits = |uses: &mut Uses| if is_exact { uses.user > 0 } else { uses.exact > 0 };
        let ended = ENDED.wait_while(uses(), waits);
        let mut uses = ended.unwrap_or_else(PoisonError::into_inner);
        if is_exact {
            uses.exact += 1;
        } else {
            uses.user += 1;
            if uses.user == 1 {
                umask(TAKEN.get().copied().unwrap_or(Mode::empty()));
            }
        }
        Self { is_exact }
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut uses = uses();
        let count = if self.is_exact { &mut uses.exact } else { &mut uses.user };
        *count -= 1;
        if *count > 0 {
            return;
        }
        if !self.is_exact {
            umask(Mode::empty());
        }
        ENDED.notify_all();
    }
}

fn uses() -> MutexGuard<'static, Uses> {
    USES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes a directory of the user.
///
/// # Errors
///
/// Fails like [`std::fs::create_dir`].
pub fn create_dir(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().mode(for_user(0o777)).create(path)
}

/// Makes a directory of the user, and those above it, unless they exist.
///
/// # Errors
///
/// Fails like [`std::fs::create_dir_all`].
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(for_user(0o777)).create(path)
}

/// Makes a directory for the user alone, where nothing is yet.
///
/// # Errors
///
/// Fails like [`std::fs::create_dir`].
pub fn create_private_dir(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// Makes a directory for the user alone, and those above it, unless they exist.
///
/// # Errors
///
/// Fails like [`std::fs::create_dir_all`].
pub fn create_private_dirs(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The options to open a file of the user that may be new.
pub fn new_file() -> OpenOptions {
    let mut options = File::options();
    options.mode(for_user(0o666));
    options
}

/// Writes a file of the user, and replaces its contents.
///
/// # Errors
///
/// Fails like [`std::fs::write`].
pub fn write(path: impl AsRef<Path>, contents: impl AsRef<[u8]>) -> io::Result<()> {
    let mut file = new_file().write(true).create(true).truncate(true).open(path)?;
    file.write_all(contents.as_ref())
}
