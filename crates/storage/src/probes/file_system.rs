//! The file system: its type, whether it holds the whole storage, its free space, which names files can have, and whether its
//! operations are atomic: moving a file with and without replacing another one, and exclusive creation by `O_EXCL` and by links.

use std::path::{Path, PathBuf};
use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::fs::{CWD, RenameFlags, renameat_with, statfs, statvfs};

use super::{ELSEWHERE, ProbeSite, refused};
use crate::disk::file_system_kinds::{self, Caveat};
use crate::disk::{Disk, IoContext, Result, StorageError};
use crate::paths;
use ce_model::humanize::size;
use ce_model::probe_diagnosis::Diagnosis;
use ce_model::slice::MAX_ARITY;

/// Finds out the type of the storage's file system.
pub(super) fn kind(site: &ProbeSite) -> Diagnosis {
    let place = site.nearest();
    match statfs(place).map_err(io::Error::from).context("look at", place) {
        // The numbers have 32 bits; the type that holds them differs between machines.
        Ok(stat) => diagnose_kind(stat.f_type as u32),
        Err(error) => refused("file system", &error, "its type is not known", ELSEWHERE),
    }
}

fn diagnose_kind(number: u32) -> Diagnosis {
    let probe = "file system";
    let Some((name, caveat)) = file_system_kinds::known(number) else {
        let found = Diagnosis::ok(probe, format!("of an unknown type ({number:#x})"));
        return found.note("what it does when power is lost is not known").hint(ELSEWHERE);
    };
    let found = Diagnosis::ok(probe, name);
    match caveat {
        None => found,
        Some(Caveat::Memory) => found
            .broken("it is memory: results are gone when the machine stops, flushed or not")
            .hint("put the storage on a disk"),
        Some(Caveat::Late) => found
            .note(
                "what another host publishes may be seen up to a minute late: a call may be executed \
                 there and here, with one result",
            )
            .hint("mount it with lookupcache=positive if that is too often"),
        Some(Caveat::Server) => found
            .note(
                "what it does when two hosts write, and when power is lost, is up to its server and \
                 cannot be seen from here",
            )
            .hint("probe from each kind of host; keep results that are dear on a disk or NFS"),
        Some(Caveat::Container) => found
            .note("it is often the inside of a container, which is thrown away with all its files")
            .hint("if so, mount a directory of the host and put the storage there"),
    }
}

/// Probes whether the contents of the storage are on the file system of its `tmp/`.
pub(super) fn mounts(site: &ProbeSite) -> Diagnosis {
    match elsewhere(site) {
        Ok(elsewhere) => diagnose_mounts(&elsewhere),
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

fn diagnose_mounts(elsewhere: &[String]) -> Diagnosis {
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
    match statvfs(place).map_err(io::Error::from).context("look at", place) {
        Ok(it) => diagnose_space(Space {
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

fn diagnose_space(Space { free, all, files }: Space) -> Diagnosis {
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

/// A letter with an accent, in two forms of Unicode.
const ACCENT: [&str; 2] = ["c_\u{e9}", "c_e\u{301}"];

/// Characters with a special meaning on some file systems.
const MARKS: &str = "c_a:b*c?d\"e<f>g|h\\i. ";

/// The greatest lengths of names.
#[derive(Clone, Copy, Debug)]
struct NameLimits {
    /// The length of the longest file name, in bytes.
    bytes: usize,
    /// The greatest number of inputs of a call whose record can have its name and path.
    inputs: usize,
}

/// Probes whether names can be as long as calls with many inputs need.
pub(super) fn long_names(site: &ProbeSite) -> Diagnosis {
    match longest(site) {
        Ok(longest) => diagnose_length(longest),
        Err(error) => {
            refused("long names", &error, "results cannot have the names they need", ELSEWHERE)
        }
    }
}

fn longest(site: &ProbeSite) -> Result<NameLimits> {
    Ok(NameLimits {
        bytes: most(paths::LONGEST_FILE, |bytes| fits(site, &"0".repeat(bytes)))?,
        inputs: most(MAX_ARITY, |inputs| fits(site, &paths::longest_record(inputs)))?,
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

fn diagnose_length(NameLimits { bytes, inputs }: NameLimits) -> Diagnosis {
    let probe = "long names";
    if bytes >= paths::LONGEST_FILE && inputs >= MAX_ARITY {
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
        let need = paths::LONGEST_FILE;
        found.note(format!("computations and tasks with names near {need} bytes do not fit"))
    }
}

/// Probes whether names that differ only in case are different.
pub(super) fn case(site: &ProbeSite) -> Diagnosis {
    match tells_case(site) {
        Ok(two) => diagnose_case(two),
        Err(error) => {
            refused("case", &error, "it is not known which names are the same", ELSEWHERE)
        }
    }
}

/// Whether two names that differ in the case of a letter are of two files.
fn tells_case(site: &ProbeSite) -> Result<bool> {
    let room = site.room()?;
    site.disk().write(&room.join("c_add"), b"")?;
    Ok(site.disk().metadata(&room.join("c_ADD"))?.is_none())
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
    match characters_of(site) {
        Ok(characters) => diagnose_characters(characters),
        Err(error) => {
            refused("characters", &error, "it is not known which names are kept", ELSEWHERE)
        }
    }
}

/// Finds out how the file system treats names beyond ASCII.
fn characters_of(site: &ProbeSite) -> Result<Characters> {
    let room = site.room()?;
    let accent = handling(site.disk(), &room, ACCENT[0])?;
    let merged =
        accent != NameHandling::Refused && site.disk().metadata(&room.join(ACCENT[1]))?.is_some();
    Ok(Characters { accent, merged, marks: handling(site.disk(), &site.room()?, MARKS)? })
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

/// The number of times that a file is replaced while another thread watches it.
const MOVES: usize = 300;

/// The time after which no further file is replaced.
const MAX_TIME: Duration = Duration::from_secs(2);

/// The result of replacing a file.
#[derive(Clone, Copy, Debug)]
struct ReplaceResult {
    /// The moved file is the one under the name now.
    same: bool,
    /// The number of replacements that were watched.
    moves: usize,
    /// The number of times that no file was seen under the name.
    gaps: usize,
}

/// Probes whether a file can be replaced atomically.
pub(super) fn replacing(site: &ProbeSite) -> Diagnosis {
    match replace(site) {
        Ok(replaced) => diagnose_replacing(replaced),
        Err(error) => {
            let means = "damaged results cannot be replaced, and runs cannot show that they live";
            refused("replacing", &error, means, ELSEWHERE)
        }
    }
}

fn replace(site: &ProbeSite) -> Result<ReplaceResult> {
    let (file, place) = (site.file()?, site.room()?.join("place"));
    site.disk().write(&place, b"")?;
    let (id, text) = (site.disk().id(&file)?, site.disk().read(&file)?);
    site.disk().rename(&file, &place)?;
    let same = id.is_some() && site.disk().id(&place)? == id && site.disk().read(&place)? == text;
    let (moves, gaps) = watch(site.disk(), &place, || {
        let file = site.file()?;
        site.disk().rename(&file, &place).map(drop)
    })?;
    Ok(ReplaceResult { same, moves, gaps })
}

/// Replaces a file many times. Returns the number of replacements, and the number of times that a
/// watching thread saw no file.
fn watch(disk: &Disk, place: &Path, replace: impl Fn() -> Result<()>) -> Result<(usize, usize)> {
    let over = &AtomicBool::new(false);
    let mut gaps = Ok(0);
    let moves = thread::scope(|scope| {
        scope.spawn(|| gaps = look(disk, place, over));
        let begun = Instant::now();
        let mut moves = 0;
        let mut moved = Ok(());
        while moved.is_ok() && moves < MOVES && begun.elapsed() < MAX_TIME {
            moved = replace();
            moves += 1;
        }
        over.store(true, Ordering::Relaxed);
        moved.map(|()| moves)
    })?;
    Ok((moves, gaps?))
}

/// Watches a file. Returns the number of times that it was absent.
fn look(disk: &Disk, place: &Path, over: &AtomicBool) -> Result<usize> {
    let mut gaps = 0;
    loop {
        gaps += usize::from(!disk.exists(place)?);
        if over.load(Ordering::Relaxed) {
            return Ok(gaps);
        }
    }
}

fn diagnose_replacing(replaced: ReplaceResult) -> Diagnosis {
    let probe = "replacing";
    match replaced {
        ReplaceResult { same: false, .. } => {
            Diagnosis::ok(probe, "a moved file is not the same file")
                .broken(
                    "a result may be taken for another execution's: files are told apart by inode",
                )
                .hint(ELSEWHERE)
        }
        ReplaceResult { moves, gaps: 0, .. } => {
            let found =
                format!("a name was never seen free while its file was replaced {moves} times");
            Diagnosis::ok(probe, found)
        }
        ReplaceResult { moves, gaps, .. } => {
            let found = format!(
                "a name was seen free {gaps} times while its file was replaced {moves} times"
            );
            Diagnosis::ok(probe, found)
                .broken(
                    "for a moment a result seems to be missing, or to have no record: it may be \
                     computed again, or adopted without one",
                )
                .hint(ELSEWHERE)
        }
    }
}

/// The result of moving files without replacing others.
#[derive(Clone, Copy, Debug)]
struct MoveResult {
    /// The file system itself refuses to replace.
    native: bool,
    /// An existing file is not replaced.
    refused: bool,
    /// A file is moved to a free name.
    moved: bool,
}

/// Probes whether a file can be moved only to a free name.
pub(super) fn moving(site: &ProbeSite) -> Diagnosis {
    match move_new(site) {
        Ok(moved) => diagnose_moving(moved),
        Err(error) => refused("moving", &error, "outputs cannot be put in their places", ELSEWHERE),
    }
}

fn move_new(site: &ProbeSite) -> Result<MoveResult> {
    let (file, taken, free) = (site.file()?, site.file()?, site.room()?.join("free"));
    let native = is_native(&file, &taken)?;
    let ids = (site.disk().id(&file)?, site.disk().id(&taken)?);
    let refused = !site.disk().rename_new(&file, &taken)?
        && (site.disk().id(&file)?, site.disk().id(&taken)?) == ids;
    let moved = site.disk().rename_new(&file, &free)? && site.disk().id(&free)? == ids.0;
    Ok(MoveResult { native, refused, moved: moved && site.disk().id(&file)?.is_none() })
}

/// Whether the file system can move without replacing. Moves nothing if it cannot.
fn is_native(from: &Path, taken: &Path) -> Result<bool> {
    let moved = renameat_with(CWD, from, CWD, taken, RenameFlags::NOREPLACE);
    match moved.map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(false),
        other => other.map(|()| true).context("move to", taken),
    }
}

fn diagnose_moving(moved: MoveResult) -> Diagnosis {
    let probe = "moving";
    match moved {
        MoveResult { refused: false, .. } => Diagnosis::ok(probe, "an existing file is replaced")
            .broken("an output that was put there by hand may be overwritten")
            .hint(ELSEWHERE),
        MoveResult { moved: false, .. } => {
            Diagnosis::ok(probe, "a moved file is not in its new place")
                .broken("outputs do not get to their places")
                .hint(ELSEWHERE)
        }
        MoveResult { native: false, .. } => {
            let found = "the file system cannot refuse to replace: the place is looked at first";
            Diagnosis::ok(probe, found).note(
                "a file that another program puts in the place of an output in that very moment is \
                 overwritten; runs never do",
            )
        }
        MoveResult { .. } => Diagnosis::ok(probe, "an existing file is not replaced"),
    }
}

/// The number of threads that try to take the same name at the same time.
const RIVALS: usize = 4;

/// The number of names that they try to take.
const ROUNDS: usize = 50;

/// The result of taking names.
#[derive(Clone, Copy, Debug)]
struct ExclusiveCreation {
    /// A name that is taken is refused.
    refused: bool,
    /// A link is the same file.
    same: bool,
    /// The number of names that were not taken by exactly one rival.
    unfair: usize,
}

/// Probes whether a file can be created exclusively.
pub(super) fn exclusive_files(site: &ProbeSite) -> Diagnosis {
    let probe = "exclusive files";
    match exclusive(site) {
        Ok(taken) => diagnose(probe, taken, "files of different calls may be mixed"),
        Err(error) => {
            refused(probe, &error, "nothing can be computed into this storage", ELSEWHERE)
        }
    }
}

/// Probes whether a file can have a second name, if that is free.
pub(super) fn hard_links(site: &ProbeSite) -> Diagnosis {
    let probe = "hard links";
    match linked(site) {
        Ok(taken) => {
            let means = "a result may be replaced by another execution's, and two runs may compute \
                         the same call: records and leases are hard links";
            diagnose(probe, taken, means)
        }
        Err(error) => {
            let means = "nothing can be published, and two runs compute the same call: records \
                         and leases are hard links";
            refused(probe, &error, means, ELSEWHERE)
        }
    }
}

fn exclusive(site: &ProbeSite) -> Result<ExclusiveCreation> {
    let refused = !create(site.disk(), &site.file()?)?;
    Ok(ExclusiveCreation {
        refused,
        same: true,
        unfair: race(site, |_, name| create(site.disk(), name))?,
    })
}

/// Creates a file. Returns whether the name was free.
fn create(disk: &Disk, path: &Path) -> Result<bool> {
    match disk.write(path, b"") {
        Ok(()) => Ok(true),
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::AlreadyExists => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

fn linked(site: &ProbeSite) -> Result<ExclusiveCreation> {
    let (first, second) = (site.file()?, site.file()?);
    // Records and leases are linked from other directories, too.
    let name = site.room()?.join("link");
    site.disk().link(&first, &name)?;
    let same =
        site.disk().id(&name)?.is_some() && site.disk().id(&name)? == site.disk().id(&first)?;
    let refused =
        !site.disk().link(&second, &name)? && site.disk().id(&name)? == site.disk().id(&first)?;
    Ok(ExclusiveCreation {
        refused,
        same,
        unfair: race(site, |own, name| site.disk().link(own, name))?,
    })
}

/// Lets rivals, each with its own file, take names. Returns the number of names that were not taken
/// by exactly one.
fn race(site: &ProbeSite, take: impl Fn(&Path, &Path) -> Result<bool> + Sync) -> Result<usize> {
    let own = (0..RIVALS).map(|_| site.file()).collect::<Result<Vec<PathBuf>>>()?;
    let room = &site.room()?;
    let start = &Barrier::new(RIVALS);
    let mut taken: Vec<Vec<Result<bool>>> = own.iter().map(|_| Vec::new()).collect();
    thread::scope(|scope| {
        for (own, taken) in own.iter().zip(&mut taken) {
            let take = &take;
            scope.spawn(move || {
                let rounds = (0..ROUNDS).map(|round| {
                    start.wait();
                    take(own, &room.join(round.to_string()))
                });
                *taken = rounds.collect();
            });
        }
    });
    let mut winners = [0; ROUNDS];
    for rival in taken {
        for (winners, won) in winners.iter_mut().zip(rival) {
            *winners += usize::from(won?);
        }
    }
    Ok(winners.iter().filter(|winners| **winners != 1).count())
}

fn diagnose(probe: &'static str, taken: ExclusiveCreation, means: &str) -> Diagnosis {
    let found = match taken {
        ExclusiveCreation { refused: false, .. } => {
            "a name that is taken is not refused".to_owned()
        }
        ExclusiveCreation { same: false, .. } => {
            "a link is not the same file under another name".to_owned()
        }
        ExclusiveCreation { unfair: 0, .. } => {
            let found = format!("of {RIVALS} that take a name at once, one gets it");
            return Diagnosis::ok(probe, found);
        }
        ExclusiveCreation { unfair, .. } => {
            format!("{unfair} of {ROUNDS} names did not go to one of {RIVALS} that took them")
        }
    };
    Diagnosis::ok(probe, found).broken(means).hint(ELSEWHERE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::probe_diagnosis::Grade;

    #[test]
    fn each_kind_of_file_system_has_its_diagnosis() {
        assert_eq!(summary(&diagnose_kind(0xef53)), (None, "ext2, ext3 or ext4; ".to_owned()));
        assert_eq!(summary(&diagnose_kind(0x5265_4973)), (None, "reiserfs; ".to_owned()));
        let (grade, text) = summary(&diagnose_kind(0x0102_1994));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("gone when the machine stops"), "{text}");
        let (grade, text) = summary(&diagnose_kind(0x6969));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.starts_with("nfs; ") && text.contains("late"), "{text}");
        assert_eq!(summary(&diagnose_kind(1)).0, Some(Grade::Note));
    }

    #[test]
    fn a_part_on_another_file_system_is_reported() {
        assert_eq!(diagnose_mounts(&[]).grade(), None);
        let (grade, text) = summary(&diagnose_mounts(&[
            "results/c_add is a link".to_owned(),
            "results/tmp".to_owned(),
        ]));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("results/c_add is a link (and 1 more)"), "{text}");
    }

    #[test]
    fn links_in_the_storage_are_found() {
        let dir = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/proc", dir.path().join("c_far")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("c_lost")).unwrap();
        let elsewhere = elsewhere(&ProbeSite::new(dir.path())).unwrap();
        assert_eq!(
            elsewhere,
            ["c_far", "c_lost"]
                .map(|name| format!("{} is a symbolic link", dir.path().join(name).display()))
        );
    }

    #[test]
    fn little_room_is_reported() {
        let much = Space { free: 46 << 30, all: 252 << 30, files: Some(16_777_216) };
        let text = "46.0 GiB of 252.0 GiB are free, and 16 million files; ";
        assert_eq!(summary(&diagnose_space(much)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose_space(Space { free: LITTLE - 1, ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("1024.0 MiB of") && text.contains("little room left"), "{text}");
        let (grade, text) = summary(&diagnose_space(Space { files: Some(7), ..much }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("and 7 files") && text.contains("few more files"), "{text}");
        assert_eq!(summary(&diagnose_space(Space { files: None, ..much })).0, None);
    }

    #[test]
    fn short_names_limit_the_inputs() {
        let fine = NameLimits { bytes: 255, inputs: 100 };
        let text = "255 bytes, and paths for a call of 100 inputs; ";
        assert_eq!(summary(&diagnose_length(fine)), (None, text.to_owned()));
        let (grade, text) = summary(&diagnose_length(NameLimits { bytes: 143, inputs: 10 }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.ends_with("more than 10 inputs cannot be published"), "{text}");
        assert_eq!(diagnose_length(NameLimits { bytes: 254, ..fine }).grade(), Some(Grade::Note));
    }

    #[test]
    fn the_search_finds_the_greatest_possible_number() {
        for limit in [0, 1, 54, 99, 100] {
            assert_eq!(most(100, |number| Ok(number <= limit)).unwrap(), limit);
        }
    }

    #[test]
    fn names_that_collide_are_reported() {
        assert_eq!(diagnose_case(true).grade(), None);
        let (grade, text) = summary(&diagnose_case(false));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.contains("differ only in case share a directory"), "{text}");
    }

    #[test]
    fn characters_that_are_not_kept_are_reported() {
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

    #[test]
    fn a_name_that_is_free_for_a_moment_is_reported() {
        let fine = ReplaceResult { same: true, moves: 300, gaps: 0 };
        assert_eq!(diagnose_replacing(fine).grade(), None);
        let (grade, text) = summary(&diagnose_replacing(ReplaceResult { gaps: 2, ..fine }));
        assert_eq!(grade, Some(Grade::Broken));
        assert!(text.starts_with("a name was seen free 2 times"), "{text}");
        let other = diagnose_replacing(ReplaceResult { same: false, ..fine });
        assert_eq!(other.grade(), Some(Grade::Broken));
    }

    #[test]
    fn a_moment_without_the_name_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let site = ProbeSite::new(dir.path());
        let place = site.fresh();
        let (moves, gaps) = watch(site.disk(), &place, || Ok(())).unwrap();
        assert_eq!(moves, MOVES);
        assert!(gaps > 0, "nothing is ever there");
        assert!(watch(site.disk(), &place, || site.disk().make_dir(&place.join("a"))).is_err());
    }

    #[test]
    fn a_file_system_that_always_replaces_is_reported() {
        let fine = MoveResult { native: true, refused: true, moved: true };
        assert_eq!(diagnose_moving(fine).grade(), None);
        let (grade, text) = summary(&diagnose_moving(MoveResult { native: false, ..fine }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("looked at first"), "{text}");
        for broken in [MoveResult { refused: false, ..fine }, MoveResult { moved: false, ..fine }] {
            assert_eq!(diagnose_moving(broken).grade(), Some(Grade::Broken));
        }
    }

    #[test]
    fn a_name_that_is_created_twice_is_reported() {
        let fair = ExclusiveCreation { refused: true, same: true, unfair: 0 };
        assert_eq!(diagnose("a", fair, "b").grade(), None);
        for (taken, what) in [
            (
                ExclusiveCreation { refused: false, ..fair },
                "a name that is taken is not refused; b",
            ),
            (
                ExclusiveCreation { same: false, ..fair },
                "a link is not the same file under another name; b",
            ),
            (
                ExclusiveCreation { unfair: 3, ..fair },
                "3 of 50 names did not go to one of 4 that took them; b",
            ),
        ] {
            let broken = (Some(Grade::Broken), what.to_owned());
            assert_eq!(summary(&diagnose("a", taken, "b")), broken);
        }
    }

    #[test]
    fn a_race_counts_names_that_not_exactly_one_process_made() {
        let dir = tempfile::tempdir().unwrap();
        let site = ProbeSite::new(dir.path());
        assert_eq!(race(&site, |_, name| create(site.disk(), name)).unwrap(), 0);
        assert_eq!(race(&site, |_, _| Ok(true)).unwrap(), ROUNDS);
        assert_eq!(race(&site, |_, _| Ok(false)).unwrap(), ROUNDS);
        let even = |name: &Path| name.to_str().unwrap().ends_with(['0', '2', '4', '6', '8']);
        assert_eq!(
            race(&site, |_, name| Ok(create(site.disk(), name)? || even(name))).unwrap(),
            ROUNDS / 2
        );
        assert!(race(&site, |own, _| create(site.disk(), &own.join("below"))).is_err());
    }
}
