//! Sweeps over sheets with columns of files: names are bound to files, wherever they are.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::lab::{Lab, files};
use crate::program::Ran;

/// The number of lines of two files for each sample of a sheet.
const LINES: &str = "Inputs: sheet

lines: one two -> n
    cat $in_one $in_two | wc -l | tr -d ' ' > $out_n

SWEEP((lines one two) sheet :files 'one' 'two NA')
";

const SHEET: &str =
    "sample,one,two\nA,reads/a_1.fq,reads/a_2.fq\nB,reads/b_1.fq,\nC,reads/a_1.fq,NA\n";

/// A task, a sheet beside it, and the files that the sheet names.
fn lab(workflow: &str) -> Lab {
    let lab = Lab::empty().one_text(workflow).commit();
    lab.data("reads/a_1.fq", "1\n2\n3\n")
        .data("reads/a_2.fq", "4\n")
        .data("reads/b_1.fq", "5\n6\n")
        .data("sheet.csv", SHEET)
}

fn run<'a>(lab: &'a Lab, options: &[&str]) -> Ran<'a> {
    lab.run("ce-run", &[&["--no-sync", "../storage"], options].concat())
}

/// The lines of the table that a run has made, whose path it prints.
fn table(lab: &Lab, options: &[&str]) -> Vec<String> {
    let ran = run(lab, &[&["-q"], options].concat()).exit(0);
    let text = fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap();
    text.lines().map(str::to_owned).collect()
}

const TABLE: [&str; 3] =
    [r#"{"sample":"A","n":4}"#, r#"{"sample":"B","n":2}"#, r#"{"sample":"C","n":3}"#];

/// The names of the jobs in the storage.
fn jobs_of(lab: &Lab) -> Vec<String> {
    lab.storage().into_iter().filter(|it| it.starts_with("t_") && it.contains("/00/")).collect()
}

/// The paths of the inputs in the storage.
fn inputs(lab: &Lab) -> BTreeSet<String> {
    let all = files(&lab.path("storage/tinputs")).into_keys();
    all.filter(|it| !it.starts_with("record") && !it.contains("lock")).collect()
}

#[test]
fn names_are_bound_to_files_and_moved_files_are_the_same_job() {
    let lab = lab(LINES);
    assert_eq!(table(&lab, &["../data/sheet.csv"]), TABLE);
    // The sheet, its three files and the empty one.
    assert_eq!(inputs(&lab).len(), 5);
    let jobs = jobs_of(&lab);

    // The same sheet beside the moved files, and one with absolute paths elsewhere.
    fs::rename(lab.path("data"), lab.path("moved")).unwrap();
    run(&lab, &["../moved/sheet.csv"]).exit(0).says("3 calls: 3 reused").called(vec![]);
    let absolute = SHEET.replace("reads/", &format!("{}/", lab.path("moved/reads").display()));
    let lab = lab.data("absolute.csv", absolute);
    assert_eq!(table(&lab, &["../data/absolute.csv"]), TABLE);
    symlink(lab.path("moved/sheet.csv"), lab.path("moved/link.csv")).unwrap();
    assert_eq!(table(&lab, &["../moved/link.csv"]), TABLE);
    // Line ends and a byte order mark do not count, nor how cells are quoted.
    let windows = format!("\u{feff}{}", SHEET.replace('\n', "\r\n").replace("B,", "\"B\","));
    fs::write(lab.path("moved/windows.csv"), windows).unwrap();
    assert_eq!(table(&lab, &["../moved/windows.csv"]), TABLE);
    assert_eq!(jobs_of(&lab), jobs);
    assert_eq!(inputs(&lab).len(), 5);

    // The sheet that is stored can be given, too.
    let stored = inputs(&lab)
        .into_iter()
        .find(|it| fs::read(lab.path("storage/tinputs").join(it)).unwrap().starts_with(b"sample"));
    let stored = format!("../storage/tinputs/{}", stored.unwrap());
    assert_eq!(table(&lab, &[&stored]), TABLE);
    assert_eq!(jobs_of(&lab), jobs);
    let ran = lab.run("ce-run", &["--no-sync", "../another", &stored]).exit(2);
    ran.says("line 2: column \"one\": the storage does not have the file of digest:");
    assert!(!lab.path("another/c_lines").exists());
}

#[test]
fn a_new_row_executes_its_call_and_a_changed_file_its_own() {
    let lab = lab(LINES);
    run(&lab, &["../data/sheet.csv"]).exit(0);
    let lab = lab.data("sheet.csv", format!("{SHEET}D,reads/a_2.fq,reads/b_1.fq\n"));
    run(&lab, &["../data/sheet.csv"]).exit(0).says("4 calls: 3 reused, 1 computed");
    let lab = lab.data("reads/b_1.fq", "5\n6\n7\n");
    run(&lab, &["../data/sheet.csv"]).exit(0).says("4 calls: 2 reused, 2 computed");
    assert_eq!(table(&lab, &["../data/sheet.csv"])[1], r#"{"sample":"B","n":3}"#);
}

#[test]
fn each_missing_file_is_named_with_its_line_before_anything_is_made() {
    let lab = lab(LINES);
    let sheet = "sample,one,two\nA,reads/a-1.fq,reads/a_2.fq\nB,https://example.org/b.fq,\n\
                 C,reads/b_1.fq,/nowhere/b.fq\nD,reads/a_1.fq,../data\n";
    let lab = lab.data("sheet.csv", sheet);
    let ran = run(&lab, &["../data/sheet.csv"]).exit(2);
    ran.says(
        "the input sheet: 3 cells cannot be used\n  \
         line 2: column \"one\": \"reads/a-1.fq\": there is no such file\n  \
         line 3: column \"one\": https://example.org/b.fq is a URL, and not the path of a file\n  \
         line 4: column \"two\": \"/nowhere/b.fq\": there is no such file\n  \
         try: did you mean \"reads/a_1.fq\"?",
    );
    assert!(!lab.path("storage").exists());
    let lab = lab.data("sheet.csv", "sample,one\nA,reads/a_1.fq\n");
    let ran = run(&lab, &["../data/sheet.csv"]).exit(2);
    ran.says("the sheet has no column \"two\", which :files names");
    let rows = (0..30).map(|at| format!("{at},x{at},\n")).collect::<String>();
    let lab = lab.data("sheet.csv", format!("sample,one,two\n{rows}"));
    let ran = run(&lab, &["../data/sheet.csv"]).exit(2);
    ran.says("30 cells cannot be used").says("\"x19\"").says("and 10 more");
    assert!(!lab.path("storage").exists());
}

#[test]
fn a_sheet_of_the_task_names_files_of_the_task() {
    let own = LINES.replace("Inputs: sheet\n", "").replace(") sheet", ") OWN('sheets/all.csv')");
    let sheet = SHEET.replace("reads/", "../reads/");
    let lab = lab(&own)
        .file("sheets/all.csv", &sheet)
        .file("reads/a_1.fq", "1\n2\n3\n")
        .file("reads/a_2.fq", "4\n")
        .file("reads/b_1.fq", "5\n6\n")
        .commit_again();
    lab.run("ce", &["check"]).exit(0).shows("3 calls");
    assert_eq!(table(&lab, &[]), TABLE);
    let wrong = sheet.replace("../reads/a_2", "../../a_2").replace("b_1", "b-1");
    let lab = lab.file("sheets/all.csv", wrong).commit_again();
    for program in [&["check"][..], &["run", "../storage"]] {
        let ran = lab.run("ce", program).exit(2);
        ran.says(
            "sheets/all.csv: 2 cells cannot be used\n  \
             line 2: column \"two\": ../../a_2.fq is not the path of a file of the task\n  \
             line 3: column \"one\": \"../reads/b-1.fq\": the task has no file \"reads/b-1.fq\"",
        );
    }
    // As the default of an input, it is the same sheet as one that somebody gives.
    let default = LINES.replace("Inputs: sheet", "Inputs: sheet = OWN('sheets/all.csv')");
    let lab = lab.file("sheets/all.csv", &sheet).one_text(&default).commit_again();
    assert_eq!(table(&lab, &[]), TABLE);
    let jobs = jobs_of(&lab);
    assert_eq!(table(&lab, &["sheet=../data/sheet.csv"]), TABLE);
    assert_eq!(jobs_of(&lab), jobs);
}

#[test]
fn a_changed_file_that_a_sheet_of_the_task_names_is_not_hidden_by_a_finished_job() {
    let text = "lines: of -> n\n    wc -l < $in_of | tr -d ' ' > $out_n\n\n";
    for sweep in
        ["SWEEP((lines f) OWN('s.csv') :files 'f')", "SWEEP((lines OWN('{f}')) :over f 'x')"]
    {
        let lab = Lab::empty().one_text(&format!("{text}{sweep}\n"));
        let lab = lab.file("s.csv", "f\nx\n").file("x", "1\n").commit();
        assert!(table(&lab, &[])[0].ends_with("\"n\":1}"));
        let lab = lab.file("x", "1\n2\n");
        let ran = run(&lab, &["-q", "--dirty"]).exit(0);
        let changed = fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap();
        assert!(changed.ends_with("\"n\":2}\n"), "{sweep}: {changed}");
    }
    // As the default of an input, it is stored as no job, either.
    let default = "Inputs: sheet = OWN('s.csv')\n\n";
    let sweep = "SWEEP((lines f) sheet :files 'f')\n";
    let lab = Lab::empty().one_text(&format!("{default}{text}{sweep}"));
    let lab = lab.file("s.csv", "f\nx\nx2\n").file("x", "1\n").file("x2", "1\n2\n").commit();
    let lab = lab.file("x", "1\n2\n3\n");
    run(&lab, &["--dirty"]).exit(0).says("files of the task have uncommitted changes");
    let ran = run(&lab, &[]).exit(2);
    ran.says("line 2: column \"f\": \"x\": has uncommitted changes");
}

#[test]
fn all_sweeps_over_a_sheet_read_a_column_alike() {
    let lines = LINES.split("SWEEP").next().unwrap();
    let other = "SWEEP((lines two two) sheet";
    for sweep in [
        format!("{other} :files 'two')"),
        format!("{other} :names 'two')"),
        format!("{other} :files 'two NA' :where 'one == \"x\"')"),
    ] {
        let text =
            format!("{lines}ALL(SWEEP((lines one two) sheet :files 'one' 'two NA') {sweep})\n");
        let ran = lab(&text).run("ce", &["check"]).exit(2).stderr.clone();
        assert!(ran.contains("another sweep over the same sheet reads the column"), "{ran}");
    }
    // A column that another sweep lists is no label of this one.
    let text = format!(
        "{lines}ALL(SWEEP((lines one one) sheet :files 'one') SWEEP((lines one two) sheet :files 'one' 'two NA'))\n"
    );
    let lab = lab(&text);
    let ran = run(&lab, &["-q", "../data/sheet.csv"]).exit(0);
    let tables = ran.lines().into_iter().map(|it| lab.stored(it)).collect::<Vec<_>>();
    assert_eq!(tables[0].lines().next(), Some(r#"{"sample":"A","n":6}"#));
    assert_eq!(tables[1].lines().collect::<Vec<_>>(), TABLE);
}

#[test]
fn two_versions_are_compared_with_the_sheet_as_it_was_given() {
    let names = LINES.replace(":files 'one' 'two NA'", ":names 'one' 'two'");
    let lab = lab(&names);
    lab.git("task", &["tag", "names"]);
    let lab = lab.one_text(LINES).commit_again();
    lab.git("task", &["tag", "files"]);
    let last = LINES.replace("(lines one two)", "(lines one one)").replace(" 'two NA'", "");
    let lab = lab.one_text(&last).commit_again().with_storage();
    for versions in [["names", "files"], ["files", "HEAD"], ["HEAD", "files"], ["files", "names"]] {
        let [old, new] = versions;
        let ran = lab.run("ce", &["diff", old, new, "../storage", "../data/sheet.csv"]).exit(0);
        let shown = &ran.stdout;
        assert!(!shown.contains("digest:") && !ran.stderr.contains("failed"), "{shown}");
    }
    let shown = lab.run("ce", &["diff", "names", "files", "../storage", "../data/sheet.csv"]);
    shown.shows(r#"-{"sample":"A","one":"reads/a_1.fq","two":"reads/a_2.fq","n":2}"#);
}

#[test]
fn rows_whose_files_have_the_same_contents_are_reported_before_anything_is_executed() {
    let one = LINES.replace("(lines one two)", "(lines one one)").replace(" 'two NA'", "");
    let lab = lab(&one).data("reads/copy.fq", "1\n2\n3\n");
    let lab = lab.data("sheet.csv", "one\nreads/a_1.fq\nreads/b_1.fq\nreads/copy.fq\n");
    let ran = run(&lab, &["../data/sheet.csv"]).exit(2);
    ran.says("line 4: the row repeats line 2: its files have the same contents");
    assert!(!lab.path("storage/c_lines").exists());
}

#[test]
fn paths_in_a_sheet_that_is_no_file_are_relative_to_the_current_directory() {
    let lab = lab(LINES);
    let sheet = SHEET.replace("reads/", "../data/reads/");
    let text = r#"{"sample":"A","one":"../data/reads/a_1.fq","two":"../data/reads/a_2.fq"}"#;
    let ran = run(&lab, &["-q", "-p", &format!("sheet={text}")]).exit(0);
    assert_eq!(lab.stored(ran.stdout.trim_end()).trim_end(), TABLE[0]);
    fs::write(lab.path("data/other.csv"), sheet).unwrap();
    let mut command = lab.command("ce-run");
    command.args(["--no-sync", "-q", "../storage", "/dev/stdin"]);
    command.stdin(fs::File::open(lab.path("data/other.csv")).unwrap());
    let ran = lab.finish(&mut command).exit(0);
    assert_eq!(lab.stored(ran.stdout.trim_end()).lines().collect::<Vec<_>>(), TABLE);
    // A path where the sheet is meant is a header without the column.
    let ran = run(&lab, &["-p", "sheet=../data/sheet.csv"]).exit(2);
    ran.says("the sheet has no column \"one\", which :files names");
}

#[test]
fn excluded_rows_are_shown_beside_files() {
    let where_ = LINES.replace("'two NA')", "'two NA' :where 'sample != \"B\"')");
    let lab = lab(&where_);
    run(&lab, &["../data/sheet.csv"]).exit(0).says("2 calls");
    let ran = lab.run("ce", &["table", "--json", "../storage", "../data/sheet.csv"]).exit(0);
    let rows: Vec<Value> =
        ran.lines().into_iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown: Vec<[&Value; 2]> =
        rows.iter().map(|row| [&row["row"]["sample"], &row["status"]]).collect();
    assert_eq!(shown, [["A", "ok"], ["B", "excluded"], ["C", "ok"]]);
}

#[test]
fn a_sweep_with_files_is_the_same_in_directories() {
    let lab = lab(LINES);
    assert_eq!(table(&lab, &["../data/sheet.csv"]), TABLE);
    lab.to_directories().exit(0);
    let files = fs::read_to_string(lab.path("task/workflow/files")).unwrap();
    assert_eq!(files, "one\ntwo NA\n");
    let lab = lab.commit_again();
    assert_eq!(table(&lab, &["../data/sheet.csv"]), TABLE);
    lab.run("ce", &["convert", "--to", "text"]).exit(0);
    let text = fs::read_to_string(lab.path("task/workflow.ce")).unwrap();
    assert!(text.contains("SWEEP((lines one two) sheet :files 'one' 'two NA')"), "{text}");
}

#[test]
fn rows_that_differ_in_files_only_are_points() {
    let one = LINES.replace("one two ->", "one ->").replace(" $in_two", "");
    let one = one.replace("lines one two)", "lines one)").replace(" 'two NA'", "");
    let sheet = "sample,one\nA,reads/a_1.fq\nA,reads/b_1.fq\n";
    let lab = lab(&one).data("sheet.csv", sheet);
    assert_eq!(
        table(&lab, &["../data/sheet.csv"]),
        [r#"{"sample":"A","n":3}"#, r#"{"sample":"A","n":2}"#]
    );
    let lab = lab.one_text(&one.replace("'one')", "'one')[01]")).commit_again();
    let ran = run(&lab, &["../data/sheet.csv"]).exit(2);
    ran.says("the points 1 and 2 differ in files only, so their outputs would have one path");
    let lab = lab.data("sheet.csv", sheet.replace("A,reads/b", "B,reads/b"));
    let ran = run(&lab, &["-q", "../data/sheet.csv"]).exit(0);
    let outputs = files(&lab.path("task").join(ran.stdout.trim_end()));
    let paths: Vec<&String> = outputs.keys().collect();
    assert_eq!(paths, ["points.ndjson", "sample=A/n", "sample=B/n"]);
    assert_eq!(outputs["points.ndjson"], b"{\"sample\":\"A\"}\n{\"sample\":\"B\"}\n");
}

#[test]
fn directories_replicates_and_factors_stand_beside_files() {
    let text = "Inputs: sheet

count: of k replicate -> n
    [ ! -d $in_of ] || set -- $in_of/*
    echo $(( $# * $(cat $in_k) + $(cat $in_replicate) )) > $out_n

SWEEP((count of k replicate) sheet :files 'of' :over k 10 100 :replicates 2)
";
    let lab = lab(text).data("sheet.tsv", "label\tof\nA\treads\nB\treads/a_1.fq\n");
    let rows = table(&lab, &["../data/sheet.tsv"]);
    assert_eq!(rows.len(), 8);
    assert_eq!(rows[0], r#"{"label":"A","k":10,"replicate":1,"n":31}"#);
    assert_eq!(rows[7].split_once("replicate").unwrap().0, r#"{"label":"B","k":100,""#);
    let ran = run(&lab, &["--where", "label=A", "../data/sheet.tsv"]).exit(0);
    ran.says("4 calls: 4 reused");
    let ran = run(&lab, &["--where", "of=reads", "../data/sheet.tsv"]).exit(2);
    ran.says(
        "\"of\" is a file of each point, and has no text\n  try: there are k, label, replicate",
    );
}

/// A sheet with the columns of a public pipeline, and the sweep that reads it.
struct PublicSheet {
    sheet: &'static str,
    sweep: &'static str,
    rows: &'static [&'static str],
}

const PUBLIC_SHEETS: [PublicSheet; 4] = [
    // rnaseq: rows of one sample that differ in files only, and single reads.
    PublicSheet {
        sheet: "sample,fastq_1,fastq_2,strandedness\n\
                CONTROL_REP1,a_1.fq,a_2.fq,auto\n\
                CONTROL_REP1,b_1.fq,a_2.fq,auto\n\
                TREATMENT_REP3,b_1.fq,,reverse\n",
        sweep: "SWEEP((lines fastq_1 fastq_2) sheet :files 'fastq_1' 'fastq_2')",
        rows: &[
            r#"{"sample":"CONTROL_REP1","strandedness":"auto","n":4}"#,
            r#"{"sample":"CONTROL_REP1","strandedness":"auto","n":3}"#,
            r#"{"sample":"TREATMENT_REP3","strandedness":"reverse","n":2}"#,
        ],
    },
    // sarek: the lane tells rows of a sample apart, and XX and NA are texts.
    PublicSheet {
        sheet: "patient,sex,status,sample,lane,fastq_1,fastq_2\n\
                p1,XX,0,normal,L1,a_1.fq,a_2.fq\n\
                p1,XX,1,tumour,L2,b_1.fq,NA\n\
                p2,NA,0,normal,L1,a_1.fq,\n",
        sweep: "SWEEP((lines fastq_1 fastq_2) sheet :files 'fastq_1' 'fastq_2 NA')",
        rows: &[
            r#"{"patient":"p1","sex":"XX","status":0,"sample":"normal","lane":"L1","n":4}"#,
            r#"{"patient":"p1","sex":"XX","status":1,"sample":"tumour","lane":"L2","n":2}"#,
            r#"{"patient":"p2","sex":"NA","status":0,"sample":"normal","lane":"L1","n":3}"#,
        ],
    },
    // taxprofiler: a row has reads or an assembly.
    PublicSheet {
        sheet: "sample,run_accession,instrument_platform,fastq_1,fastq_2,fasta\n\
                2611,ERR5766174,ILLUMINA,,,b_1.fq\n\
                2612,ERR5766176,ILLUMINA,a_1.fq,a_2.fq,\n",
        sweep: "SWEEP(ALL((lines fastq_1 fastq_2) (lines fasta fastq_2)) sheet \
                :files 'fastq_1' 'fastq_2' 'fasta' :columns '00 reads' '01 all')",
        rows: &[
            r#"{"sample":2611,"run_accession":"ERR5766174","instrument_platform":"ILLUMINA","reads":0,"all":2}"#,
            r#"{"sample":2612,"run_accession":"ERR5766176","instrument_platform":"ILLUMINA","reads":4,"all":1}"#,
        ],
    },
    // nanoseq: a column is called replicate, and rows may lack a genome.
    PublicSheet {
        sheet: "group,replicate,barcode,input_file,fasta,gtf\n\
                WT,1,1,a_1.fq,a_2.fq,\nWT,2,2,b_1.fq,,\n",
        sweep: "SWEEP((lines input_file fasta) sheet :files 'input_file' 'fasta')",
        rows: &[
            r#"{"group":"WT","replicate":1,"barcode":1,"gtf":"","n":4}"#,
            r#"{"group":"WT","replicate":2,"barcode":2,"gtf":"","n":2}"#,
        ],
    },
];

#[test]
fn sheets_of_public_pipelines_are_read_as_they_are() {
    for PublicSheet { sheet, sweep, rows } in PUBLIC_SHEETS {
        let before = LINES.split("SWEEP").next().unwrap();
        let lab = lab(&format!("{before}{sweep}\n")).data("reads/sheet.csv", sheet);
        assert_eq!(table(&lab, &["../data/reads/sheet.csv"]), rows, "{sheet}");
    }
}

#[test]
fn what_a_sheet_names_is_kept_pushed_and_pulled_with_its_job() {
    let lab = lab(LINES);
    run(&lab, &["../data/sheet.csv"]).exit(0);
    let kept = inputs(&lab);
    lab.run("ce", &["gc", "--delete", "../storage"]).exit(0);
    assert_eq!(inputs(&lab), kept);
    lab.run("ce", &["audit", "../storage"]).exit(0).says("3 agree");
    lab.git("", &["init", "--quiet", "--bare", "results"]);
    // The sheet and its files.
    lab.run("ce", &["push", "--inputs", "../storage", "../results"]).exit(0).shows("4 inputs");
    lab.run("ce", &["pull", "../pulled", "../results"]).exit(0);
    fs::rename(lab.path("data"), lab.path("moved")).unwrap();
    let ran = lab.run("ce-run", &["-q", "../pulled", "../moved/sheet.csv"]).exit(0);
    let pulled = fs::read_to_string(lab.path("task").join(ran.stdout.trim_end())).unwrap();
    assert_eq!(pulled.lines().collect::<Vec<_>>(), TABLE);
    lab.run("ce", &["verify", "../pulled"]).exit(0);
    // Without a repository that keeps them, they go with the job.
    lab.run("ce", &["gc", "--no-keep", "--older", "0s", "--delete", "../storage"]).exit(0);
    assert_eq!(inputs(&lab), BTreeSet::new());
}

#[test]
fn workers_read_the_files_of_a_sheet_in_the_storage() {
    let lab = lab(LINES);
    let mut worker = lab.command("ce");
    worker.args(["worker", "--no-isolate", "--idle", "60s", "../storage"]);
    fs::create_dir(lab.path("storage")).unwrap();
    let mut worker = worker.spawn().unwrap();
    let ran = run(&lab, &["--on", "workers", "../data/sheet.csv"]);
    worker.kill().unwrap();
    worker.wait().unwrap();
    ran.exit(0).says("3 calls: 3 computed");
    assert_eq!(table(&lab, &["../data/sheet.csv"]), TABLE);
}

#[test]
fn a_failure_is_named_by_the_texts_of_its_row() {
    let lab =
        lab(&LINES.replace("cat $in_one", "cat $in_one; [ ! -s $in_two ] || exit 3; cat $in_one"));
    let ran = run(&lab, &["../data/sheet.csv"]).exit(1);
    ran.says("sample=A: lines (body) failed: it ended with exit status 3");
    let rows = lab.run("ce", &["table", "--json", "../storage", "../data/sheet.csv"]).exit(3);
    let row: Value = serde_json::from_str(rows.lines()[0]).unwrap();
    assert_eq!((&row["row"]["sample"], &row["status"]), (&"A".into(), &"failed".into()));
}
