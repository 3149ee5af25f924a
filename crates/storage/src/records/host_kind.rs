//! Kinds of hosts, as far as they may decide what a program computes.

use std::fmt;
use std::sync::OnceLock;

use serde::de::{Error as _, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

/// The kind of a host: the instruction set of its processors, the level of that, and who has made them, such as
/// `x86_64-v3-amd` or `aarch64-sve`.
///
/// Numerical libraries choose their code by these, so equal outputs on several kinds say more than equal outputs on one. A
/// kind names no host: many share it. It has up to 40 lower-case letters, digits, `_`, `.` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct HostKind(String);

impl HostKind {
    /// The greatest length of a kind, in bytes.
    const MAX_BYTES: usize = 40;

    /// The kind of this host.
    pub fn here() -> &'static Self {
        static KIND: OnceLock<HostKind> = OnceLock::new();
        KIND.get_or_init(|| Self(processor::kind()))
    }

    /// The kind with this name; `None` if that is no name of one.
    pub fn named(name: &str) -> Option<Self> {
        let is_plain = |it: u8| matches!(it, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'.' | b'-');
        let is_name = (1..=Self::MAX_BYTES).contains(&name.len()) && name.bytes().all(is_plain);
        is_name.then(|| Self(name.to_owned()))
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
        let unexpected = || D::Error::invalid_value(Unexpected::Str(&name), &"the kind of a host");
        Self::named(&name).ok_or_else(unexpected)
    }
}

#[cfg(target_arch = "x86_64")]
mod processor {
    use std::arch::is_x86_feature_detected as has;
    use std::arch::x86_64::__cpuid;

    /// The levels are those of the x86-64 psABI, and both vendors the ones that libraries tell from each other.
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
