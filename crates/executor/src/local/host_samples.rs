//! Samples of the processors of this host: the kernel's counters of their use.
//!
//! The kernel counts in ticks of a hundredth of a second, so the difference of two samples says nothing about a few of them.

use std::path::Path;
use std::time::{Duration, Instant};
use std::{env, fs};

use ce_model::host_use::HostUse;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, getpid};
use rustix::thread::{CpuSet, sched_getaffinity};

use crate::process_tree::processes;

/// The times of a processor since the host was started, in ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProcessorTimes {
    /// The time in which programs and the kernel ran.
    busy: u64,
    /// The time in which nothing was to be done.
    idle: u64,
    /// The time that other virtual machines had.
    stolen: u64,
}

impl ProcessorTimes {
    /// Reads the words behind the name of a line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal, and others, which
    /// the first two have, too.
    fn parse(words: &str) -> Option<Self> {
        let times = words.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let [user, nice, system, idle, waiting, irq, soft_irq, stolen] =
            times.take(8).collect::<Vec<_>>().try_into().ok()?;
        let busy = user + nice + system + irq + soft_irq;
        Some(Self { busy, idle: idle + waiting, stolen })
    }

    /// The share of stolen time.
    pub(crate) fn share_stolen(self) -> f64 {
        let all = (self.busy + self.idle + self.stolen).max(1);
        self.stolen as f64 / all as f64
    }
}

/// The counters of the processors of a host at a time.
#[derive(Clone, Debug)]
pub(crate) struct HostSample {
    pub(crate) at: Instant,
    /// The sum over all processors.
    pub(crate) all: ProcessorTimes,
    /// Each processor that is online, by its number.
    processors: Vec<(usize, ProcessorTimes)>,
    /// The frequencies of processors in MHz, by their numbers, as far as the kernel says so.
    mhz: Vec<(usize, u32)>,
    /// For how long something waited for a processor, if the kernel says so.
    waiting: Option<Duration>,
    /// The ticks that this process and all that it has started have used.
    own: u64,
}

impl HostSample {
    /// Takes a sample. `None` if the kernel says nothing of its processors. A build with debug assertions obeys `CE_HOST`, a directory with
    /// other files of a host.
    pub(crate) fn now() -> Option<Self> {
        let told = if cfg!(debug_assertions) { env::var_os("CE_HOST") } else { None };
        let sample = Self::read(Path::new(&told.unwrap_or_else(|| "/".into())))?;
        Some(Self { own: used_below(getpid()), ..sample })
    }

    /// Reads the files of a host below `root`, but nothing of this process.
    pub(crate) fn read(root: &Path) -> Option<Self> {
        let at = Instant::now();
        let read = |path: &str| fs::read_to_string(root.join(path)).ok();
        let text = read("proc/stat")?;
        let mut all = None;
        let mut processors = Vec::new();
        for line in text.lines().map_while(|line| line.strip_prefix("cpu")) {
            let (number, words) = line.split_once(' ')?;
            let times = ProcessorTimes::parse(words)?;
            match number.parse() {
                Ok(number) => processors.push((number, times)),
                Err(_) => all = Some(times),
            }
        }
        let mhz = processors.iter().map_while(|(number, _)| {
            let path = format!("sys/devices/system/cpu/cpu{number}/cpufreq/scaling_cur_freq");
            let khz: u32 = read(&path)?.trim().parse().ok()?;
            Some((*number, khz / 1000))
        });
        let mhz = mhz.collect();
        let waiting = read("proc/pressure/cpu").as_deref().and_then(waiting);
        Some(Self { at, all: all?, processors, mhz, waiting, own: 0 })
    }

    /// This sample, which comes after an earlier one: what a process has used is missing while it ends, and never less than before.
    pub(crate) fn after(self, earlier: &Self) -> Self {
        Self { own: self.own.max(earlier.own), ..self }
    }

    /// Returns the use of some processors by others than this process since an earlier sample. Without a list, they are all that are online.
    pub(crate) fn used_by_others_since(&self, earlier: &Self, of: Option<&[usize]>) -> HostUse {
        let [before, now] = [earlier, self].map(|sample| sample.times(of));
        let own = self.own.saturating_sub(earlier.own);
        let busy = now.busy.saturating_sub(before.busy);
        let waiting = self.waiting.zip(earlier.waiting);
        HostUse {
            seconds: self.at.duration_since(earlier.at).as_secs_f64(),
            processors: self.processors.iter().filter(|it| is_among(of, it.0)).count() as u32,
            others_seconds: in_seconds(busy.saturating_sub(own)),
            stolen_seconds: in_seconds(now.stolen.saturating_sub(before.stolen)),
            waiting_seconds: waiting.map(|(now, then)| now.saturating_sub(then).as_secs_f64()),
            switches: None,
            mhz: earlier.mean_mhz(of).zip(self.mean_mhz(of)).map(<[u32; 2]>::from),
        }
    }

    /// The sum of the times of some processors.
    fn times(&self, of: Option<&[usize]>) -> ProcessorTimes {
        let mut sum = ProcessorTimes::default();
        for (_, times) in self.processors.iter().filter(|it| is_among(of, it.0)) {
            sum.busy += times.busy;
            sum.idle += times.idle;
            sum.stolen += times.stolen;
        }
        sum
    }

    /// The mean frequency of some processors in MHz, if it is known of one.
    fn mean_mhz(&self, of: Option<&[usize]>) -> Option<u32> {
        let known = self.mhz.iter().filter(|it| is_among(of, it.0));
        let known: Vec<u32> = known.map(|(_, mhz)| *mhz).collect();
        known.iter().sum::<u32>().checked_div(known.len() as u32)
    }
}

/// Whether a processor is one of some, or of all if there is no list.
fn is_among(of: Option<&[usize]>, number: usize) -> bool {
    of.is_none_or(|numbers| numbers.contains(&number))
}

/// A number of ticks, in seconds.
fn in_seconds(ticks: u64) -> f64 {
    ticks as f64 / clock_ticks_per_second() as f64
}

/// The processors that this thread may use. `None` if the kernel does not say so.
pub(crate) fn usable_processors() -> Option<Vec<usize>> {
    let set = sched_getaffinity(None).ok()?;
    Some((0..CpuSet::MAX_CPU).filter(|number| set.is_set(*number)).collect())
}

/// Reads for how long something waited for a processor, of the kernel's file on that.
fn waiting(text: &str) -> Option<Duration> {
    let line = text.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = line.split_whitespace().find_map(|word| word.strip_prefix("total="))?;
    Some(Duration::from_micros(total.parse().ok()?))
}

/// The ticks that a process, all that it has started and all that these have waited for have used.
fn used_below(root: Pid) -> u64 {
    let used = |process: Pid| {
        let path = format!("/proc/{}/stat", process.as_raw_nonzero());
        used_ticks(&fs::read_to_string(path).unwrap_or_default()).unwrap_or(0)
    };
    // A process that ends meanwhile is in the times of its parent later, so it must not be there already.
    let root_used = used(root);
    root_used + processes(root).into_iter().map(used).sum::<u64>()
}

/// The ticks that a process and the children that it has waited for have used, from its file `stat`.
fn used_ticks(text: &str) -> Option<u64> {
    // The name of the program before may have blanks and parentheses.
    let (_, fields) = text.rsplit_once(')')?;
    let times = fields.split_whitespace().skip(11).take(4);
    times.map(|ticks| ticks.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> HostSample {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        HostSample::read(root.path()).unwrap()
    }

    #[test]
    fn the_difference_of_samples_is_what_others_used() {
        let earlier = host(&[
            (
                "proc/stat",
                "cpu  30 0 0 300 0 0 0 1\ncpu0 10 0 0 100 0 0 0 1\ncpu3 20 0 0 200 0 0 0 0\nintr 1\n",
            ),
            ("proc/pressure/cpu", "some avg10=0.00 total=1000000\nfull total=1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n"),
            ("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2000000\n"),
        ]);
        let later = host(&[
            (
                "proc/stat",
                "cpu  170 0 0 350 0 0 0 11\ncpu0 60 0 0 100 50 0 0 11\ncpu3 60 20 30 200 0 0 0 0\nintr 1\n",
            ),
            ("proc/pressure/cpu", "some avg10=0.00 total=1250000\nfull total=1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "2900000\n"),
            ("sys/devices/system/cpu/cpu3/cpufreq/scaling_cur_freq", "2500000\n"),
        ]);
        let later = HostSample { own: 40, at: earlier.at + Duration::from_secs(1), ..later };
        let all = HostUse {
            seconds: 1.0,
            processors: 2,
            others_seconds: 1.0,
            stolen_seconds: 0.1,
            waiting_seconds: Some(0.25),
            switches: None,
            mhz: Some([2500, 2700]),
        };
        assert_eq!(later.used_by_others_since(&earlier, None), all);
        assert_eq!(HostSample { own: 7, ..later.clone() }.after(&later).own, 40);
        let one = later.used_by_others_since(&earlier, Some(&[3, 7]));
        assert_eq!((one.processors, one.others_seconds, one.stolen_seconds), (1, 0.5, 0.0));
        assert_eq!(one.mhz, Some([2000, 2500]));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_absent() {
        let text = [("proc/stat", "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n")];
        let used = host(&text).used_by_others_since(&host(&text), None);
        assert_eq!((used.waiting_seconds, used.mhz, used.processors), (None, None, 1));
        assert_eq!(ProcessorTimes::parse(" 1 2 3"), None);
        assert!(HostSample::read(Path::new("/nowhere")).is_none());
    }

    #[test]
    fn the_time_of_a_process_has_that_of_its_children() {
        let text = "17 (a) b) (c) R 1 17 17 0 -1 4194304 100 200 0 0 5 6 70 80 20 0 1 0 100 1 1";
        assert_eq!(used_ticks(text), Some(161));
        assert_eq!(used_ticks("17 (a"), None);
        let before = used_below(getpid());
        let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", script]).status().unwrap().success());
        assert!(used_below(getpid()) > before, "a child that has ended counts");
        let sample = HostSample::now().unwrap();
        assert!(sample.all.busy > 0 && sample.all.share_stolen() < 1.0);
        assert!(!usable_processors().unwrap().is_empty());
    }
}
