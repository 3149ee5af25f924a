//! Probes of what this host does to measurements, and of what it lets one know of that. They only read.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use ce_model::host_use::HostUse;
use ce_model::humanize::counted;
use ce_model::probe_diagnosis::Diagnosis;

use crate::local::{HostSample, usable_processors};

/// How long the processors are watched.
const WATCHED: Duration = Duration::from_millis(200);

/// The share of stolen time that is worth a note.
const STOLEN: f64 = 0.001;

/// Looks at what this host does to measurements.
pub fn measuring() -> impl Iterator<Item = Diagnosis> {
    std::iter::once_with(|| {
        let before = HostSample::now();
        thread::sleep(WATCHED);
        let now = HostSample::now();
        let processors = usable_processors();
        let used = before
            .zip(now.as_ref())
            .map(|(before, now)| now.used_by_others_since(&before, processors.as_deref()));
        diagnose(Path::new("/"), now.as_ref(), used)
    })
    .flatten()
}

fn read(root: &Path, path: &str) -> Option<String> {
    Some(fs::read_to_string(root.join(path)).ok()?.trim().to_owned())
}

/// The findings of a host whose files are below `root`, given what it has done since it was started, and what others use now.
fn diagnose(root: &Path, now: Option<&HostSample>, used: Option<HostUse>) -> Vec<Diagnosis> {
    vec![
        processors(root),
        frequency(root),
        stolen_time(root, now),
        pressure(root),
        neighbours(used),
    ]
}

fn processors(root: &Path) -> Diagnosis {
    let name = "processors";
    let online = read(root, "sys/devices/system/cpu/online").unwrap_or_default();
    match read(root, "sys/devices/system/cpu/smt/active").as_deref() {
        Some("1") => Diagnosis::ok(name, format!("{online} are online, and share cores (SMT)"))
            .note("two calls on one core slow each other down, also if each has a processor of its own")
            .hint("ask for exclusive, or turn it off while you measure: echo off > /sys/devices/system/cpu/smt/control, as root"),
        Some(_) => Diagnosis::ok(name, format!("{online} are online, each with a core of its own")),
        None => Diagnosis::ok(name, format!("{online} are online; the kernel does not say whether they share cores")),
    }
}

fn frequency(root: &Path) -> Diagnosis {
    let name = "frequency";
    let governor = read(root, "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    let is = |path: &str, text: &str| read(root, path).is_some_and(|it| it == text);
    let has_turbo = is("sys/devices/system/cpu/cpufreq/boost", "1")
        || is("sys/devices/system/cpu/intel_pstate/no_turbo", "0");
    let means = "the same work takes longer or less long, as the load before it was";
    match (governor.as_deref(), has_turbo) {
        (None, _) => Diagnosis::ok(name, "is not told by the kernel, as in most virtual machines"),
        (Some("performance"), false) => Diagnosis::ok(name, "is the same for all loads"),
        (Some("performance"), true) => Diagnosis::ok(name, "is higher while few processors are busy")
            .note(means)
            .hint("turn turbo off while you measure: echo 0 > /sys/devices/system/cpu/cpufreq/boost, as root; with intel_pstate, echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo"),
        (Some(governor), _) => Diagnosis::ok(name, format!("follows the load (governor {governor})"))
            .note(means)
            .hint("set it while you measure: cpupower frequency-set -g performance, as root"),
    }
}

fn stolen_time(root: &Path, now: Option<&HostSample>) -> Diagnosis {
    let name = "stolen time";
    let Some(now) = now else { return Diagnosis::ok(name, "is not told by the kernel") };
    let stolen = now.all.share_stolen();
    let is_virtual = read(root, "proc/cpuinfo").is_some_and(|text| text.contains(" hypervisor"));
    let share = format!("{:.2} % since the host was started", stolen * 100.0);
    match (is_virtual, stolen > STOLEN) {
        (_, true) => Diagnosis::ok(name, share)
            .note("other virtual machines have used processors that this one had: its measurements have their noise")
            .hint("measure on a host of your own, or more often: replicates until ± the precision that you need"),
        (true, false) => Diagnosis::ok(name, format!("{share}: this is a virtual machine")),
        (false, false) => Diagnosis::ok(name, share),
    }
}

fn pressure(root: &Path) -> Diagnosis {
    let name = "pressure";
    match read(root, "proc/pressure/cpu") {
        Some(_) => Diagnosis::ok(name, "is told by the kernel (PSI)"),
        None => Diagnosis::ok(name, "is not told by the kernel (PSI)")
            .note("nobody knows how long programs waited for processors")
            .hint("start the kernel with psi=1"),
    }
}

fn neighbours(used: Option<HostUse>) -> Diagnosis {
    let name = "neighbours";
    let Some(used) = used else { return Diagnosis::ok(name, "are not told by the kernel") };
    let watched = counted(WATCHED.as_millis() as usize, "millisecond");
    let found = format!("use {:.0} % of the processors, over {watched}", used.share() * 100.0);
    match used.is_busy() {
        true => Diagnosis::ok(name, found)
            .note("what is measured beside other programs takes longer, and not always as long")
            .hint("end them, or measure when they have ended: top shows them"),
        false => Diagnosis::ok(name, found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The findings of a host with these files, and a share of whose processors others use: the names of probes with trouble, and what
    /// was found.
    fn found(files: &[(&str, &str)], share: Option<f64>) -> Vec<(bool, String)> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let used = |others_seconds| HostUse {
            seconds: 1.0,
            processors: 1,
            others_seconds,
            ..HostUse::default()
        };
        let sample = HostSample::read(root.path());
        let found = diagnose(root.path(), sample.as_ref(), share.map(used));
        found
            .into_iter()
            .map(|it| (it.trouble.is_some(), format!("{} {}", it.probe, it.found)))
            .collect()
    }

    #[test]
    fn a_quiet_host_has_no_trouble() {
        let files = [
            ("sys/devices/system/cpu/online", "0-7\n"),
            ("sys/devices/system/cpu/smt/active", "0\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n"),
            ("proc/stat", "cpu  100 0 100 10000 0 0 0 0 0 0\n"),
            ("proc/cpuinfo", "flags : fpu vme\n"),
            ("proc/pressure/cpu", "some avg10=0.00\n"),
        ];
        let expected = [
            "processors 0-7 are online, each with a core of its own",
            "frequency is the same for all loads",
            "stolen time 0.00 % since the host was started",
            "pressure is told by the kernel (PSI)",
            "neighbours use 1 % of the processors, over 200 milliseconds",
        ];
        let found = found(&files, Some(0.01));
        assert_eq!(found, expected.map(|text| (false, text.to_owned())));
    }

    #[test]
    fn what_disturbs_measurements_is_noted() {
        let files = [
            ("sys/devices/system/cpu/online", "0-3\n"),
            ("sys/devices/system/cpu/smt/active", "1\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n"),
            ("proc/stat", "cpu  150 10 90 1000 50 0 0 100 0 0\n"),
            ("proc/cpuinfo", "flags : fpu hypervisor lahf\n"),
        ];
        let expected = [
            "processors 0-3 are online, and share cores (SMT)",
            "frequency follows the load (governor powersave)",
            "stolen time 7.14 % since the host was started",
            "pressure is not told by the kernel (PSI)",
            "neighbours use 50 % of the processors, over 200 milliseconds",
        ];
        let found = found(&files, Some(0.5));
        assert_eq!(found, expected.map(|text| (true, text.to_owned())));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_told() {
        let found = found(&[], None);
        assert!(found.iter().all(|(_, text)| text.contains("not")), "{found:?}");
        assert_eq!(found.iter().filter(|(is_trouble, _)| *is_trouble).count(), 1);
    }
}
