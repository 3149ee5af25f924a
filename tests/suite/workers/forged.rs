//! Messages between a run and its workers that others have written or changed: any user with write permission in the
//! storage can do that.

use std::fs;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::{QUEUED, SUM};
use crate::lab::Lab;
use crate::program::{PATIENCE, Ran, Running};

const ONE: &str = "Inputs: 'x', 'y'\n(mul INPUT('x') INPUT('y'))[0]";

/// The files of the storage with this part in their paths, once there are any.
fn await_files(lab: &Lab, part: &str) -> Vec<PathBuf> {
    let began = Instant::now();
    loop {
        let names = lab.storage().into_iter().filter(|name| name.contains(part));
        let files: Vec<PathBuf> = names.map(|name| lab.path("storage").join(name)).collect();
        if !files.is_empty() {
            return files;
        }
        assert!(began.elapsed() < PATIENCE, "no {part}");
        thread::sleep(Duration::from_millis(2));
    }
}

/// Ends a run that waits, and returns its messages.
fn end(lab: &Lab, run: Running) -> Ran<'_> {
    run.signal(Signal::INT);
    Ran::new(lab, run.output())
}

/// What somebody makes of the text of a ticket.
type Change<'a> = &'a dyn Fn(&str) -> String;

#[test]
fn a_ticket_that_somebody_has_written_or_changed_is_not_executed() {
    let changed = "was not written with a key of this worker, or was changed";
    let older = "its ticket was written by another version of compeval";
    let cut = |text: &str| text.split_once('{').map(|(_, json)| format!("{{{json}")).unwrap();
    let changes: [(&str, Change<'_>); 5] = [
        (changed, &|text| text.replace("\"isolated\":false", "\"isolated\":true")),
        (changed, &|text| text.replacen(" 1", " 9", 1)),
        (changed, &|text| format!("{}{}", if text.starts_with('0') { 1 } else { 0 }, &text[1..])),
        (older, &|text| cut(text)),
        (older, &|_| "nothing".to_owned()),
    ];
    for (why, change) in changes {
        let lab = Lab::task(ONE).with_storage().commit();
        let run = Running::start(&mut lab.evaluation(QUEUED));
        let [ticket] = &await_files(&lab, "/queue/cpus=1/")[..] else { panic!("one call") };
        let text = fs::read_to_string(ticket).unwrap();
        assert_ne!(change(&text), text);
        fs::write(ticket, change(&text)).unwrap();
        let worker = lab.serve(&["--no-isolate"]);
        let ran = Ran::new(&lab, run.output()).exit(3).says(why);
        assert_eq!(ran.stdout.matches("computed").count(), 0, "{}", ran.stdout);
        let told = lab.dismiss(worker).stderr;
        assert_eq!(told.matches("warning: not executed").count(), usize::from(why == changed));
        assert!(lab.called().is_empty(), "{told}");
    }
}

#[test]
fn a_ticket_belongs_to_one_run_and_number() {
    let wait = r#"while [ ! -e "$LAB_GATE" ]; do sleep 0.01; done; cp "$1" "$2""#;
    let lab =
        Lab::task("Inputs: 'x', 'y'\n(add (wait INPUT('x'))[0] (mul INPUT('x') INPUT('y'))[0])[0]");
    let lab = lab.computation("wait", "x", "y", wait).with_storage().commit();
    let run = Running::start(&mut lab.evaluation(QUEUED));
    let began = Instant::now();
    let tickets = loop {
        let tickets = await_files(&lab, "/queue/cpus=1/");
        if tickets.len() == 2 {
            break tickets;
        }
        assert!(began.elapsed() < PATIENCE);
    };
    let text = |name: &str| {
        let texts = tickets.iter().map(|it| (it, fs::read_to_string(it).unwrap()));
        texts
            .filter(|(_, text)| text.contains(name))
            .map(|(path, text)| (path.clone(), text))
            .next()
    };
    let (place, product) = text("\"mul\"").unwrap();
    // A second copy, under a number that no call has.
    fs::write(place.with_file_name("77"), &product).unwrap();
    let mut worker = lab.worker(&["--no-isolate", "-j1"]);
    let worker = Running::start(worker.env("LAB_GATE", lab.path("gate")));
    // The same ticket once more, after it was answered: one call at a time is executed.
    if place.exists() {
        fs::write(lab.path("gate"), "").unwrap();
    }
    await_files(&lab, "c_mul/");
    let began = Instant::now();
    while place.exists() && began.elapsed() < PATIENCE {
        thread::yield_now();
    }
    fs::write(lab.path("again"), &product).unwrap();
    drop(fs::rename(lab.path("again"), &place));
    fs::write(lab.path("gate"), "").unwrap();
    Ran::new(&lab, run.output()).exit(0);
    let told = lab.dismiss(worker).stderr;
    assert!(
        told.contains("/77 was not written with a key") || told.contains("executed already"),
        "{told}"
    );
    assert_eq!(lab.called().iter().filter(|name| *name == "mul").count(), 1);
}

#[test]
fn an_answer_without_the_key_is_ignored() {
    let lab = Lab::task(ONE).with_storage().commit();
    let run = Running::start(&mut lab.evaluation(QUEUED));
    let [ticket] = &await_files(&lab, "/queue/cpus=1/")[..] else { panic!("one call") };
    let own = ticket.ancestors().nth(3).unwrap();
    let stranger = own.file_name().unwrap();
    let line = format!("\n{} {{\"ticket\":1,\"end\":{{\"lost\":\"it\"}}}}\n", "0".repeat(64));
    fs::write(own.join("answers").join(stranger), line).unwrap();
    // A claim that no worker has signed keeps nobody from the ticket.
    let claims = own.join("claims").join(stranger);
    fs::create_dir(&claims).unwrap();
    fs::rename(ticket, claims.join("1")).unwrap();
    let worker = lab.serve(&["--no-isolate"]);
    let ran = Ran::new(&lab, run.output())
        .exit(0)
        .says("are ignored: its key differs from the key of this run");
    assert_eq!(ran.stderr.matches("warning: answers of the worker").count(), 1, "{}", ran.stderr);
    lab.dismiss(worker);
    assert_eq!(lab.called(), ["mul"]);
}

#[test]
fn a_run_and_its_workers_have_one_key() {
    let lab = Lab::task(SUM).with_storage().commit();
    let keys = ["one", "other"].map(|name| lab.path(name).to_str().unwrap().to_owned());
    let [one, other] = &keys;
    let queued = [QUEUED, &["--key", one]].concat();
    let run = Running::start(&mut lab.evaluation(&queued));
    await_files(&lab, "/queue/cpus=1/");
    let worker = lab.serve(&["--no-isolate", "--key", other]);
    await_files(&lab, "/answers/");
    let ran = end(&lab, run).exit(130).says("give both the same --key FILE");
    assert!(lab.called().is_empty(), "{}", ran.stderr);
    lab.dismiss(worker).says("give the run and this worker the same --key FILE");
    let worker = lab.serve(&["--no-isolate", "--key", other, "--key", one]);
    lab.ce_run(&queued).exit(0).says("3 calls: 3 computed");
    lab.dismiss(worker);
    // Without the options, both have the user's own.
    let lab = lab.data("x", "8\n");
    lab.ce_run_on_worker(&[]).exit(0).says("3 calls: 3 computed");
    assert!(lab.path("home/.local/state/compeval/key").exists());
    // A key that others can read does not count.
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(one, fs::Permissions::from_mode(0o644)).unwrap();
    lab.ce_run(&queued).exit(2).says("must be for its owner alone").says("chmod go=");
}
