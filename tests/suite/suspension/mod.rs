//! Computations that start something which goes on elsewhere: a queue that is a directory, `spool/`. A job in it is a file, which a
//! test lets be done by writing its result.

mod commits;
mod ends;
mod faults;
mod life;
mod record;
mod wait;
mod workers;

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::lab::Lab;

/// Submits a job unless that was done, and takes its result when there is one. `SPOOL` is the queue.
const EXEC: &str = r#"
job=$CE_DIRECTORY/job
if [ ! -e "$job" ]; then
    mktemp SPOOL/queued.XXXXXX > "$job.new" && mv "$job.new" "$job"
    echo submitted
    exit 75
fi
[ -e SPOOL/done ] || { echo "not done"; exit 75; }
cat SPOOL/done > "$2" && echo done"#;

/// Prints the state of a job.
const STATUS: &str = "#!/bin/sh
if [ -e SPOOL/lost ]; then echo the job is lost; exit 3; fi
[ ! -e SPOOL/done ] || exit 0
echo
echo \"one job ahead\"
exit 75
";

/// Removes a job from the queue.
const CANCEL: &str = "#!/bin/sh
rm \"$(cat \"$CE_DIRECTORY/job\")\" && echo removed
";

/// A call that suspends, and one that reads its output; they are yet to be committed.
pub(crate) fn spooling(programs: &[&str]) -> Lab {
    with_script(EXEC, programs)
}

/// The same with another `exec`.
fn with_script(exec: &str, programs: &[&str]) -> Lab {
    let lab = Lab::task("Inputs: 'x'\n(add (submit INPUT('x'))[0] INPUT('x'))[0]");
    let spool = lab.path("spool");
    fs::create_dir(&spool).unwrap();
    let spool = spool.to_str().unwrap();
    let here = |text: &str| text.replace("SPOOL", spool);
    let mut lab = lab.computation("submit", "x", "y", &here(exec));
    lab = lab.file("computations/submit/access", format!("write {spool}\nsuspend\n"));
    for (name, script) in [("status", STATUS), ("cancel", CANCEL)] {
        if programs.contains(&name) {
            let name = format!("computations/submit/{name}");
            lab = lab.file(&name, here(script)).mode(&name, 0o755);
        }
    }
    lab
}

impl Lab {
    /// Lets the job be done.
    fn finish_job(&self) {
        fs::write(self.path("spool/done.new"), "4\n").unwrap();
        fs::rename(self.path("spool/done.new"), self.path("spool/done")).unwrap();
    }

    /// Returns the number of jobs in the queue: each was submitted once.
    fn submitted(&self) -> usize {
        let entries = fs::read_dir(self.path("spool")).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("queued.")).count()
    }

    /// The places of suspended calls, relative to the storage.
    fn suspended(&self) -> Vec<String> {
        let is_state = |name: &String| name.ends_with("/state.json");
        let states = self.storage().into_iter().filter(is_state);
        states.map(|name| name.trim_end_matches("/state.json").to_owned()).collect()
    }

    /// The only suspended call: its place, and its record.
    #[track_caller]
    fn one_suspended(&self) -> (PathBuf, Value) {
        let suspended = self.suspended();
        assert_eq!(suspended.len(), 1, "{suspended:?}");
        let place = self.path("storage").join(&suspended[0]);
        let state = fs::read(place.join("state.json")).unwrap();
        (place, serde_json::from_slice(&state).unwrap())
    }

    /// Nothing is suspended any more, and nothing of that is left.
    #[track_caller]
    fn is_over(&self) {
        let left: Vec<String> =
            self.storage().into_iter().filter(|name| name.contains("suspended/")).collect();
        assert!(left.is_empty(), "{left:?}");
        self.run("ce", &["status", "../storage"]).exit(0).shows("no run is going on");
    }
}
