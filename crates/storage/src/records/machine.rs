//! The machine that executes calls: its processors, memory and kernel, in a line for people.

use std::fs;
use std::sync::OnceLock;

use ce_model::humanize::{counted, size};

/// The file in which a machine describes its processors.
const PROCESSORS: &str = "/proc/cpuinfo";

/// The file that names the governor of the frequency of the first one.
const GOVERNOR: &str = "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor";

/// The fields of [`PROCESSORS`] that name a model. Architectures differ in what they have.
const MODELS: [&str; 3] = ["model name", "Model", "cpu"];

/// The longest description, in characters.
const MOST: usize = 200;

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
        described(&read(PROCESSORS), memory, &kernel, &read(GOVERNOR))
    })
}

/// The description, of what these files contain.
fn described(processors: &str, memory: u64, kernel: &str, governor: &str) -> String {
    let fields = || processors.lines().filter_map(|line| line.split_once(':'));
    let model =
        fields().find(|(name, value)| MODELS.contains(&name.trim()) && !value.trim().is_empty());
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
    words.join(" ").chars().filter(|c| !c.is_control()).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_described_in_one_line() {
        let processors = "processor\t: 0\nmodel name\t: Some  CPU @ 2.40GHz\n\n\
                          processor\t: 1\nmodel name\t: Some  CPU @ 2.40GHz\n";
        assert_eq!(
            described(processors, 16 << 30, "Linux 6.1.0", "performance\n"),
            "Some CPU @ 2.40GHz, 2 CPUs, 16.0 GiB, Linux 6.1.0, performance governor"
        );
        assert_eq!(described("", 0, "Linux 6.1.0", ""), "Linux 6.1.0");
        assert_eq!(described("processor: 0\ncpu: POWER9\n", 0, "L", ""), "POWER9, 1 CPU, L");
        assert_eq!(described("", 0, &"x".repeat(300), "").len(), MOST);
        let here = machine();
        assert!(here.contains("Linux ") && !here.contains('\n'), "{here}");
    }
}
