//! Provenance: who recorded something, where, when and with which version of this program; how outputs came to be; and
//! the properties of a host that may affect the results of a program.
//!
//! [`machine`] describes this host in a line for people: its processors, memory and kernel.

use std::sync::OnceLock;
use std::{fmt, fs};

use ce_model::host_use::HostUse;
use ce_model::humanize::{counted, size};
use ce_model::name::StorageName;
use ce_model::resources::LimitedAttempt;
use ce_model::shared_text::SharedText;
use jiff::Timestamp;
use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The user, host, time and program version of an action.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// The name of the host.
    pub host: SharedText,
    /// The name of the user.
    pub user: SharedText,
    /// The time.
    pub at: Timestamp,
    /// The version of compeval.
    pub compeval: SharedText,
}

impl Provenance {
    /// This program, run by this user on this host now.
    pub fn now() -> Self {
        Self {
            host: host(),
            user: user(),
            at: Timestamp::now(),
            compeval: env!("CARGO_PKG_VERSION").into(),
        }
    }
}

/// The name of this host.
pub(crate) fn host() -> SharedText {
    static HOST: OnceLock<SharedText> = OnceLock::new();
    HOST.get_or_init(|| (&*rustix::system::uname().nodename().to_string_lossy()).into()).clone()
}

/// The name of the user.
fn user() -> SharedText {
    static USER: OnceLock<SharedText> = OnceLock::new();
    USER.get_or_init(|| {
        ["USER", "LOGNAME"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok())
            .unwrap_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()))
            .into()
    })
    .clone()
}

/// An execution of `exec`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Execution {
    /// The arguments: names in the storage, never absolute paths.
    pub argv: Arguments,
    /// The isolation from everything else.
    pub isolation: SharedText,
    /// The grants of access beyond its own tree: the lines of its file `access`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub access: Box<[String]>,
    /// The resources that it has requested: lines of a file `resources`.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub resources: Box<[String]>,
    /// The executions before it that a limit has ended.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub attempts: Box<[LimitedAttempt]>,
    /// The kind of its host; `None` if that is not known: it was suspended, a launcher has started it, or an earlier program has
    /// recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_kind: Option<HostKind>,
    /// The machine, in words: see [`machine`](super::machine()). `None` where its kind is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<SharedText>,
    /// What else used its host meanwhile. `None` if that is not known, as where its kind is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_use: Option<Box<HostUse>>,
    /// The time of its start.
    pub start: Timestamp,
    /// The time of its end.
    pub end: Timestamp,
    /// User CPU time, in seconds.
    pub user_seconds: f64,
    /// System CPU time, in seconds.
    pub system_seconds: f64,
    /// Peak resident memory of its largest process, in bytes.
    pub peak_bytes: u64,
    pub exit_status: i32,
    /// The exit statuses of its tasks, by their numbers, if a launcher has started it.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub tasks: Box<[Option<u8>]>,
    /// The short name of the result of another commit that it was executed for, if the outputs were
    /// taken over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<String>,
    /// It was taken over although it was not isolated: the user trusted its tree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub trusted_tree: bool,
}

/// Arguments of a program, one after the other. They hold no NUL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// Each ends with a NUL, so that many records take little memory.
    joined: Box<str>,
}

impl Arguments {
    /// The arguments in order.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.joined.split_terminator('\0')
    }

    /// The argument of this number.
    pub fn get(&self, number: usize) -> Option<&str> {
        self.iter().nth(number)
    }
}

impl From<Vec<String>> for Arguments {
    fn from(arguments: Vec<String>) -> Self {
        let ended = arguments.into_iter().map(|argument| argument + "\0");
        Self { joined: ended.collect::<String>().into() }
    }
}

impl Serialize for Arguments {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let arguments = Vec::<String>::deserialize(deserializer)?;
        match arguments.iter().any(|argument| argument.contains('\0')) {
            true => Err(D::Error::custom("an argument holds a NUL")),
            false => Ok(arguments.into()),
        }
    }
}

/// The `isolation` of an execution without any.
pub const NOT_ISOLATED: &str = "none";

/// The origin of outputs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `exec` was run, and left its outputs in this stage.
    Executed {
        /// The stage, relative to the storage and never outside of it.
        #[serde(deserialize_with = "inside")]
        stage: String,
        #[serde(flatten)]
        execution: Execution,
    },
    /// They were found without a record, and adopted.
    Adopted,
    /// They were executed in another storage, and are here by way of a results repository.
    Shared(SharedOrigin),
}

/// The origin of outputs, as a results repository records it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedOrigin {
    /// The stage from which `ce pull` has moved them here; a record in a results repository has none.
    #[serde(default, deserialize_with = "inside_or_none", skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,
    /// The isolation from everything else: as of an [`Execution`].
    pub isolation: SharedText,
    /// The grants of access: as of an [`Execution`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub access: Vec<String>,
    /// The short name of the result of another commit, if the outputs were taken over here; a record in a results
    /// repository has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_over: Option<String>,
}

impl Origin {
    /// Returns the isolation of the execution; `None` for adopted outputs.
    pub fn isolation(&self) -> Option<&str> {
        match self {
            Self::Executed { execution, .. } => Some(&execution.isolation),
            Self::Shared(sharing) => Some(&sharing.isolation),
            Self::Adopted => None,
        }
    }

    /// Returns the resources that the execution asked for, as lines; empty where they are not known.
    pub fn resources(&self) -> &[String] {
        match self {
            Self::Executed { execution, .. } => &execution.resources,
            Self::Shared(_) | Self::Adopted => &[],
        }
    }

    /// Returns the grants of access that the execution had; empty for adopted outputs.
    pub fn access(&self) -> &[String] {
        match self {
            Self::Executed { execution, .. } => &execution.access,
            Self::Shared(sharing) => &sharing.access,
            Self::Adopted => &[],
        }
    }

    /// The stage in which the outputs were before they were moved to their places.
    pub fn stage(&self) -> Option<&str> {
        match self {
            Self::Executed { stage, .. } => Some(stage),
            Self::Shared(sharing) => sharing.stage.as_deref(),
            Self::Adopted => None,
        }
    }

    /// The short name of the result that the outputs were taken over from, if they were.
    pub fn taken_over(&self) -> Option<&str> {
        match self {
            Self::Executed { execution, .. } => execution.taken_over.as_deref(),
            Self::Shared(sharing) => sharing.taken_over.as_deref(),
            Self::Adopted => None,
        }
    }

    /// The origin of outputs in another stage that are taken over from the result of this short name. `None` for
    /// adopted outputs: it is unknown how they were made.
    pub(crate) fn of_take_over(&self, stage: &str, from: String) -> Option<Self> {
        let (stage, taken_over) = (stage.to_owned(), Some(from));
        match self {
            Self::Executed { execution, .. } => {
                let trusted_tree = !self.is_isolated();
                let execution = Execution { taken_over, trusted_tree, ..execution.clone() };
                Some(Self::Executed { stage, execution })
            }
            Self::Shared(sharing) => {
                let stage = Some(stage);
                Some(Self::Shared(SharedOrigin { stage, taken_over, ..sharing.clone() }))
            }
            Self::Adopted => None,
        }
    }

    /// Whether the execution could read nothing but its inputs and its computation.
    pub fn is_isolated(&self) -> bool {
        self.isolation().is_some_and(|isolation| isolation != NOT_ISOLATED)
    }
}

impl Origin {
    /// Whether the execution could read nothing else, neither by a grant of `access` nor from processes that it was
    /// suspended for.
    pub fn reads_only_inputs(&self) -> bool {
        self.is_isolated()
            && self
                .access()
                .iter()
                .all(|line| matches!(line.split_whitespace().next(), Some("root" | "path" | "set")))
    }
}

/// Reads a name that cannot lead out of the storage, since files are moved from there.
fn inside<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    StorageName::deserialize(deserializer).map(String::from)
}

fn inside_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    inside(deserializer).map(Some)
}

/// The kind of a host: the instruction set of its processors, the level of that, and who has made them, such as
/// `x86_64-v3-amd` or `aarch64-sve`.
///
/// Numerical libraries choose their code by these, so equal outputs on several kinds say more than equal outputs on one. A
/// kind names no host: many share it. It has up to 40 lower-case letters, digits, `_`, `.` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostKind(SharedText);

impl HostKind {
    /// The greatest length of a kind, in bytes.
    const MAX_BYTES: usize = 40;

    /// The kind of this host.
    pub fn here() -> &'static Self {
        static KIND: OnceLock<HostKind> = OnceLock::new();
        KIND.get_or_init(|| Self(processor::kind().into()))
    }

    /// The kind with this name; `None` if no kind has this name.
    pub fn named(name: &str) -> Option<Self> {
        let is_name = (1..=Self::MAX_BYTES).contains(&name.len())
            && name
                .bytes()
                .all(|it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-'));
        is_name.then(|| Self(name.into()))
    }
}

impl fmt::Display for HostKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for HostKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&name), &"the kind of a host"))
    }
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::__cpuid;

    /// The levels are defined by the x86-64 psABI. Libraries distinguish these two vendors.
    pub(super) fn kind() -> String {
        let is_v2 = has!("sse3") && has!("ssse3") && has!("sse4.1") && has!("sse4.2");
        let is_v2 = is_v2 && has!("popcnt") && has!("cmpxchg16b");
        let is_v3 = is_v2 && has!("avx2") && has!("bmi1") && has!("bmi2") && has!("f16c");
        let is_v3 = is_v3 && has!("fma") && has!("lzcnt") && has!("movbe");
        let is_v4 = is_v3 && has!("avx512f") && has!("avx512bw") && has!("avx512cd");
        let is_v4 = is_v4 && has!("avx512dq") && has!("avx512vl");
        let level = match (is_v4, is_v3, is_v2) {
            (true, ..) => "v4",
            (_, true, _) => "v3",
            (.., true) => "v2",
            _ => "v1",
        };
        let leaf = __cpuid(0);
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes);
        let vendor = match vendor.as_flattened() {
            b"GenuineIntel" => "intel",
            b"AuthenticAMD" => "amd",
            _ => "other",
        };
        format!("x86_64-{level}-{vendor}")
    }
}

#[cfg(target_arch = "aarch64")]
mod processor {
    use std::arch::is_aarch64_feature_detected as has;

    pub(super) fn kind() -> String {
        let level = match (has!("sve2"), has!("sve")) {
            (true, _) => "-sve2",
            (_, true) => "-sve",
            _ => "",
        };
        format!("aarch64{level}")
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod processor {
    pub(super) fn kind() -> String {
        std::env::consts::ARCH.to_owned()
    }
}

/// The file in which a machine describes its processors.
const PROCESSORS: &str = "/proc/cpuinfo";

/// The file that names the governor of the frequency of the first one.
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

/// The fields of [`PROCESSORS`] that name a model. They depend on the architecture.
const MODEL_FIELDS: [&str; 3] = ["model name", "Model", "cpu"];

/// The longest description, in characters.
const MAX_MACHINE_CHARS: usize = 200;

/// Describes this machine: the model and the number of its processors, its memory, its kernel, and the governor of the frequency.
/// Parts that cannot be read are left out. It is read once.
pub fn machine() -> &'static str {
    static MACHINE: OnceLock<String> = OnceLock::new();
    MACHINE.get_or_init(|| {
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let (uname, system) = (rustix::system::uname(), rustix::system::sysinfo());
        let memory = (system.totalram as f64 * f64::from(system.mem_unit)) as u64;
        let kernel =
            format!("{} {}", uname.sysname().to_string_lossy(), uname.release().to_string_lossy());
        machine_in_words(&read(PROCESSORS), memory, &kernel, &read(GOVERNOR))
    })
}

/// The description, from the contents of these files.
fn machine_in_words(processors: &str, memory: u64, kernel: &str, governor: &str) -> String {
    let fields = || processors.lines().filter_map(|line| line.split_once(':'));
    let model = fields()
        .find(|(name, value)| MODEL_FIELDS.contains(&name.trim()) && !value.trim().is_empty());
    let count = fields().filter(|(name, _)| name.trim() == "processor").count();
    let parts = [
        model.map(|(_, model)| model.trim().to_owned()),
        (count > 0).then(|| counted(count, "CPU")),
        (memory > 0).then(|| size(memory)),
        Some(kernel.to_owned()),
        (!governor.is_empty()).then(|| format!("{} governor", governor.trim())),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let line = parts.join(", ");
    let words: Vec<&str> = line.split_whitespace().collect();
    words.join(" ").chars().filter(|c| !c.is_control()).take(MAX_MACHINE_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_outside_of_the_storage_is_refused() {
        let execution = r#""argv":[],"isolation":"none","start":"2026-01-01T00:00:00Z",
        "end":"2026-01-01T00:00:00Z","user_seconds":0.0,"system_seconds":0.0,"peak_bytes":0,
        "exit_status":0"#;
        let origin = |stage: &str| {
            let text = format!(r#"{{"executed":{{"stage":"{stage}",{execution}}}}}"#);
            serde_json::from_str::<Origin>(&text)
        };
        assert!(origin("tmp/run/0/1").is_ok());
        for outside in ["../../data/x", "/etc/passwd", "tmp/../../x", ""] {
            assert!(origin(outside).is_err(), "{outside}");
        }
    }

    #[test]
    fn a_kind_is_read_as_it_is_written_and_nothing_else_is_one() {
        let here = HostKind::here().to_string();
        assert!(here.starts_with(std::env::consts::ARCH), "{here}");
        assert_eq!(HostKind::named(&here).as_ref(), Some(HostKind::here()));
        let long = "x".repeat(41);
        for bad in ["", "node 7", "x86_64\n", "Intel", "é", long.as_str()] {
            assert_eq!(HostKind::named(bad), None, "{bad}");
            assert!(serde_json::from_value::<HostKind>(bad.into()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_machine_is_described_in_one_line() {
        let processors = "processor\t: 0\nmodel name\t: Some  CPU @ 2.40GHz\n\n\
                          processor\t: 1\nmodel name\t: Some  CPU @ 2.40GHz\n";
        assert_eq!(
            machine_in_words(processors, 16 << 30, "Linux 6.1.0", "performance\n"),
            "Some CPU @ 2.40GHz, 2 CPUs, 16.0 GiB, Linux 6.1.0, performance governor"
        );
        assert_eq!(machine_in_words("", 0, "Linux 6.1.0", ""), "Linux 6.1.0");
        assert_eq!(machine_in_words("processor: 0\ncpu: POWER9\n", 0, "L", ""), "POWER9, 1 CPU, L");
        assert_eq!(machine_in_words("", 0, &"x".repeat(300), "").len(), MAX_MACHINE_CHARS);
        let here = machine();
        assert!(here.contains("Linux ") && !here.contains('\n'), "{here}");
    }
}
