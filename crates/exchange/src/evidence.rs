//! Evidence that is pushed and pulled: files of the ledger, and who vouches for them. They are named by their contents, so nothing of
//! them can differ.

use std::collections::HashMap;

use super::ResultsError;
use super::attestation::{Attested, Attester, AttesterStances};
use super::layout::LEDGER;
use super::ledger::{LedgerLine, parse};
use super::tree_search::Finder;
use super::trust::{FileSigner, Trust};
use ce_git::{Mirror, PackWriter, UnwrittenTree};
use ce_model::digest::{Blake3, Digest, ObjectId};
use ce_storage::{Ledger, SignerNote, Storage, ledger_file, of_ledger_file};

/// A file of the ledger of a repository.
#[derive(Debug)]
struct LedgerFile {
    path: String,
    id: ObjectId,
    contents: Blake3,
}

/// The text of a file of the ledger, and what it attests.
type ReadFile = (Vec<u8>, Vec<LedgerLine>);

/// Files of the ledger of a repository.
#[derive(Debug, Default)]
pub(super) struct TakenEvidence {
    /// The number of those that were new, or would be.
    pub(super) new: usize,
    /// The paths of those that are no evidence.
    pub(super) refused: Vec<String>,
}

/// The evidence in a repository.
#[derive(Debug)]
pub(super) struct Evidence {
    files: Vec<LedgerFile>,
    /// The paths of those that are not named by any contents.
    strange: Vec<String>,
    /// The attestations of each call, each with the number of its file.
    of_call: HashMap<Blake3, Vec<(usize, LedgerLine)>>,
}

impl Evidence {
    /// Lists the files of the ledger, and reads them if that is wanted. What does not belong to its name, or cannot be understood, is left
    /// out.
    pub(super) fn of(
        mirror: &Mirror,
        finder: &mut Finder<'_>,
        is_read: bool,
    ) -> Result<Self, ResultsError> {
        let (mut files, mut strange) = (Vec::new(), Vec::new());
        for (path, id) in finder.files_in(LEDGER)? {
            match of_ledger_file(&path) {
                Some(contents) => files.push(LedgerFile { path, id, contents }),
                None => strange.push(path),
            }
        }
        let mut evidence = Self { files, strange, of_call: HashMap::new() };
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

    /// Who has attested a call with these outputs. Each signer who is trusted for it counts as one, and all others together as one.
    pub(super) fn attested(
        &self,
        trust: &Trust,
        (call, owner): (&Blake3, &str),
        outputs: &[Digest],
    ) -> Attested {
        let mut attested = AttesterStances::default();
        for (number, line) in self.of_call.get(call).into_iter().flatten() {
            let LedgerFile { path, id, .. } = &self.files[*number];
            let signers = trust.signers(path, id).into_iter().map(|it| it.principal);
            let trusted = signers.filter(|it| trust.is_trusted(it, owner));
            let mut attesters: Vec<Attester> =
                trusted.map(|it| Attester::Signer(it.to_owned())).collect();
            if attesters.is_empty() {
                attesters.push(Attester::Unsigned);
            }
            for attester in attesters {
                let kind = line.host_kind.as_ref();
                attested.add(attester, kind, outputs, line.outputs.as_deref());
            }
        }
        attested.into()
    }

    /// Brings the files that a storage does not have, and notes who vouches for them, unless nothing is to be written.
    pub(super) fn import(
        &self,
        storage: &Storage,
        mirror: &Mirror,
        trust: &Trust,
        dry: bool,
    ) -> Result<TakenEvidence, ResultsError> {
        let ledger = storage.ledger();
        let mut lacking = Vec::new();
        for file in &self.files {
            if !ledger.has(&file.contents)? {
                lacking.push(file);
            }
        }
        let mut taken = TakenEvidence { new: lacking.len(), refused: self.strange.clone() };
        if dry {
            return Ok(taken);
        }
        let ids: Vec<ObjectId> = lacking.iter().map(|it| it.id.clone()).collect();
        mirror.fetch_files(&ids)?;
        for file in lacking {
            match file.read(mirror)? {
                Some((text, _)) => drop(ledger.add(&text)?),
                None => {
                    taken.new -= 1;
                    taken.refused.push(file.path.clone());
                }
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
        Ok(taken)
    }
}

impl LedgerFile {
    /// Its contents, and what they attest. `None` if they do not belong to the name, or cannot be understood.
    fn read(&self, mirror: &Mirror) -> Result<Option<ReadFile>, ResultsError> {
        let text = mirror.contents(&self.id, Ledger::MAX_BYTES)?;
        let text = text.filter(|text| Blake3::of(text) == self.contents);
        Ok(text.and_then(|text| parse(&text).map(|found| (text, found))))
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

/// Writes the files of a storage that the repository lacks, unless nothing is to be written. Returns their number. Where the commit
/// is signed, those of others stay here: the signer would vouch for them.
pub(super) fn offer(
    storage: &Storage,
    mirror: &Mirror,
    there: &mut Finder<'_>,
    (writer, files): (&mut Option<PackWriter<'_>>, &mut UnwrittenTree),
    is_signed: bool,
) -> Result<usize, ResultsError> {
    let (ledger, mut lacking) = (storage.ledger(), 0);
    for contents in ledger.files()? {
        let path = ledger_file(&contents);
        let is_own = ledger.signer(&contents)?.is_some_and(|it| it.own);
        if (is_signed && !is_own) || there.find(&path)?.is_some() {
            continue;
        }
        let Some(text) = ledger.read(&contents)?.filter(|text| parse(text).is_some()) else {
            continue;
        };
        if let Some(writer) = writer {
            let written = writer.file(&text).and_then(|id| files.insert(&path, &id));
            written.map_err(|error| mirror.own(error))?;
        }
        lacking += 1;
    }
    Ok(lacking)
}

/// Keeps files that were pushed, as made here. The repository has them, so it does not matter if they cannot be written.
pub(super) fn keep(storage: &Storage, mirror: &Mirror, files: &[ObjectId]) {
    if storage.is_writable() {
        for file in files {
            if let Ok(Some(text)) = mirror.contents(file, Ledger::MAX_BYTES) {
                drop(storage.ledger().add_own(&text));
            }
        }
        drop(storage.flush());
    }
}
