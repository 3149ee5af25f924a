//! Names of runs, in leases and as names of private directories: nothing outside is looked at or touched, and a run that
//! wants the lease of a dead run gets it.
//!
//! The data is `LEASE|DIRECTORY|BEAT`: the text of a lease, the name of a private directory, and what its file `beat` says.
#![no_main]

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};
use std::sync::LazyLock;

use compeval::digest::Digest;
use compeval::storage::{Call, ComputationVersion, Durability, Found, Storage, Survey, Unrecorded};
use compeval_fuzz::{CALL, Ground, computation, put};
use libfuzzer_sys::fuzz_target;

static GROUND: LazyLock<Ground> = LazyLock::new(Ground::new);

fuzz_target!(|data: &[u8]| {
    let mut parts = data.splitn(3, |byte| *byte == b'|');
    let [lease, directory, beat] = [(); 3].map(|()| parts.next().unwrap_or_default());
    let storage = GROUND.storage();
    put(&storage.join(CALL).join("running/09d2af8dd222_09d2af8dd222"), lease);
    let name = Path::new(OsStr::from_bytes(directory));
    if name.components().eq([Component::Normal(name.as_os_str())])
        && !directory.contains(&0)
        && directory.len() < 256
    {
        put(&storage.join("tmp").join(name).join("beat"), beat);
    }
    let storage = Storage::open(&storage, Unrecorded::Refuse, Durability::Unsynced).unwrap();
    drop(Survey::new(&storage).leftovers().unwrap());
    let computation = computation();
    let zero = Digest::hash_bytes(b"0\n");
    let (version, inputs) = (ComputationVersion::from(&computation), [zero, zero]);
    let call = Call { version, inputs: &inputs, outputs: &computation.outputs };
    let Ok(Found::Absent { name, .. }) = storage.calls().find(call) else {
        panic!("nothing is there")
    };
    if let Err(holder) = storage.leases().acquire(&name) {
        let directory = String::from_utf8_lossy(directory);
        assert!(directory.starts_with(&holder.host), "{holder} has no private directory");
    }
    drop(storage);
    GROUND.check();
});
