//! File systems of a test's own, mounted over its storage: real ones, with real limits.
//!
//! They need a user namespace, which not every host allows; what cannot be tried is reported.

use std::ffi::OsStr;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use super::lab::Lab;
use super::needs;
use super::program::Ran;

/// Runs a program after a shell has mounted something over `../storage`, where nobody else sees it; `None` where that is
/// impossible. Afterwards `storage/` has its earlier files.
pub(crate) fn with<'a>(lab: &'a Lab, mount: &str, program: &Command) -> Option<Ran<'a>> {
    if !is_possible() {
        needs::lacks("user namespaces in which file systems can be mounted");
        return None;
    }
    let script = format!(
        "mkdir -p ../storage && {mount} && {{ \"$@\"; code=$?; cp -a ../storage ../after && \
         exit $code; }}; exit 99"
    );
    let mut namespace = Command::new("unshare");
    namespace.args(["-rm", "sh", "-c", &script, "sh"]).arg(program.get_program());
    namespace.args(program.get_args()).current_dir(lab.path("task")).env_clear();
    let set = |(name, value): (&OsStr, Option<&OsStr>)| Some((name.to_owned(), value?.to_owned()));
    namespace.envs(program.get_envs().filter_map(set));
    namespace.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let ran = lab.finish(&mut namespace);
    std::fs::remove_dir_all(lab.path("storage")).unwrap();
    std::fs::rename(lab.path("after"), lab.path("storage")).unwrap();
    Some(ran)
}

fn is_possible() -> bool {
    static POSSIBLE: OnceLock<bool> = OnceLock::new();
    *POSSIBLE.get_or_init(|| {
        let mount = "mount -t tmpfs tmpfs /tmp && mount --bind /tmp /tmp";
        let probe = ["-rm", "sh", "-c", mount].map(OsStr::new);
        let status = Command::new("unshare").args(probe).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    })
}
