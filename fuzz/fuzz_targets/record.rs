//! Records: whatever stands in the place of one, all programs end well, the right result or none is found, and an accepted
//! record reads as it is written.
//!
//! The first byte says whose place it is, the rest is what stands there.
#![no_main]

use std::fs;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use compeval::history::{self, History};
use compeval::storage::maintenance::verify::{Request, VerifyError, verify};
use compeval::storage::records::{Arguments, Execution, FailureRecord};
use compeval::storage::{
    Call, ComputationVersion, Durability, Found, Maintenance, Precedence, PublishError, Record,
    RecordState, Stage, Storage, StorageError, Survey, Unrecorded,
};
use compeval::task::Computation;
use compeval_fuzz::{CALL, Ground, INPUTS, computation, inputs, put};
use libfuzzer_sys::fuzz_target;

static GROUND: LazyLock<Ground> = LazyLock::new(Ground::new);
static COMPUTATION: LazyLock<Computation> = LazyLock::new(computation);

/// Where the record of each kind is.
fn place(kind: u8) -> String {
    match kind % 7 {
        0 => format!("{CALL}/record/{INPUTS}.json"),
        1 => format!("t_task/5efbc68dc50d/record/{INPUTS}.json"),
        2 => "tinputs/record/ad/48103e4fc7.json".to_owned(),
        3 => format!("{CALL}/failed/ad48103e4fc7_09d2af8dd222.json"),
        4 => "tables/record/ad/48103e4fc7.json".to_owned(),
        5 => "tables/ad/48103e4fc7/recipe".to_owned(),
        // An execution that its run could not publish before it died.
        _ => {
            let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '_' };
            let host: String = host.trim().chars().map(plain).collect();
            format!("tmp/{host}-00000000-1-1-1/0/1.record")
        }
    }
}

fn read_all(storage: &Storage) -> Result<(), StorageError> {
    for entry in Survey::new(storage).entries()? {
        if let Ok(Some(record)) = Maintenance::new(storage).check_record(&entry) {
            for promise in entry.expected_files(&record) {
                drop(Maintenance::new(storage).check(&promise));
            }
            reads_as_written(storage, &entry, &record);
        }
    }
    for (_, failure) in Survey::new(storage).failures()? {
        let text = serde_json::to_vec(&failure).unwrap();
        assert_eq!(serde_json::from_slice::<FailureRecord>(&text).unwrap(), failure);
    }
    drop(history::log(storage, &|_| None, &history::Filter::default())?);
    let history = History::read(storage)?.with_recipes(storage)?;
    for file in ["ad48", "5d9474c0309b", &format!("{CALL}/01/{INPUTS}")] {
        if let Ok(subject) = history.find(storage, file) {
            drop(history.ancestry(storage, subject)?);
        }
    }
    Ok(())
}

fn reads_as_written(storage: &Storage, entry: &compeval::storage::Entry, record: &Record) {
    let text = match record {
        Record::Call(record) => serde_json::to_vec(record),
        Record::Job(record) => serde_json::to_vec(record),
        Record::Table(record) => serde_json::to_vec(record),
        Record::TaskInput(record) => serde_json::to_vec(record),
    };
    let path = storage.path(&entry.record());
    let kept = fs::read(&path).unwrap();
    fs::write(&path, text.unwrap()).unwrap();
    let Ok(RecordState::Valid(again)) = storage.records().read_entry(entry) else {
        panic!("{entry:?}")
    };
    assert_eq!(again, *record);
    fs::write(&path, kept).unwrap();
}

/// Finds the call, or makes its outputs; they are there and whole then.
fn evaluate(storage: &Storage) -> Result<(), StorageError> {
    let inputs = inputs();
    let call = Call {
        version: ComputationVersion::from(&*COMPUTATION),
        inputs: &inputs,
        outputs: &COMPUTATION.outputs,
    };
    let outputs = match storage.calls().find(call)? {
        Found::Hit(outputs) => outputs,
        Found::Away(_) | Found::Archived(_) => panic!("all outputs are here"),
        Found::Absent { name, .. } | Found::Unsettled(name) => {
            let stage = Stage::new(storage, 2)?;
            for output in stage.outputs() {
                put(&output, b"made\n");
            }
            let now = "2026-01-01T00:00:00Z".parse().unwrap();
            let execution = Execution {
                argv: Arguments::default(),
                isolation: "none".into(),
                access: Box::default(),
                attempts: Box::default(),
                resources: Box::default(),
                host_kind: None,
                machine: None,
                host_use: None,
                start: now,
                end: now,
                user_seconds: 0.0,
                system_seconds: 0.0,
                peak_bytes: 0,
                exit_status: 0,
                tasks: Box::default(),
                taken_over: None,
                trusted_tree: false,
            };
            let sealed = stage.seal(call, execution).map_err(|failed| failed.1).unwrap();
            match sealed.publish(call, &name, Precedence::Recorded) {
                Ok(outputs) => outputs,
                Err(PublishError::Storage(error)) => return Err(error),
                Err(error) => panic!("{error}"),
            }
        }
    };
    assert_eq!(outputs.files.len(), 2, "a call has all its outputs");
    for (number, digest) in outputs.files.iter().map(|file| file.digest).enumerate() {
        let contents = fs::read(storage.path(&outputs.name.output(number))).unwrap();
        assert_eq!(contents.len() as u64, digest.size, "an output is whole");
    }
    Ok(())
}

fn act(storage: &Path) -> Result<(), StorageError> {
    let storage = Storage::open(storage, Unrecorded::Adopt, Durability::Unsynced)?;
    read_all(&storage)?;
    drop(storage.inputs().find(&GROUND.path("task/inputs").as_path().into())?);
    evaluate(&storage)?;
    let repair = Request { repair: true, ..Request::default() };
    match verify(&storage, &repair, &AtomicBool::new(false), &mut |_| ()) {
        Err(VerifyError::Storage(error)) => return Err(error),
        verified => drop(verified.unwrap()),
    }
    evaluate(&storage)
}

fuzz_target!(|data: (u8, &[u8])| {
    let (kind, text) = data;
    let storage = GROUND.storage();
    let path = storage.join(place(kind));
    put(&path, text);
    if kind % 7 == 6 {
        for output in ["1.00", "1.01"] {
            put(&path.with_file_name(output), b"made\n");
        }
    }
    match act(&storage) {
        Ok(()) | Err(StorageError::Format { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    GROUND.check();
});
