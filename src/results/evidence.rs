//! Evidence in a results repository: files of the ledger, and who vouches for them.

use std::collections::{BTreeSet, HashMap};

use super::ResultsError;
use super::build::Finder;
use super::layout::LEDGER;
use super::ledger::{Attestation, attestations};
use super::trust::{FileSigner, Trust};
use crate::digest::{Blake3, Digest, ObjectId};
use crate::git::Mirror;
use crate::storage::{Ledger, SignerNote, Storage, of_ledger_file};

/// A file of the ledger of a repository.
#[derive(Debug)]
struct LedgerFile {
    path: String,
    id: ObjectId,
    contents: Blake3,
}

/// The text of a file of the ledger, and what it attests.
type ReadFile = (Vec<u8>, Vec<Attestation>);

/// The executions of a call, by whoever has attested them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// The number of attesters that have had the recorded outputs.
    pub agree: usize,
    /// The number of attesters.
    pub all: usize,
}

/// The evidence in a repository.
#[derive(Debug)]
pub(super) struct Evidence {
    files: Vec<LedgerFile>,
    /// The attestations of each call, each with the number of its file.
    of_call: HashMap<Blake3, Vec<(usize, Attestation)>>,
}

impl Evidence {
    /// Lists the files of the ledger, and reads them if that is wanted. What does not belong to its name, or cannot be understood, is left
    /// out.
    pub(super) fn of(
        mirror: &Mirror,
        finder: &mut Finder<'_>,
        is_read: bool,
    ) -> Result<Self, ResultsError> {
        let file = |(path, id): (String, ObjectId)| {
            let contents = of_ledger_file(&path)?;
            Some(LedgerFile { path, id, contents })
        };
        let files = finder.files_in(LEDGER)?.into_iter().filter_map(file).collect();
        let mut evidence = Self { files, of_call: HashMap::new() };
        if is_read {
            let ids: Vec<ObjectId> = evidence.files.iter().map(|it| it.id.clone()).collect();
            mirror.fetch_files(&ids)?;
            for (number, file) in evidence.files.iter().enumerate() {
                let Some((_, attestations)) = file.read(mirror)? else { continue };
                for attestation in attestations {
                    let of_call = evidence.of_call.entry(attestation.id).or_default();
                    of_call.push((number, attestation));
                }
            }
        }
        Ok(evidence)
    }

    /// Counts those who have executed a call. Each signer who is trusted for it counts as one, and all others together as one.
    pub(super) fn agreement(
        &self,
        trust: &Trust,
        (call, owner): (&Blake3, &str),
        outputs: &[Digest],
    ) -> Agreement {
        let (mut agree, mut all) = (BTreeSet::new(), BTreeSet::new());
        for (number, attested) in self.of_call.get(call).into_iter().flatten() {
            let LedgerFile { path, id, .. } = &self.files[*number];
            let signers = trust.signers(path, id).into_iter().map(|it| it.principal);
            let mut attesters: Vec<Option<&str>> =
                signers.filter(|it| trust.is_trusted(it, owner)).map(Some).collect();
            if attesters.is_empty() {
                attesters.push(None);
            }
            if attested.outputs.as_deref() == Some(outputs) {
                agree.extend(attesters.iter().copied());
            }
            all.extend(attesters);
        }
        Agreement { agree: agree.len(), all: all.len() }
    }

    /// Brings the files that a storage does not have, and notes who vouches for them.
    pub(super) fn import(
        &self,
        storage: &Storage,
        mirror: &Mirror,
        trust: &Trust,
    ) -> Result<(), ResultsError> {
        let ledger = storage.ledger();
        let mut new = Vec::new();
        for file in &self.files {
            if !ledger.has(&file.contents)? {
                new.push(file);
            }
        }
        let ids: Vec<ObjectId> = new.iter().map(|it| it.id.clone()).collect();
        mirror.fetch_files(&ids)?;
        for file in new {
            if let Some((text, _)) = file.read(mirror)? {
                ledger.add(&text)?;
            }
        }
        for file in &self.files {
            if let Some(signer) = trust.signers(&file.path, &file.id).first()
                && ledger.has(&file.contents)?
                && ledger.signer(&file.contents)?.is_none()
            {
                ledger.note_signer(&file.contents, &signer_note(signer, mirror.url()))?;
            }
        }
        Ok(())
    }
}

impl LedgerFile {
    /// Its contents, and what they attest. `None` if they do not belong to the name, or cannot be understood.
    fn read(&self, mirror: &Mirror) -> Result<Option<ReadFile>, ResultsError> {
        let text = mirror.contents(&self.id, Ledger::MAX_BYTES)?;
        let text = text.filter(|text| Blake3::of(text) == self.contents);
        Ok(text.and_then(|text| attestations(&text).map(|found| (text, found))))
    }
}

/// The note of who vouches for a file of the ledger.
fn signer_note(FileSigner { principal, key, commit }: &FileSigner<'_>, url: &str) -> SignerNote {
    SignerNote {
        own: false,
        signer: Some((*principal).to_owned()),
        key: Some((*key).to_owned()),
        commit: Some(commit.full().to_owned()),
        repository: Some(url.to_owned()),
    }
}
