//! Trust: whether a result is taken, by who has signed the commit that added it.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::{fmt, fs};

use ce_git::{CommitSignature, Config, Mirror, RemoteRef};
use ce_model::digest::ObjectId;
use ce_model::exit::Error;

use crate::ResultsError;
use crate::signed_history::{Introduction, SignedHistory, Signers};

/// The name under which a mirror remembers the last results that were seen.
const SEEN: &str = "seen";

/// The signers that are trusted, and the results that they are trusted for.
#[derive(Clone, Debug, Default)]
pub struct TrustSettings {
    /// The file of allowed signers, as ssh has it. Without one, everything is believed.
    pub signers: Option<PathBuf>,
    /// The results that each signer is trusted for.
    pub rules: Vec<TrustRule>,
    /// The number of attesters that a call needs.
    pub require: Option<NonZeroUsize>,
    /// Whether results may have another history than before.
    pub rewritten: bool,
}

impl TrustSettings {
    /// Reads the settings: as the user says, or as Git's configuration has them.
    ///
    /// # Errors
    ///
    /// Fails if a setting is wrong or the file of signers cannot be read, or if rules or a number of attesters need a
    /// file of signers and there is none.
    pub fn new(
        mirror: &Mirror,
        config: &Config,
        signers: Option<PathBuf>,
        require: Option<NonZeroUsize>,
        rewritten: bool,
    ) -> Result<Self, Error> {
        let signers = match signers {
            Some(file) => Some(file),
            None => config.signers()?,
        };
        let rules: Vec<TrustRule> =
            config.trust()?.iter().map(|line| TrustRule::of_line(line)).collect();
        let require = match require {
            Some(number) => Some(number),
            None => config.require()?,
        };
        if signers.is_none() && !rules.is_empty() {
            return Err(ResultsError::NoSigners.into());
        }
        if let Some(number) = require.map(usize::from)
            && number > 1
            && signers.is_none()
        {
            return Err(ResultsError::TooFewSigners(number).into());
        }
        let trust = Self { signers, rules, require, rewritten };
        trust.check_signers(mirror)?;
        Ok(trust)
    }

    /// Reads the files that decide whose signatures count, if there are any.
    fn check_signers(&self, mirror: &Mirror) -> Result<(), ResultsError> {
        self.signers.as_ref().map_or(Ok(()), |file| Signers::read(mirror, file).map(drop))
    }

    /// The principals of rules that the file of allowed signers does not name. Such a name is probably mistyped, so
    /// another signer is trusted for everything. An unreadable file names no principal.
    pub fn strangers(&self) -> impl Iterator<Item = &str> {
        let text = self.signers.as_ref().and_then(|file| fs::read_to_string(file).ok());
        let text = text.unwrap_or_default();
        let principals: Vec<String> = text.lines().flat_map(principals).collect();
        let names = self.rules.iter().map(|rule| rule.principal.as_str());
        names.filter(move |name| !principals.iter().any(|it| matches(it, name)))
    }
}

/// The names or patterns of names that a line of a file of allowed signers begins with.
fn principals(line: &str) -> impl Iterator<Item = String> {
    let names = line.trim_start();
    let names = match names.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => names.split_whitespace().next(),
    };
    names.unwrap_or_default().split(',').map(str::to_owned)
}

/// A signer, and the computations and tasks that he is trusted for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustRule {
    principal: String,
    patterns: Vec<String>,
}

impl TrustRule {
    /// Reads a line: the name of a signer as the file of allowed signers has it, and patterns such as `c_align*`. Without any, he is
    /// trusted for everything.
    pub fn of_line(line: &str) -> Self {
        let mut words = line.split_whitespace().map(str::to_owned);
        let principal = words.next().unwrap_or_default();
        Self { principal, patterns: words.collect() }
    }

    fn fits(&self, owner: &str) -> bool {
        self.patterns.is_empty() || self.patterns.iter().any(|it| matches(it, owner))
    }
}

/// The reason why no trusted signer vouches for something. The first ones are the nearest to trust.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distrust {
    /// Its signer is trusted for other results only.
    NotFor {
        /// The signer.
        principal: String,
    },
    /// Its key does not belong to an allowed signer.
    Unknown {
        /// The fingerprint of the key.
        key: String,
    },
    /// Its signature is wrong, or its key revoked.
    Bad,
    /// Its signature is not one of an ssh key.
    Other,
    /// A commit has replaced another file by it.
    Replaced { commit: ObjectId },
    /// It is not signed.
    Unsigned,
}

impl fmt::Display for Distrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFor { principal } => {
                write!(f, "it is signed by {principal}, who is not trusted for it")
            }
            Self::Unknown { key } => {
                write!(f, "it is signed with the key {key}, which belonged to no allowed signer")
            }
            Self::Bad => write!(f, "its signature is wrong, or its key revoked"),
            Self::Other => write!(f, "it is signed, but not with an ssh key"),
            Self::Replaced { commit } => {
                write!(f, "the commit {} has put it in place of another one", commit.short())
            }
            Self::Unsigned => write!(f, "it is not signed"),
        }
    }
}

/// A signer of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileSigner<'a> {
    pub(super) principal: &'a str,
    pub(super) key: &'a str,
    pub(super) commit: &'a ObjectId,
}

/// The trust in the results of a repository.
#[derive(Debug)]
pub(super) struct Trust {
    /// The commits with their signatures; `None` if everything is believed.
    history: Option<SignedHistory>,
    rules: Vec<TrustRule>,
}

impl Trust {
    /// Judges the results of a repository, unless everything is believed.
    pub(super) fn from_settings(
        mirror: &Mirror,
        tip: &ObjectId,
        settings: &TrustSettings,
    ) -> Result<Self, ResultsError> {
        let history = match &settings.signers {
            Some(file) => Some(SignedHistory::judge(mirror, tip, &Signers::read(mirror, file)?)?),
            None => None,
        };
        Ok(Self { history, rules: settings.rules.clone() })
    }

    /// Whether a signer who is trusted for a result vouches for a file with these contents. `owner` is the beginning of
    /// the result's name: its computation or task.
    pub(super) fn check(&self, path: &str, id: &ObjectId, owner: &str) -> Result<(), Distrust> {
        let Some(history) = &self.history else { return Ok(()) };
        let mut nearest = Distrust::Unsigned;
        for introduction in history.introductions(path, id) {
            match self.judge(introduction, owner) {
                Ok(_) => return Ok(()),
                Err(distrust) => nearest = nearest.min(distrust),
            }
        }
        Err(nearest)
    }

    /// Returns the allowed signers of a file with these contents, regardless of the results that they are trusted for.
    pub(super) fn signers(&self, path: &str, id: &ObjectId) -> Vec<FileSigner<'_>> {
        let history = self.history.iter();
        let introductions = history.flat_map(|history| history.introductions(path, id));
        introductions.filter_map(signer).collect()
    }

    /// Whether a signer is trusted for the results of a computation or task.
    pub(super) fn is_trusted(&self, principal: &str, owner: &str) -> bool {
        let mut rules = self.rules.iter().filter(|rule| rule.principal == principal).peekable();
        rules.peek().is_none() || rules.any(|rule| rule.fits(owner))
    }

    /// The files that commits have taken away, each with the commit.
    pub(super) fn removed(&self) -> impl Iterator<Item = (&str, &ObjectId)> {
        self.history.iter().flat_map(SignedHistory::removed)
    }

    fn judge<'a>(
        &self,
        introduction: Introduction<'a>,
        owner: &str,
    ) -> Result<FileSigner<'a>, Distrust> {
        let Introduction { commit, is_replacement } = introduction;
        if is_replacement {
            return Err(Distrust::Replaced { commit: commit.commit.clone() });
        }
        match (signer(introduction), &commit.signature) {
            (Some(signer), _) if self.is_trusted(signer.principal, owner) => Ok(signer),
            (Some(signer), _) => Err(Distrust::NotFor { principal: signer.principal.to_owned() }),
            (None, CommitSignature::Unknown { key }) => Err(Distrust::Unknown { key: key.clone() }),
            (None, CommitSignature::Bad) => Err(Distrust::Bad),
            (None, CommitSignature::Other) => Err(Distrust::Other),
            (None, CommitSignature::None | CommitSignature::Good { .. }) => Err(Distrust::Unsigned),
        }
    }
}

/// The allowed signer of a commit that adds a file.
fn signer(Introduction { commit, is_replacement }: Introduction<'_>) -> Option<FileSigner<'_>> {
    match &commit.signature {
        CommitSignature::Good { principal, key } if !is_replacement => {
            Some(FileSigner { principal, key, commit: &commit.commit })
        }
        _ => None,
    }
}

/// Refuses results whose history does not contain the ones that were last seen.
pub(super) fn check_history(
    mirror: &Mirror,
    tip: Option<&RemoteRef>,
    settings: &TrustSettings,
) -> Result<(), ResultsError> {
    let seen = mirror.note(SEEN)?.and_then(|text| String::from_utf8(text).ok());
    let seen: Option<ObjectId> = seen.and_then(|text| text.trim().parse().ok());
    let Some(old) = seen.filter(|_| !settings.rewritten) else { return Ok(()) };
    let url = mirror.url().to_owned();
    match tip.map(|tip| tip.id.clone()) {
        None => Err(ResultsError::Deleted { url, old }),
        Some(new) if !leads_back(mirror, &new, &old)? => {
            Err(ResultsError::Rewritten { url, old, new })
        }
        Some(_) => Ok(()),
    }
}

/// Remembers the results that were seen.
pub(super) fn remember(mirror: &Mirror, tip: &RemoteRef) -> Result<(), ResultsError> {
    let text = format!("{}\n", tip.id.full());
    if mirror.note(SEEN)?.as_deref() != Some(text.as_bytes()) {
        mirror.put_note(SEEN, text.as_bytes())?;
    }
    Ok(())
}

/// Whether a commit leads back to another one.
fn leads_back(mirror: &Mirror, new: &ObjectId, old: &ObjectId) -> Result<bool, ResultsError> {
    let mut seen = std::collections::HashSet::from([new.clone()]);
    let mut waiting = vec![new.clone()];
    while let Some(commit) = waiting.pop() {
        if commit == *old {
            return Ok(true);
        }
        let parents = mirror.commit(&commit)?.parents;
        waiting.extend(parents.into_iter().filter(|parent| seen.insert(parent.clone())));
    }
    Ok(false)
}

/// Whether a text matches a pattern, in which `*` stands for any text and `?` for any character.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut place) = (0, 0);
    // The place of the last star, and the end of the text that it stands for at least.
    let mut star = None;
    while place < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, place));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[place] => {
                at += 1;
                place += 1;
            }
            _ => {
                let Some((of_star, until)) = star else { return false };
                star = Some((of_star, until + 1));
                (at, place) = (of_star + 1, until + 1);
            }
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text, is_match) in [
            ("c_*", "c_once", true),
            ("c_*", "t_once", false),
            ("*", "", true),
            ("c_o?ce", "c_once", true),
            ("c_o?ce", "c_oce", false),
            ("once", "c_once", false),
            ("c_*n*e", "c_once-once", true),
            ("c_*n*e", "c_once-oncx", false),
            ("", "c", false),
        ] {
            assert_eq!(matches(pattern, text), is_match, "{pattern} {text}");
        }
    }

    #[test]
    fn a_signer_without_a_line_is_trusted_for_everything() {
        let rules = ["alice c_a* t_x", "alice c_b", "bob", "carol c_"].map(TrustRule::of_line);
        let trust = Trust { history: None, rules: rules.to_vec() };
        for (principal, owner, is_trusted) in [
            ("alice", "c_a1", true),
            ("alice", "c_b", true),
            ("alice", "c_c", false),
            ("bob", "c_c", true),
            ("carol", "c_c", false),
            ("dave", "c_c", true),
        ] {
            assert_eq!(trust.is_trusted(principal, owner), is_trusted, "{principal} {owner}");
        }
    }
}
