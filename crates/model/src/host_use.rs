//! What else went on at a host while a call was executed there.

use serde::{Deserialize, Serialize};

use crate::humanize::counted;

/// The share of the processors from which on others disturb a measurement.
const BUSY: f64 = 0.1;

/// Whether this share of the processors in the hands of others disturbs a measurement.
fn is_busy(share: f64) -> bool {
    share > BUSY
}

/// The use of a host's processors by others than a run and its calls, over an interval that holds an execution.
///
/// The kernel counts times in hundredths of a second, so an interval has at least half a second: executions that are shorter share it
/// with what was before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostUse {
    /// The length of the interval, in seconds.
    pub seconds: f64,
    /// The number of processors that the execution could use.
    pub processors: u32,
    /// The time for which others used these processors, in seconds of one processor.
    pub others_seconds: f64,
    /// The time for which other virtual machines had them, in seconds of one processor.
    pub stolen_seconds: f64,
    /// The time for which something on the host waited for a processor, in seconds. `None` if the kernel does not say so (PSI).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_seconds: Option<f64>,
    /// How often a processor was taken from the execution. `None` if that was not counted for it alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<u64>,
    /// The mean frequency of these processors at the beginning and at the end, in MHz. `None` if the kernel does not say so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mhz: Option<[u32; 2]>,
}

impl HostUse {
    /// The share of the processors that others had, and other virtual machines.
    pub fn share(&self) -> f64 {
        let all = self.seconds * f64::from(self.processors);
        if all > 0.0 { (self.others_seconds + self.stolen_seconds) / all } else { 0.0 }
    }

    /// Whether others had so much that it disturbs a measurement.
    pub fn is_busy(&self) -> bool {
        is_busy(self.share())
    }

    /// Says all of it in words.
    pub fn in_words(&self) -> String {
        let Self { seconds, processors, stolen_seconds, waiting_seconds, switches, mhz, .. } = self;
        let all = (seconds * f64::from(*processors)).max(f64::MIN_POSITIVE);
        let percent = |share: f64| format!("{:.0} %", share * 100.0);
        let parts = [
            Some(format!(
                "others used {} of {}",
                percent(self.share()),
                counted(*processors as usize, "processor")
            )),
            (*stolen_seconds > 0.0)
                .then(|| format!("{} was stolen", percent(stolen_seconds / all))),
            waiting_seconds.filter(|_| *seconds > 0.0).map(|it| {
                format!("something waited for one {} of the time", percent(it / seconds))
            }),
            switches.map(|it| format!("it lost one {}", counted(it as usize, "time"))),
            mhz.map(|[begin, end]| format!("{begin} to {end} MHz")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// How many measurements were disturbed by others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DisturbedCalls {
    /// The measurements during which others used the processors.
    pub disturbed: usize,
    /// The measurements whose records say whether others did.
    pub known: usize,
}

impl DisturbedCalls {
    /// Counts measurements by the shares of the processors that others had.
    pub fn count(shares: impl IntoIterator<Item = f64>) -> Self {
        shares.into_iter().fold(Self::default(), |Self { disturbed, known }, share| Self {
            disturbed: disturbed + usize::from(is_busy(share)),
            known: known + 1,
        })
    }

    /// These and others.
    #[must_use]
    pub const fn and(self, others: Self) -> Self {
        Self { disturbed: self.disturbed + others.disturbed, known: self.known + others.known }
    }

    /// Says in words during how many measurements others used the processors; `None` if during none of them.
    pub fn in_words(self) -> Option<String> {
        let Self { disturbed, known } = self;
        let percent = (disturbed * 100).div_ceil(known.max(1));
        (disturbed > 0).then(|| {
            format!(
                "others used the processors during {percent} % of these measurements ({disturbed} of {known})"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_disturb_if_they_have_more_than_a_tenth_of_the_processors() {
        let host = |others_seconds, stolen_seconds| HostUse {
            seconds: 10.0,
            processors: 2,
            others_seconds,
            stolen_seconds,
            ..HostUse::default()
        };
        assert!(!host(2.0, 0.0).is_busy() && host(2.1, 0.0).is_busy());
        assert!(!host(1.0, 1.0).is_busy() && host(1.0, 1.1).is_busy());
        assert!(!HostUse::default().is_busy());
        let uses = [host(3.0, 0.0), host(0.0, 0.0), host(4.0, 0.0)];
        let words =
            |uses: &[HostUse]| DisturbedCalls::count(uses.iter().map(HostUse::share)).in_words();
        assert_eq!(
            words(&uses).unwrap(),
            "others used the processors during 67 % of these measurements (2 of 3)"
        );
        assert_eq!(words(&uses[1..2]), None);
        assert_eq!(words(&[]), None);
    }

    #[test]
    fn a_record_has_what_the_kernel_says() {
        let quiet = HostUse { seconds: 0.5, processors: 1, ..HostUse::default() };
        assert_eq!(quiet.in_words(), "others used 0 % of 1 processor");
        let busy = HostUse {
            others_seconds: 0.2,
            stolen_seconds: 0.01,
            waiting_seconds: Some(0.3),
            switches: Some(2),
            mhz: Some([3000, 2900]),
            ..quiet
        };
        let words = "others used 42 % of 1 processor, 2 % was stolen, something waited for one 60 % of the time, it lost one 2 times, 3000 to 2900 MHz";
        assert_eq!(busy.in_words(), words);
        let text = r#"{"seconds":0.5,"processors":1,"others_seconds":0.0,"stolen_seconds":0.0}"#;
        assert_eq!(serde_json::to_string(&quiet).unwrap(), text);
        assert_eq!(serde_json::from_str::<HostUse>(text).unwrap(), quiet);
    }
}
