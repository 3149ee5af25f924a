//! The names of results, as the specification has them.
//!
//! ```text
//! tinputs/HH/HHHHHHHHHH             a task input
//! c_NAME/CCID/NN/IN0_IN1_...        an output of a call
//! t_NAME/TCID/NN/IN0_IN1_...        an output of a job
//! c_NAME/CCID/ROOM/IN0_IN1_...      its record, log, lease etc., by room
//! tables/HH/HHHHHHHHHH/00           the table of a sweep, by the digest of its recipe
//! tables/HH/HHHHHHHHHH/01           the directory of the outputs that the table was made from
//! tables/HH/HHHHHHHHHH/recipe       the recipe of the table
//! tables/ROOM/HH/HHHHHHHHHH.json    the record of the table etc., by room
//! ```
//!
//! In the name of a table, the number of the output comes last, so that all of a table is in one directory. An [`Entry`] is a
//! result that has a record, of any kind.

use super::{
    AWAY, DIRECTORIES, FAILED, LEASES, LOG, LOGS, MANIFESTS, QUARANTINE, RECORDS, SUSPENDED,
    TABLES, TASK_INPUTS,
};
use ce_model::digest::{Digest, SHORT};
use ce_model::name::{MemberPath, StorageName};
use ce_model::shared_text::SharedText;
use ce_model::slice::MAX_ARITY;

/// The greatest length of a file name that every file system takes, in bytes.
pub(crate) const LONGEST_FILE: usize = 255;

/// The greatest length of a file name to which `.json` is appended.
const LONGEST: usize = LONGEST_FILE - ".json".len();

/// The number of digits of each input's SHA-1 in a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Twelve, as in the specification.
    Short,
    /// All forty, and a `d` after a directory's, for a result whose short name is taken by another.
    Full,
}

/// The forms of names that a result may have, in the order in which they are tried.
pub(crate) const DIGITS: [Digits; 2] = [Digits::Short, Digits::Full];

/// An input that is not known, in a name.
const UNKNOWN: &str = "???";

/// The common part of the names of all outputs of a call, a job or a table: everything but the output's number. It
/// never leads out of the storage: a text of a record or a repository that would is not a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ResultName {
    /// The directory of all results of a version.
    pub(super) directory: SharedText,
    pub(super) file: Box<str>,
}

impl ResultName {
    /// The name of a result in a directory.
    pub(crate) fn new(directory: impl Into<SharedText>, inputs: &[Digest], digits: Digits) -> Self {
        Self { directory: directory.into(), file: file(inputs, digits) }
    }

    /// Whether this is the name of a result in this directory, from these inputs.
    pub(crate) fn is_of(&self, directory: &str, inputs: &[Digest]) -> bool {
        *self.directory == *directory
            && DIGITS.into_iter().any(|digits| self.file == file(inputs, digits))
    }

    /// The directory of all results of its version.
    pub(crate) fn directory(&self) -> &str {
        &self.directory
    }

    /// The version of the computation or task, as in the name: `CCID` or `TCID`.
    pub fn version(&self) -> &str {
        self.directory.rsplit_once('/').map_or(&*self.directory, |(_, version)| version)
    }

    /// Parses the name of a record in a room, relative to the storage.
    pub(crate) fn of_record_in(room: &str, record: &str) -> Option<Self> {
        let record = record.strip_suffix(".json")?;
        if record.starts_with(TABLES) {
            return Self::of_table_record(room, record);
        }
        let (directory, file) = record.split_once(&format!("/{room}/"))?;
        Self::of_parts(directory, file)
    }

    /// Parses the name of the file that marks a result as away.
    pub(crate) fn of_marker(marker: &str) -> Option<Self> {
        let (directory, file) = marker.split_once(&format!("/{AWAY}/"))?;
        Self::of_parts(directory, file)
    }

    /// The name with these parts, unless it would be no plain path.
    fn of_parts(directory: &str, file: &str) -> Option<Self> {
        let is_plain = is_plain(directory) && is_plain(file);
        is_plain.then(|| Self { directory: directory.into(), file: file.into() })
    }

    /// Parses the name of an output, or of a member of it.
    pub(crate) fn of_output(file: &str) -> Option<Self> {
        let (file, _member) = split_member(file);
        if let Some(table) = Self::of_table_file(file) {
            return Some(table);
        }
        let [owner, commit, _number, file] = file.splitn(4, '/').collect::<Vec<_>>()[..] else {
            return None;
        };
        Self::of_parts(&format!("{owner}/{commit}"), file)
    }

    /// Parses a short name, which has no room.
    pub fn of_short(short: &str) -> Option<Self> {
        let [owner, commit, file] = short.splitn(3, '/').collect::<Vec<_>>()[..] else {
            return None;
        };
        Self::of_parts(&format!("{owner}/{commit}"), file)
    }

    /// The name of the computation, if this is the name of a call.
    pub fn computation(&self) -> Option<&str> {
        Some(self.directory.strip_prefix("c_")?.rsplit_once('/')?.0)
    }

    /// Parses the name of a call's output: returns the call, the name of its computation, and the
    /// number of the output.
    pub fn maker(file: &str) -> Option<(Self, &str, u8)> {
        let mut parts = file.split('/');
        let computation = parts.next()?.strip_prefix("c_")?;
        let number = parts.nth(1)?.parse().ok()?;
        Some((Self::of_output(file)?, computation, number))
    }

    /// Parses the name of a call: the name of one of its outputs, or its short name.
    pub fn of_call(text: &str) -> Option<Self> {
        let room = text.strip_prefix("c_")?.split('/').nth(2)?;
        let is_output = room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit());
        if is_output { Self::of_output(text) } else { Self::of_short(text) }
    }

    /// Parses the name of a job: the name of one of its outputs, or its short name.
    pub fn of_job(text: &str) -> Option<Self> {
        let room = text.strip_prefix("t_")?.split('/').nth(2)?;
        let is_output = room.len() == 2 && room.bytes().all(|digit| digit.is_ascii_digit());
        if is_output { Self::of_output(text) } else { Self::of_short(text) }
    }

    /// The name of a call in a directory, as far as its inputs are known: `???` stands for the
    /// others. It is only displayed; no file has it.
    pub(crate) fn guess(directory: &str, inputs: impl Iterator<Item = Option<Digest>>) -> Self {
        let inputs =
            inputs.map(|input| input.map_or(UNKNOWN.to_owned(), |digest| digest.sha1.short()));
        Self { directory: directory.into(), file: join(inputs) }
    }

    /// Whether an input is not known: other calls may have the same guess.
    pub fn is_guess(&self) -> bool {
        self.file.split('_').any(|input| input == UNKNOWN)
    }

    /// The name of an output.
    pub fn output(&self, number: usize) -> String {
        debug_assert!(number < MAX_ARITY, "outputs are counted with two digits");
        // The name of an unknown table has no digits.
        if self.is_table() || *self.directory == *TABLES {
            format!("{}/{number:02}", self.short())
        } else {
            self.room(&format!("{number:02}"))
        }
    }

    /// The name of a room of the same version.
    pub(crate) fn room_itself(&self, room: &str) -> String {
        let owner = if self.is_table() { TABLES } else { &self.directory };
        format!("{owner}/{room}")
    }

    /// The name of a file of this result in a room.
    pub(crate) fn room(&self, room: &str) -> String {
        match self.table_digits() {
            Some(digits) => [TABLES, "/", room, "/", digits, "/", &self.file].concat(),
            None => [&self.directory, "/", room, "/", &self.file].concat(),
        }
    }

    pub(crate) fn record(&self) -> String {
        self.record_in(RECORDS)
    }

    /// The name of its record in another room.
    pub(crate) fn record_in(&self, room: &str) -> String {
        self.room(room) + ".json"
    }

    /// The name of the empty file that says that its outputs are deliberately not here.
    pub fn away(&self) -> String {
        self.room(AWAY)
    }

    /// The name of the call's log.
    pub fn log(&self) -> String {
        self.room(LOGS)
    }

    /// The directory of its quarantined files.
    pub(crate) fn quarantine(&self) -> String {
        self.room(QUARANTINE)
    }

    /// The digits of the inputs, in order, as far as the name shows them.
    pub fn inputs(&self) -> impl Iterator<Item = &str> {
        self.file.split(['_', '/']).filter(|digits| !digits.is_empty())
    }

    /// The short name, which has no room. It identifies the call.
    pub fn short(&self) -> String {
        [&*self.directory, "/", &self.file].concat()
    }
}

/// The name of a task input.
pub(crate) fn task_input(digest: &Digest, digits: Digits) -> String {
    format!("tinputs/{}", task_input_place(digest, digits))
}

/// The name of the record of a task input.
pub(crate) fn task_input_record(digest: &Digest, digits: Digits) -> String {
    format!("tinputs/record/{}.json", task_input_place(digest, digits))
}

/// The name of the file with the manifest of a directory.
pub(crate) fn manifest(digest: &Digest) -> String {
    let text = digest.sha1.short();
    format!("{MANIFESTS}/{}/{}", &text[..2], &text[2..])
}

/// The name of the archive of a directory in a results repository, and so in a clone of one.
pub fn archive_name(digest: &Digest) -> String {
    let text = digest.sha1.short();
    format!("{DIRECTORIES}/{}/{}", &text[..2], &text[2..])
}

/// The name of the pointer to a value in a results repository that has it as a Git LFS object, and so in a clone of one. A directory
/// has its archive there.
pub fn large_name(digest: &Digest) -> String {
    let text = digest.sha1.full();
    let kind = if digest.is_directory() { "d" } else { "" };
    format!("large/{}/{}{kind}", &text[..2], &text[2..])
}

/// The target of the symbolic link with this name to a directory that another computation, or another
/// version, has made: relative, so that the storage can be moved.
pub(crate) fn link_to(name: &str, maker: &str) -> String {
    "../".repeat(name.matches('/').count()) + maker
}

/// The name in the storage that a link with this name and target leads to; `None` if this program does
/// not make such links.
pub(crate) fn linked<'a>(name: &str, target: &'a str) -> Option<&'a str> {
    let maker = target.trim_start_matches("../");
    let is_name = maker.parse::<StorageName>().is_ok();
    (is_name && link_to(name, maker) == target).then_some(maker)
}

/// Splits the name of a file or directory into the name of a value, and a path in the value if it is a member. The name
/// of a task input has three parts. The name of an output ends at the first part without a final underscore.
pub fn split_member(name: &str) -> (&str, Option<&str>) {
    let mut ends = name.match_indices('/').map(|(at, _)| at);
    let end = match name.get(..2) {
        _ if name.starts_with("tinputs/") => ends.nth(2),
        _ if name.starts_with("tables/") => ends.nth(3),
        Some("c_" | "t_") => ends.skip(3).find(|end| is_value(&name[..*end])),
        _ => None,
    };
    match end {
        Some(end) => (&name[..end], Some(&name[end + 1..])),
        None => (name, None),
    }
}

/// Whether a directory with this name is a value, and not a part of longer names: see [`join`].
pub(crate) fn is_value(name: &str) -> bool {
    let last = name.rsplit('/').next().unwrap_or(name);
    last == "_" || !last.ends_with('_')
}

/// Whether a part of a name is a relative path that leads nowhere else.
fn is_plain(part: &str) -> bool {
    part.parse::<MemberPath>().is_ok()
}

fn task_input_place(digest: &Digest, digits: Digits) -> String {
    let text = shown(digest, digits);
    format!("{}/{}", &text[..2], &text[2..])
}

/// The digits of a digest, as names show them.
pub(super) fn shown(digest: &Digest, digits: Digits) -> String {
    match digits {
        Digits::Short => digest.sha1.short(),
        // The text of its manifest, as a file, has the same SHA-1.
        Digits::Full if digest.is_directory() => digest.sha1.full() + "d",
        Digits::Full => digest.sha1.full(),
    }
}

fn file(inputs: &[Digest], digits: Digits) -> Box<str> {
    join(inputs.iter().map(|input| shown(input, digits)))
}

/// The name, below its room, of the record of a call with this number of inputs: to test whether
/// the file system supports it.
pub(crate) fn longest_record(inputs: usize) -> String {
    format!("{}.json", join((0..inputs).map(|_| "0".repeat(SHORT))))
}

/// Joins the inputs' digits with `_`. A component that would grow too long ends in `_`, and the
/// rest is in a directory of that name. Without inputs the name is `_`.
fn join(inputs: impl Iterator<Item = String>) -> Box<str> {
    let mut name = String::with_capacity(inputs.size_hint().0 * (SHORT + 1));
    let mut begin = 0;
    for input in inputs {
        if name.len() > begin {
            name.push('_');
            // The underscore that would follow counts, too.
            if name.len() - begin + input.len() + 1 > LONGEST.min(19 * (SHORT + 1)) {
                name.push('/');
                begin = name.len();
            }
        }
        name.push_str(&input);
    }
    if name.is_empty() {
        name.push('_');
    }
    name.into()
}

/// A result that has a record.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// A call.
    Call(ResultName),
    /// A job.
    Job(ResultName),
    /// The table of a sweep.
    Table(ResultName),
    /// A task input, by its name below `tinputs/`.
    TaskInput(String),
}

impl Entry {
    /// The name of its record, relative to the storage.
    pub fn record(&self) -> String {
        self.room(RECORDS)
    }

    /// The name of its record in another room.
    pub(crate) fn room(&self, room: &str) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.record_in(room),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{room}/{place}.json"),
        }
    }

    /// The call or table with this short name, which has no room.
    pub fn of_short(short: &str) -> Option<Self> {
        let name = ResultName::of_short(short)?;
        Some(if name.is_table() { Self::Table(name) } else { Self::Call(name) })
    }

    /// The result whose record has this name; `None` of a task input.
    pub fn of_record(record: &str) -> Option<Self> {
        let name = ResultName::of_record_in(RECORDS, record)?;
        match record.get(..2)? {
            "c_" => Some(Self::Call(name)),
            "t_" => Some(Self::Job(name)),
            _ => name.is_table().then_some(Self::Table(name)),
        }
    }

    /// The result that a file of this name, or a member of one, belongs to.
    pub fn of_file(file: &str) -> Option<Self> {
        let (file, _member) = split_member(file);
        if let Some(place) = file.strip_prefix(TASK_INPUTS) {
            let place = place.strip_prefix('/').filter(|place| is_plain(place))?;
            return Some(Self::TaskInput(place.to_owned()));
        }
        let name = ResultName::of_output(file)?;
        match file.get(..2)? {
            _ if name.is_table() => Some(Self::Table(name)),
            "c_" => Some(Self::Call(name)),
            "t_" => Some(Self::Job(name)),
            _ => None,
        }
    }

    /// The version of its computation or task, as in its name; `None` for others.
    pub fn version(&self) -> Option<&str> {
        match self {
            Self::Call(name) | Self::Job(name) => Some(name.version()),
            Self::Table(_) | Self::TaskInput(_) => None,
        }
    }

    /// Whether it is the result of a call or job in this directory of a version.
    pub fn is_in(&self, directory: &str) -> bool {
        matches!(self, Self::Call(name) | Self::Job(name) if *name.directory == *directory)
    }

    /// The name of the whole result: without a room, or the name of its only file.
    pub fn short(&self) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.short(),
            Self::TaskInput(_) => self.file(0),
        }
    }

    /// The name of one of its files. A task input has only one.
    pub fn file(&self, number: usize) -> String {
        match self {
            Self::Call(name) | Self::Job(name) | Self::Table(name) => name.output(number),
            Self::TaskInput(place) => format!("{TASK_INPUTS}/{place}"),
        }
    }
}

impl ResultName {
    /// The rooms of a version's directory that have a file for a call, except rooms of outputs.
    const ROOMS: [&str; 5] = [RECORDS, LOG, FAILED, LEASES, SUSPENDED];

    /// The call that a file of the storage belongs to: an output, a record, a log, or the remains of a failure.
    pub fn of_call_file(name: &str) -> Option<Self> {
        let [owner, version, room, file] = name.splitn(4, '/').collect::<Vec<_>>()[..] else {
            return Self::of_call(name);
        };
        if !owner.starts_with("c_") || !Self::ROOMS.contains(&room) {
            return Self::of_call(name);
        }
        let file = file.split('/').next().unwrap_or(file).trim_end_matches(".json");
        Self::of_short(&format!("{owner}/{version}/{file}"))
    }
}

/// The name of a table's recipe in its directory.
const RECIPE: &str = "recipe";

impl ResultName {
    /// The name of the table with this recipe.
    pub(crate) fn of_recipe(recipe: &Digest, digits: Digits) -> Self {
        let text = shown(recipe, digits);
        Self { directory: format!("{TABLES}/{}", &text[..2]).into(), file: text[2..].into() }
    }

    /// Whether it is a table's.
    pub fn is_table(&self) -> bool {
        self.table_digits().is_some()
    }

    /// The file with the recipe of a table.
    pub fn recipe(&self) -> String {
        format!("{}/{RECIPE}", self.short())
    }

    /// Parses the name of a table's record in a room, without `.json`.
    pub(super) fn of_table_record(room: &str, record: &str) -> Option<Self> {
        let place = record.strip_prefix(TABLES)?.strip_prefix('/')?.strip_prefix(room)?;
        Self::of_short(&format!("{TABLES}{place}")).filter(Self::is_table)
    }

    /// Parses the name of a file of a table.
    pub(super) fn of_table_file(file: &str) -> Option<Self> {
        let (table, _) = file.rsplit_once('/')?;
        Self::of_short(table).filter(Self::is_table)
    }

    /// The first two digits of a table's name; `None` for a call or job.
    pub(super) fn table_digits(&self) -> Option<&str> {
        let digits = self.directory.strip_prefix(TABLES)?.strip_prefix('/')?;
        (are_first(digits) && !self.file.contains('/')).then_some(digits)
    }
}

/// Whether these are the first digits of a name, and no room.
fn are_first(digits: &str) -> bool {
    digits.len() == 2 && digits.bytes().all(|it| matches!(it, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths::PINS;

    const DIRECTORY: &str = "c_add/567526d1f10f";

    fn digests(count: usize) -> Vec<Digest> {
        (0..count).map(|n| Digest::hash_bytes(n.to_string().as_bytes())).collect()
    }

    #[test]
    fn names_agree_with_the_specification() {
        let (x, y) = (Digest::hash_bytes(b"17\n"), Digest::hash_bytes(b"5\n"));
        let name = ResultName::new(DIRECTORY, &[x, y], Digits::Short);
        assert_eq!(name.output(1), "c_add/567526d1f10f/01/ad48103e4fc7_5d9474c0309b");
        assert_eq!(name.record(), "c_add/567526d1f10f/record/ad48103e4fc7_5d9474c0309b.json");
        assert_eq!(ResultName::of_output(&name.output(1)), Some(name.clone()));
        assert_eq!(ResultName::of_short(&name.short()), Some(name.clone()));
        assert_eq!(name.short(), "c_add/567526d1f10f/ad48103e4fc7_5d9474c0309b");
        assert_eq!(name.version(), "567526d1f10f");
        assert_eq!(ResultName::of_record_in(RECORDS, &name.record()), Some(name.clone()));
        assert_eq!(task_input(&x, Digits::Short), "tinputs/ad/48103e4fc7");
        assert_eq!(name.inputs().collect::<Vec<_>>(), ["ad48103e4fc7", "5d9474c0309b"]);
        assert_eq!(ResultName::new(DIRECTORY, &[], Digits::Short).inputs().count(), 0);
        assert_eq!(ResultName::new(DIRECTORY, &digests(50), Digits::Full).inputs().count(), 50);
        let guess = ResultName::guess(DIRECTORY, [Some(x), None].into_iter());
        assert_eq!(guess.output(0), "c_add/567526d1f10f/00/ad48103e4fc7_???");
    }

    #[test]
    fn the_name_of_a_member_begins_with_the_name_of_its_directory() {
        for (value, member) in [
            ("c_add/567526d1f10f/00/ad48103e4fc7_5d9474c0309b", "x/y"),
            ("c_add/567526d1f10f/00/_", "x"),
            ("c_add/567526d1f10f/00/a_b_/c", "d_/e"),
            ("tinputs/ad/48103e4fc7", "00/a_/b"),
            ("tables/ad/48103e4fc7/01", "x=1/y=_/out"),
        ] {
            let whole = format!("{value}/{member}");
            assert_eq!(split_member(&whole), (value, Some(member)));
            assert_eq!(split_member(value), (value, None));
            assert_eq!(ResultName::of_output(&whole), ResultName::of_output(value));
        }
        assert_eq!(split_member("by hand/a/b/c/d/e"), ("by hand/a/b/c/d/e", None));
    }

    #[test]
    fn full_names_show_all_digits() {
        let x = Digest::hash_bytes(b"17\n");
        let full = "ad48103e4fc71796e9708cafc43adeed0d1076b7";
        let name = ResultName::new(DIRECTORY, &[x, x], Digits::Full);
        assert_eq!(name.output(0), format!("c_add/567526d1f10f/00/{full}_{full}"));
        assert_eq!(task_input(&x, Digits::Full), format!("tinputs/ad/{}", &full[2..]));
    }

    #[test]
    fn a_call_without_inputs_has_a_name() {
        let name = ResultName::new(DIRECTORY, &[], Digits::Short);
        assert_eq!(name.output(0), "c_add/567526d1f10f/00/_");
    }

    #[test]
    fn long_names_go_on_in_a_directory_after_19_inputs() {
        let short = |inputs: &[Digest]| {
            let inputs: Vec<String> = inputs.iter().map(|input| input.sha1.short()).collect();
            inputs.join("_")
        };
        let digests = digests(100);
        assert_eq!(*file(&digests[..19], Digits::Short), short(&digests[..19]));
        let twenty = format!("{}_/{}", short(&digests[..19]), short(&digests[19..20]));
        assert_eq!(*file(&digests[..20], Digits::Short), twenty);
        let thirty_nine = format!(
            "{}_/{}_/{}",
            short(&digests[..19]),
            short(&digests[19..38]),
            short(&digests[38..39])
        );
        assert_eq!(*file(&digests[..39], Digits::Short), thirty_nine);
    }

    #[test]
    fn components_are_short_and_different_calls_have_different_names() {
        let digests = digests(100);
        let mut seen = std::collections::HashSet::new();
        for count in 0..=100 {
            for digits in DIGITS {
                let name = file(&digests[..count], digits);
                assert!(name.split('/').all(|part| part.len() <= LONGEST), "{name}");
                assert!(!name.contains("//"));
                assert!(seen.insert(name) || count == 0);
            }
        }
    }

    #[test]
    fn a_table_is_named_by_its_recipe() {
        let recipe = Digest::hash_bytes(
            b"17
",
        );
        let name = ResultName::of_recipe(&recipe, Digits::Short);
        assert_eq!(name.short(), "tables/ad/48103e4fc7");
        assert_eq!(name.output(1), "tables/ad/48103e4fc7/01");
        assert_eq!(name.recipe(), "tables/ad/48103e4fc7/recipe");
        assert_eq!(name.record(), "tables/record/ad/48103e4fc7.json");
        assert_eq!(name.record_in(PINS), "tables/pinned/ad/48103e4fc7.json");
        assert_eq!(name.room(QUARANTINE), "tables/aside/ad/48103e4fc7");
        assert_eq!(name.room_itself(RECORDS), "tables/record");
        let full = ResultName::of_recipe(&recipe, Digits::Full);
        assert_eq!(full.output(0), "tables/ad/48103e4fc71796e9708cafc43adeed0d1076b7/00");
        for name in [name, full] {
            assert!(name.is_table());
            let short = name.short();
            assert_eq!(ResultName::of_short(&short), Some(name.clone()));
            assert_eq!(Entry::of_short(&short), Some(Entry::Table(name.clone())));
            for room in [RECORDS, PINS] {
                let record = name.record_in(room);
                assert_eq!(ResultName::of_record_in(room, &record), Some(name.clone()));
            }
            for file in ["00", "01", "01/x=1/out", "recipe"] {
                let file = format!("{short}/{file}");
                assert_eq!(ResultName::of_output(&file), Some(name.clone()), "{file}");
                assert_eq!(Entry::of_file(&file), Some(Entry::Table(name.clone())), "{file}");
                assert_eq!(ResultName::maker(&file), None);
            }
        }
    }

    #[test]
    fn a_table_that_is_not_known_has_question_marks_for_its_digits() {
        assert_eq!(ResultName::unknown_table().output(0), "tables/???/00");
    }

    #[test]
    fn a_text_that_leads_out_is_not_a_name() {
        for part in ["..", ".", "", "../a", "a/..", "a//b", "a/", "a\nb"] {
            let texts = [
                format!("c_add/{part}/00/_"),
                format!("c_add/567526d1f10f/00/{part}"),
                format!("t_task/567526d1f10f/00/{part}/b"),
                format!("c_add/567526d1f10f/record/{part}.json"),
                format!("tinputs/{part}"),
                format!("tinputs/{part}/48103e4fc7"),
                format!("tables/{part}/48103e4fc7/00"),
                format!("tables/ad/{part}/00"),
                format!("../c_add/{part}/00/_"),
                format!("/c_add/{part}/00/_"),
            ];
            for text in texts {
                let value = split_member(&text).0.to_owned();
                let found = [
                    Entry::of_file(&text).map(|it| it.file(0)),
                    Entry::of_record(&text).map(|it| it.record()),
                    Entry::of_short(&text).map(|it| it.file(0)),
                    ResultName::of_marker(&text.replace("/00/", "/away/")).map(|it| it.away()),
                ];
                for name in found.into_iter().flatten() {
                    assert!(is_plain(&name), "{text:?}, {value:?}: {name:?}");
                }
            }
        }
        let file = "c_add/567526d1f10f/00/ad48103e4fc7/../../victim";
        assert_eq!(Entry::of_file(file).unwrap().file(0), "c_add/567526d1f10f/00/ad48103e4fc7");
    }

    #[test]
    fn files_beside_tables_are_not_tables() {
        for file in [
            "tables/record/ad/48103e4fc7.json",
            "tables/aside/ad/48103e4fc7/RUN/00",
            "tables/ad/48103e4fc7",
            "tables/AD/48103e4fc7/00",
            "tables/ad",
            "tables",
        ] {
            assert_eq!(Entry::of_file(file), None, "{file}");
        }
        assert_eq!(ResultName::of_record_in(RECORDS, "tables/pinned/ad/48103e4fc7.json"), None);
        assert!(!ResultName::of_short("tables/ad/a/b").unwrap().is_table());
        assert!(!ResultName::of_short("c_add/567526d1f10f/_").unwrap().is_table());
    }
}
