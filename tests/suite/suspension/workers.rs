//! Suspended calls at workers.

use rustix::process::Signal;

use super::spooling;
use crate::program::Running;

#[test]
fn a_worker_suspends_a_call_and_another_one_continues_it() {
    for isolated in [false, true] {
        let lab = spooling(&["status"]).with_storage();
        let lab = if isolated { lab.isolated() } else { lab }.commit();
        let run = |code| {
            let mut worker = lab.command("ce");
            worker.args(["worker", "--idle", "10h"]);
            worker.args((!isolated).then_some("--no-isolate")).arg("../storage");
            let worker = Running::start(&mut worker);
            worker.wait_until_it_catches(Signal::TERM);
            let ran = lab.ce_run(&["--on", "workers"]).exit(code);
            worker.signal(Signal::TERM);
            let told = worker.output();
            (ran.stderr, String::from_utf8(told.stderr).unwrap())
        };
        let (ran, worker) = run(4);
        assert!(ran.contains("2 calls: 1 suspended, 1 waiting"), "{ran}");
        assert!(worker.contains(": suspended"), "{worker}");
        assert_eq!(lab.one_suspended().1["isolated"], isolated);
        // The run asks, and no worker has anything to do.
        let (ran, worker) = run(4);
        assert!(ran.contains("one job ahead"), "{ran}");
        assert!(worker.contains("0 calls computed"), "{worker}");
        lab.finish_job();
        let (ran, _) = run(0);
        assert!(ran.contains("2 calls: 2 computed"), "{ran}");
        assert_eq!((lab.output(), lab.submitted()), ("21\n".to_owned(), 1));
        lab.is_over();
    }
}
