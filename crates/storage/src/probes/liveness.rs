//! Whether a run can tell that another one has died.

use super::ProbeSite;
use crate::store::run::{LEASE_TIMEOUT, OwnRun, Signs};
use ce_model::diagnosis::Diagnosis;

/// Default names of hosts.
const NAMELESS: [&str; 4] = ["", "(none)", "localhost", "localhost.localdomain"];

/// Probes whether runs on this host can tell that another one has died.
pub(super) fn processes(_: &ProbeSite) -> Diagnosis {
    diagnose(&OwnRun::new().signs())
}

fn diagnose(signs: &Signs) -> Diagnosis {
    let probe = "processes";
    let host = &signs.host;
    if !signs.boot || !signs.namespace {
        let missing = if signs.boot { "process namespace" } else { "boot id" };
        let found = Diagnosis::ok(probe, format!("the {missing} of {host} cannot be read"));
        let silence = LEASE_TIMEOUT.as_secs();
        return found
            .note(format!(
                "leases of a run that died here are taken over after {silence} seconds, not at once, \
                 and no run removes its leftovers in tmp/"
            ))
            .hint("mount /proc");
    }
    if !signs.sees_the_living || !signs.misses_the_dead {
        let found = Diagnosis::ok(probe, "it is not known whether a process is alive");
        let silence = LEASE_TIMEOUT.as_secs();
        return found.note(format!(
            "leases of a dead run are taken over after {silence} seconds, not at once"
        ));
    }
    if NAMELESS.contains(&host.as_str()) {
        let found = Diagnosis::ok(probe, format!("the name of this host is \"{host}\""));
        return found
            .note(
                "a run that waits shows this name, and another host that shares \
                 the storage may have it, too",
            )
            .hint("give each host that shares the storage a name of its own");
    }
    Diagnosis::ok(probe, format!("leases of a run that dies on {host} are taken over at once"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::summary;
    use super::*;
    use ce_model::diagnosis::Grade;

    fn signs() -> Signs {
        let host = "anna".to_owned();
        Signs { host, boot: true, namespace: true, sees_the_living: true, misses_the_dead: true }
    }

    #[test]
    fn what_runs_cannot_know_of_each_other_is_told() {
        assert_eq!(diagnose(&signs()).grade(), None);
        for blind in [Signs { boot: false, ..signs() }, Signs { namespace: false, ..signs() }] {
            let (grade, text) = summary(&diagnose(&blind));
            assert_eq!(grade, Some(Grade::Note));
            assert!(text.contains("no run removes its leftovers"), "{text}");
        }
        let (grade, text) = summary(&diagnose(&Signs { misses_the_dead: false, ..signs() }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("after 60 seconds"), "{text}");
        let (grade, text) = summary(&diagnose(&Signs { host: "localhost".to_owned(), ..signs() }));
        assert_eq!(grade, Some(Grade::Note));
        assert!(text.contains("may have it, too"), "{text}");
    }
}
