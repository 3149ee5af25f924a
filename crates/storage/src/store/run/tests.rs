//! Tests of runs: their names, and who of them lives.

use std::thread::ScopedJoinHandle;

use super::*;

/// Reaches everything on this host.
fn disk() -> Disk {
    Disk::open(Path::new("/")).unwrap()
}

#[test]
fn a_name_reads_as_it_was_written() {
    let own = own_name();
    assert_eq!(own.to_string().parse(), Ok(own));
    assert_eq!("a-b".parse::<RunName>(), Err(()));
    assert_eq!("a-b-c-d-e".parse::<RunName>(), Err(()));
    assert!("a-b-c-1-e".parse::<RunName>().is_ok());
    for outside in ["../../a-b-c-1-e", "/a-b-c-1-e", "a-b-c-1-e/..", "a\0-b-c-1-e"] {
        assert_eq!(outside.parse::<RunName>(), Err(()), "{outside}");
    }
}

#[test]
fn no_two_runs_of_a_process_have_the_same_name() {
    let many = || -> Vec<String> { (0..1000).map(|_| own_name().to_string()).collect() };
    let threads =
        thread::scope(|scope| [(); 4].map(|()| scope.spawn(many)).map(ScopedJoinHandle::join));
    let names: Vec<String> = threads.into_iter().flat_map(Result::unwrap).collect();
    let different: HashSet<&String> = names.iter().collect();
    assert_eq!(different.len(), names.len());
}

#[test]
fn only_the_dead_of_this_host_are_over() {
    let run = OwnRun::new();
    let own = run.name().clone();
    assert!(!run.is_over(&own));
    let gone = RunName { process: i32::MAX as u32, ..own.clone() };
    assert!(run.is_over(&gone));
    assert!(!run.is_over(&RunName { host: "elsewhere".into(), ..gone.clone() }));
    assert!(!run.is_over(&RunName { namespace: "1".into(), ..gone }));
    let earlier = RunName { boot: "00000000".into(), ..own.clone() };
    assert!(!run.is_over(&earlier) && run.may_precede(&earlier) && !run.may_precede(&own));
    assert!(!run.may_precede(&RunName { host: "elsewhere".into(), ..earlier }));
}

#[test]
fn what_is_not_known_never_counts_as_equal() {
    let whole = OwnRun::new();
    let gone = RunName { process: i32::MAX as u32, ..whole.name().clone() };
    let directory = tempfile::tempdir().unwrap();
    write_heartbeat(&disk(), directory.path(), 0);
    for (boot, namespace) in [("", "1"), ("1", ""), ("", "")].map(|(b, n)| (b.into(), n.into())) {
        let other = RunName { boot, namespace, ..gone.clone() };
        let own = OwnRun { name: other.clone(), ..OwnRun::new() };
        for (run, other) in [(&own, &other), (&whole, &other), (&own, &gone)] {
            assert!(
                !run.is_over(other) && run.is_alive(other, &disk(), directory.path()),
                "{other}"
            );
            let known = [run.name(), other].iter().all(|name| !name.boot.is_empty());
            assert_eq!(run.may_precede(other), known && run.name.boot != other.boot);
        }
    }
}

#[test]
fn a_heartbeat_is_timed_out_that_was_written_long_before_another() {
    let [theirs, own] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let disk = disk();
    write_heartbeat(&disk, own.path(), 0);
    write_heartbeat(&disk, theirs.path(), 0);
    let now = SystemTime::now();
    for (after, silent) in [(LEASE_TIMEOUT / 2, false), (LEASE_TIMEOUT * 2, true)] {
        for (late, other) in [(own.path(), theirs.path()), (theirs.path(), own.path())] {
            set_beat(other, now);
            set_beat(late, now + after);
            assert_eq!(is_timed_out(&disk, other, late), silent);
            assert!(!is_timed_out(&disk, late, other), "a clock that went back");
        }
    }
    fs::remove_file(heartbeat_file(theirs.path())).unwrap();
    assert!(!is_timed_out(&disk, theirs.path(), own.path()), "its directory has a time, too");
}

fn set_beat(directory: &Path, time: SystemTime) {
    fs::File::open(heartbeat_file(directory)).unwrap().set_modified(time).unwrap();
}

#[test]
fn what_clock_another_host_has_is_all_the_same() {
    let year = Duration::from_secs(365 * 86_400);
    for time in [SystemTime::now() - year, SystemTime::now() + year] {
        let run = OwnRun::new();
        let other = RunName { host: "elsewhere".into(), ..run.name().clone() };
        let directory = tempfile::tempdir().unwrap();
        let is_alive = || {
            set_beat(directory.path(), time);
            run.is_alive(&other, &disk(), directory.path())
        };
        let keep_silent = |long: Duration| {
            let since = Instant::now().checked_sub(long).unwrap();
            lock(&run.seen).get_mut(&other).unwrap().1 = since;
        };
        write_heartbeat(&disk(), directory.path(), 0);
        assert!(is_alive());
        keep_silent(LEASE_TIMEOUT / 2);
        assert!(is_alive());
        keep_silent(LEASE_TIMEOUT);
        assert!(!is_alive());
        write_heartbeat(&disk(), directory.path(), 1);
        assert!(is_alive(), "its time is the same, and it beats");
    }
}

#[test]
fn a_run_without_a_directory_is_dead_and_one_elsewhere_lives_while_it_beats() {
    let run = OwnRun::new();
    let other = RunName { host: "elsewhere".into(), ..run.name().clone() };
    assert!(!run.is_alive(&other, &disk(), Path::new("/nowhere/at/all")));
    let directory = tempfile::tempdir().unwrap();
    write_heartbeat(&disk(), directory.path(), 0);
    assert!(run.is_alive(&other, &disk(), directory.path()));
    let long_ago = Instant::now().checked_sub(LEASE_TIMEOUT).unwrap();
    lock(&run.seen).get_mut(&other).unwrap().1 = long_ago;
    assert!(!run.is_alive(&other, &disk(), directory.path()));
    write_heartbeat(&disk(), directory.path(), 1);
    assert!(run.is_alive(&other, &disk(), directory.path()));
}
