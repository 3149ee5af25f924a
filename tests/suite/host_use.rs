//! What others use of a host while it measures. Its kernel's files are the test's own.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::lab::Lab;
use crate::program::Ran;
use crate::records::schema;
use crate::shared::{holds, push, repository};

/// Writes the times of all processors, all of which others have used for so long.
fn write_times(host: &Path, used: Duration) {
    let ticks = used.as_millis() / 10;
    let line = |name: String| format!("cpu{name} {ticks} 0 0 1000 0 0 0 0 0 0\n");
    let lines: String = [line(" ".to_owned())]
        .into_iter()
        .chain((0..1024).map(|it| line(it.to_string())))
        .collect();
    fs::write(host.join("next"), lines).unwrap();
    fs::rename(host.join("next"), host.join("proc/stat")).unwrap();
}

#[test]
fn a_run_warns_while_others_use_its_host_and_tables_comparisons_and_pages_say_so() {
    let lab = Lab::empty();
    let done = lab.path("done");
    let script = format!(r#"until [ -e {} ]; do sleep 0.05; done; cat "$1" >"$2""#, done.display());
    let sweep = "SWEEP((measure seconds :resources 'exclusive') :over seconds '1' '2')\n";
    let lab =
        lab.file("workflow.ce", sweep).computation("measure", "seconds", "out", &script).commit();
    let host = lab.path("host");
    fs::create_dir_all(host.join("proc")).unwrap();
    write_times(&host, Duration::ZERO);
    let is_over = AtomicBool::new(false);
    let output = thread::scope(|scope| {
        scope.spawn(|| {
            let began = Instant::now();
            while !is_over.load(Ordering::Relaxed) {
                write_times(&host, began.elapsed());
                thread::sleep(Duration::from_millis(20));
            }
        });
        let mut run = lab.evaluation(&["--no-sync"]);
        let mut run = run.env("CE_HOST", &host).stderr(Stdio::piped()).spawn().unwrap();
        let told = BufReader::new(run.stderr.take().unwrap()).lines().map_while(Result::ok);
        let warning = told.into_iter().find(|line| line.contains("warning: others have used"));
        fs::write(&done, "").unwrap();
        let output = run.wait_with_output().unwrap();
        is_over.store(true, Ordering::Relaxed);
        let warning = warning.unwrap();
        assert!(warning.contains("% of the processors for"), "{warning}");
        output
    });
    Ran::new(&lab, output).exit(0).called(vec!["measure"; 2]);

    let records = walkdir::WalkDir::new(lab.path("storage/c_measure")).into_iter();
    let records = records.map(Result::unwrap).filter(|it| it.path().extension().is_some());
    for record in records.filter(|it| it.path().to_string_lossy().contains("/record/")) {
        let record: Value = serde_json::from_slice(&fs::read(record.path()).unwrap()).unwrap();
        assert!(schema(Some("call")).is_valid(&record), "{record:#}");
        let used = &record["origin"]["executed"]["host_use"];
        assert!(used["others_seconds"].as_f64() > Some(0.1), "{record:#}");
        assert!(used["mhz"].is_null() && used["waiting_seconds"].is_null(), "{record:#}");
    }
    let says = "others used the processors during 100 % of these measurements (2 of 2)";
    let table = lab.run("ce", &["table", "../storage"]).exit(0).says(says);
    assert!(table.lines()[0].ends_with("duration  others"), "{}", table.stdout);
    let compare = ["compare", "--by", "seconds=1,2", "--task", ".", "../storage"];
    lab.run("ce", &compare).exit(0).shows(says);
    lab.run("ce", &["report", "-o", "../page.html", "../storage"]).exit(0);
    let page = fs::read_to_string(lab.path("page.html")).unwrap();
    assert!(page.contains(&says.replacen('o', "O", 1)));

    repository(&lab, "results.git");
    for (options, is_published) in
        [(&["--attest", "--times"][..], false), (&["--attest", "--times", "--machine"], true)]
    {
        push(&lab, options, "storage", "results.git").exit(0);
        assert_eq!(holds(&lab, "results.git", "\"others_percent\""), is_published);
    }
    lab.run("ce", &["pull", "../theirs", "../results.git"]).exit(0);
    lab.run("ce", &["table", "../theirs"]).exit(0).says(says);
}
