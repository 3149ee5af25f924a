//! Decides whether a launcher failed to start because the host has no namespaces.
//!
//! A host without namespaces refuses a named step of the launcher with a named error, every time. All other failures
//! are temporary: processes, memory or descriptors are used up, or the launcher was killed. If one of these counted as
//! an answer, an isolated computation could turn isolation off for the next run.

use std::fs;
use std::io;
use std::path::Path;

use rustix::io::Errno;

use super::SandboxError;

/// The errors of a kernel that lacks a feature, or does not allow it.
const REFUSALS: [Errno; 4] = [Errno::PERM, Errno::ACCESS, Errno::NOSYS, Errno::INVAL];

/// The step that makes namespaces.
const CREATE: &str = "create namespaces";

/// The steps that a host without namespaces refuses: steps that create or enter namespaces, mount, or change the root. A
/// kernel without filters is not a reason to isolate nothing.
const STEPS: [&str; 12] = [
    CREATE,
    "enter namespaces",
    "enter the namespace of users",
    "change the name of the host",
    "start the loopback device",
    "make private the mounts below",
    "mount memory on",
    "mount",
    "bind",
    "restrict",
    "cover",
    "take as root",
];

/// The files that make a process the root of its user namespace.
const USER_MAPS: [&str; 3] = ["/proc/self/setgroups", "/proc/self/uid_map", "/proc/self/gid_map"];

/// The limits of the kinds of namespaces that a launcher makes.
const LIMITS: [&str; 6] = ["user", "mnt", "uts", "net", "pid", "ipc"];

/// Whether an error shows that the kernel has no namespaces, or does not allow them. A kernel whose namespaces are used up for now does
/// have them, unless its limit is zero.
pub(super) fn is_refusal(error: &io::Error) -> bool {
    refuses(error.raw_os_error(), is_limit_zero)
}

fn refuses(error: Option<i32>, is_limit_zero: impl FnOnce() -> bool) -> bool {
    match error.map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC) => is_limit_zero(),
        Some(error) => REFUSALS.contains(&error),
        None => false,
    }
}

/// Whether this process may make no namespaces of some kind that launchers need.
fn is_limit_zero() -> bool {
    LIMITS.iter().any(|kind| {
        let limit = fs::read_to_string(format!("/proc/sys/user/max_{kind}_namespaces"));
        limit.is_ok_and(|limit| limit.trim() == "0")
    })
}

/// Whether the reason why a launcher has not started is that the host has no namespaces.
pub(super) fn lacks_namespaces(failed: &SandboxError) -> bool {
    match failed {
        SandboxError::Step { doing, path, source } => {
            is_answer(doing, path, source.raw_os_error(), is_limit_zero)
        }
        SandboxError::Lost(_) => false,
    }
}

fn is_answer(
    doing: &str,
    path: &Path,
    error: Option<i32>,
    is_limit_zero: impl FnOnce() -> bool,
) -> bool {
    let is_named =
        STEPS.contains(&doing) || doing == "write" && USER_MAPS.iter().any(|map| path == *map);
    is_named && refuses(error, || doing == CREATE && is_limit_zero())
}

/// Whether two launchers were refused the same step for the same reason.
pub(super) fn is_same(first: &SandboxError, second: &SandboxError) -> bool {
    match (first, second) {
        (
            SandboxError::Step { doing, path, source },
            SandboxError::Step { doing: again, path: there, source: error },
        ) => doing == again && path == there && source.raw_os_error() == error.raw_os_error(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The errors that steps of a launcher may fail with.
    const ERRORS: [Errno; 13] = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::NOSYS,
        Errno::INVAL,
        Errno::AGAIN,
        Errno::MFILE,
        Errno::NFILE,
        Errno::NOMEM,
        Errno::NOSPC,
        Errno::IO,
        Errno::INTR,
        Errno::PIPE,
        Errno::CHILD,
    ];

    /// The steps in the sources of the sandbox, other than in tests.
    fn steps() -> BTreeSet<String> {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox");
        let mut steps = BTreeSet::new();
        for file in fs::read_dir(sources).unwrap() {
            let text = fs::read_to_string(file.unwrap().path()).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for part in
                text.split(" at(\"").chain(text.split("(at(\"")).chain(text.split(" step(\""))
            {
                steps.extend(part.split_once('"').map(|(step, _)| step.to_owned()));
            }
        }
        steps
    }

    #[test]
    fn only_named_steps_and_errors_mean_that_the_host_has_no_namespaces() {
        let steps = steps();
        assert!(steps.len() > 30, "{steps:?}");
        for named in STEPS {
            assert!(steps.contains(named), "no launcher has the step {named:?}");
        }
        let mut counted = [0; 2];
        for step in &steps {
            for path in ["", "/", "/tmp", "/proc", USER_MAPS[1], "/proc/self/oom_score_adj"] {
                for error in ERRORS {
                    for is_zero in [false, true] {
                        let answer =
                            is_answer(step, Path::new(path), Some(error.raw_os_error()), || {
                                is_zero
                            });
                        let is_named = STEPS.contains(&&**step)
                            || step == "write" && path == "/proc/self/uid_map";
                        let expected = match error {
                            Errno::PERM | Errno::ACCESS | Errno::NOSYS | Errno::INVAL => is_named,
                            Errno::NOSPC => step == "create namespaces" && is_zero,
                            _ => false,
                        };
                        assert_eq!(answer, expected, "{step} {path}: {error}, {is_zero}");
                        counted[usize::from(answer)] += 1;
                    }
                }
                assert!(!is_answer(step, Path::new(path), None, || true), "no error of the kernel");
            }
        }
        assert!(counted.iter().all(|count| *count > 100), "{counted:?}");
        let killed = SandboxError::Lost(io::Error::other("it was killed by signal 9"));
        assert!(!lacks_namespaces(&killed) && !lacks_namespaces(&SandboxError::garbled()));
        let lost = SandboxError::Lost(io::Error::from_raw_os_error(Errno::PERM.raw_os_error()));
        assert!(!lacks_namespaces(&lost), "a launcher that cannot be executed says nothing");
    }

    #[test]
    fn the_same_answer_has_the_same_step_path_and_error() {
        let step = |doing: &str, path: &str, error: Errno| SandboxError::Step {
            doing: doing.to_owned(),
            path: path.into(),
            source: error.into(),
        };
        let first = step("mount", "/proc", Errno::PERM);
        assert!(is_same(&first, &step("mount", "/proc", Errno::PERM)));
        for other in [
            step("bind", "/proc", Errno::PERM),
            step("mount", "/dev", Errno::PERM),
            step("mount", "/proc", Errno::ACCESS),
            SandboxError::garbled(),
        ] {
            assert!(!is_same(&first, &other) && !is_same(&other, &first), "{other:?}");
        }
    }
}
