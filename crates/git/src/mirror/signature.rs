//! Commits in a mirror, and who has signed them. The user's `git` makes and checks signatures.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{Mirror, MirrorError};
use crate::command::GitReach;
use crate::{GitResult, NewCommit, from, object_id};
use ce_model::digest::ObjectId;

/// What begins a signature that was made with an ssh key.
const SSH: &[u8] = b"-----BEGIN SSH SIGNATURE-----";

/// Settings to check signatures: only those of ssh keys are looked at, and no other program is started for a commit that
/// pretends to have such a one.
const SETTINGS: [&str; 4] = [
    "gpg.program=false",
    "gpg.openpgp.program=false",
    "gpg.x509.program=false",
    "log.showSignature=false",
];

/// What `git log` prints of a commit: four fields, each of which a zero byte ends.
const FORMAT: &str = "--format=%H%x00%G?%x00%GS%x00%GF";

/// What `git` says if it cannot start the program that checks signatures. Nothing is known of any commit then.
const NOT_STARTED: [&str; 2] = ["cannot exec", "cannot run"];

/// A commit, as far as it says what was added by whom.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorCommit {
    /// Its tree.
    pub tree: ObjectId,
    /// Its parents, in order.
    pub parents: Vec<ObjectId>,
    /// The signature that it claims to have.
    pub signature: SignatureKind,
}

/// A kind of signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureKind {
    /// None.
    None,
    /// That of an ssh key.
    Ssh,
    /// Any other, such as that of an OpenPGP key.
    Other,
}

/// What was found of the signature of a commit.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommitSignature {
    /// There is none.
    None,
    /// It is not one of an ssh key.
    Other,
    /// It is wrong, or was made with a revoked key.
    Bad,
    /// It is right, but its key was none of an allowed signer when the commit was made.
    Unknown {
        /// The fingerprint of the key.
        key: String,
    },
    /// It is that of an allowed signer.
    Good {
        /// The name of the signer, as the file of allowed signers has it.
        principal: String,
        /// The fingerprint of the key.
        key: String,
    },
}

impl Mirror {
    /// Reads a commit.
    pub fn commit(&self, id: &ObjectId) -> Result<MirrorCommit, MirrorError> {
        let read = || -> GitResult<_> {
            let commit = self.repository.find_commit(from(id)?)?;
            let commit = commit.decode()?;
            let header = |name| commit.extra_headers().find(name);
            let signature = match header("gpgsig").or_else(|| header("gpgsig-sha256")) {
                None => SignatureKind::None,
                Some(text) if text.starts_with(SSH) => SignatureKind::Ssh,
                Some(_) => SignatureKind::Other,
            };
            let parents = commit.parents().map(object_id).collect::<GitResult<Vec<_>>>()?;
            Ok(MirrorCommit { tree: object_id(commit.tree())?, parents, signature })
        };
        read().map_err(|source| self.own(source))
    }

    /// Checks the signatures of commits that claim to be signed with ssh keys, all in one process. `signers` is a file of allowed
    /// signers as ssh has it.
    pub fn signatures(
        &self,
        commits: &[ObjectId],
        signers: &Path,
    ) -> Result<HashMap<ObjectId, CommitSignature>, MirrorError> {
        if commits.is_empty() {
            return Ok(HashMap::new());
        }
        let lines: String = commits.iter().map(|id| format!("{}\n", id.full())).collect();
        let signers = format!("gpg.ssh.allowedSignersFile={}", signers.display());
        let mut args = vec!["-c", &signers];
        args.extend(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
        args.extend(["log", "--no-walk=unsorted", "--stdin", "-z", FORMAT]);
        let output = self.git("log", GitReach::Local, &args, lines.as_bytes())?;
        let said = String::from_utf8_lossy(&output.stderr);
        if NOT_STARTED.iter().any(|it| said.contains(it)) {
            return Err(self.failed("log", &output, ""));
        }
        let text = String::from_utf8_lossy(&output.stdout);
        let fields: Vec<&str> = text.split('\0').collect();
        let signatures = fields.chunks(4).filter_map(|fields| {
            let &[commit, state, principal, key] = fields else { return None };
            Some((commit.parse().ok()?, found(state, principal, key)))
        });
        Ok(signatures.collect())
    }

    /// Writes a commit that is signed as the user has set it up for `git`, under the user's name. Returns its id.
    ///
    /// # Errors
    ///
    /// Fails if `git` does: it has no name or key of the user, or cannot sign.
    pub fn signed_commit(&self, commit: &NewCommit<'_>) -> Result<ObjectId, MirrorError> {
        let mut args = vec!["commit-tree", "-S", "-F", "-"];
        args.extend(commit.parents.iter().flat_map(|parent| ["-p", parent.full()]));
        args.push(commit.tree.full());
        let output =
            self.git("commit-tree -S", GitReach::Local, &args, commit.message.as_bytes())?;
        let id = String::from_utf8_lossy(&output.stdout);
        let id = id.trim().parse();
        id.map_err(|_| self.failed("commit-tree -S", &output, "it has written no commit"))
    }

    /// The value that a setting has for `git` in a mirror: the system's or the user's own; `None` if there is none.
    pub fn users_path(&self, name: &str) -> Result<Option<String>, MirrorError> {
        let output = self.run(GitReach::Local, &["config", "--type=path", "--get", name], &[]);
        let output = output.map_err(|source| self.own(source))?;
        let value = String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned();
        Ok(output.status.success().then_some(value))
    }
}

/// What the letter means that `git` has for a signature.
fn found(state: &str, principal: &str, key: &str) -> CommitSignature {
    let (principal, key) = (principal.to_owned(), key.to_owned());
    match state {
        "G" if key.starts_with("SHA256:") && !principal.is_empty() => {
            CommitSignature::Good { principal, key }
        }
        "U" => CommitSignature::Unknown { key },
        _ => CommitSignature::Bad,
    }
}
