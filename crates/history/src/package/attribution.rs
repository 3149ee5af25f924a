//! The authors of the contents of a crate, and the licence under which it may be used: from options, or else from the file
//! `CITATION.cff` of the task's repository.

use std::path::Path;

use ce_git::Snapshot;
use ce_model::digest::ObjectId;
use ce_model::exit::Explain;
use saphyr_parser::{Event, Parser};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::entities::is_web_address;
use super::licence::{LicenceFault, LicenceName};

/// The file that says how a repository is cited, at its top: <https://citation-file-format.github.io>.
const CITATION_FILE: &str = "CITATION.cff";

/// The greatest size of that file, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// The directory with the texts of licences: <https://reuse.software>.
const LICENCE_TEXTS: &str = "LICENSES";

/// The prefix of the addresses of people at ORCID.
const ORCID: &str = "https://orcid.org/";

/// The deepest nesting of lists and mappings in it.
const DEEPEST: usize = 32;

/// A person or organization.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Contributor {
    pub name: String,
    /// A page about the person, such as at ORCID.
    pub url: Option<String>,
    /// Its address for mails, by which it is known; it is not published.
    pub mail: Option<String>,
    /// The name of the organization that a person belongs to.
    pub affiliation: Option<String>,
    pub is_organization: bool,
}

impl Contributor {
    /// Reads `NAME` or `NAME <URL>`; an ORCID may stand for the URL.
    ///
    /// # Errors
    ///
    /// Fails if it is neither.
    pub fn parse(text: &str, is_organization: bool) -> Result<Self, AttributionFault> {
        let (name, url) = match text.strip_suffix('>').and_then(|text| text.split_once('<')) {
            Some((name, url)) => (name, Some(url.trim())),
            None => (text, None),
        };
        let name = name.trim();
        let url = url.map(page).transpose()?;
        if name.is_empty() || name.contains(['<', '>']) || name.chars().any(char::is_control) {
            return Err(AttributionFault::Name);
        }
        Ok(Self { name: name.to_owned(), url, is_organization, ..Self::default() })
    }

    /// An organization whose name is known.
    pub(super) fn organization(name: &str) -> Self {
        Self { name: name.to_owned(), is_organization: true, ..Self::default() }
    }

    /// Whether two are the same: as ORCID knows them, and else by their names or addresses for mails.
    pub(super) fn is(&self, other: &Self) -> bool {
        let mails = self.mail.as_ref().zip(other.mail.as_ref());
        match (self.orcid(), other.orcid()) {
            (Some(one), Some(other)) => one == other,
            _ => {
                self.name == other.name
                    || mails.is_some_and(|(one, other)| one.eq_ignore_ascii_case(other))
            }
        }
    }

    fn orcid(&self) -> Option<&String> {
        self.url.as_ref().filter(|url| url.starts_with(ORCID))
    }

    /// Adds the details of another description of the same person.
    fn complete(&mut self, other: &Self) {
        let url = self.orcid().or(other.orcid()).or(self.url.as_ref()).or(other.url.as_ref());
        self.url = url.cloned();
        self.mail = self.mail.take().or_else(|| other.mail.clone());
        if !self.is_organization {
            self.affiliation = self.affiliation.take().or_else(|| other.affiliation.clone());
        }
    }
}

/// The address of a page. An ORCID is short for one.
fn page(text: &str) -> Result<String, AttributionFault> {
    let is_orcid = text.len() == 19
        && text.bytes().enumerate().all(|(at, byte)| match at {
            4 | 9 | 14 => byte == b'-',
            18 => byte.is_ascii_digit() || byte == b'X',
            _ => byte.is_ascii_digit(),
        });
    match text {
        orcid if is_orcid => Ok(format!("{ORCID}{orcid}")),
        url if is_web_address(url) => Ok(url.to_owned()),
        _ => Err(AttributionFault::Page(text.to_owned())),
    }
}

/// The authors of the contents of a crate, and the licences under which it may be used, at the user's choice.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attribution {
    pub licences: Vec<LicenceName>,
    pub authors: Vec<Contributor>,
    /// The organization that publishes it.
    pub publisher: Option<Contributor>,
}

impl Attribution {
    /// All contributors that it names, and `by`, each once, with all their attributes.
    pub(super) fn people(&self, by: Option<&Contributor>) -> Vec<Contributor> {
        let mut people: Vec<Contributor> = Vec::new();
        for named in self.publisher.iter().chain(&self.authors).chain(by) {
            match people.iter_mut().find(|known| known.is(named)) {
                Some(known) => known.complete(named),
                None => people.push(named.clone()),
            }
        }
        people
    }

    /// Completes the options by `CITATION.cff` of a commit, and finds there the texts of licences that are not in the
    /// list.
    ///
    /// # Errors
    ///
    /// Fails if neither says it, the file is needed and cannot be read, or a text is not there.
    pub fn or_cited(mut self, top: &Path, commit: &ObjectId) -> Result<Self, AttributionError> {
        let read = |path: &str| {
            let snapshot = Snapshot::open(top, commit.full()).ok()?;
            let file = snapshot.find(Path::new(path)).ok()?;
            snapshot.read(&file).ok()
        };
        if (self.licences.is_empty() || self.authors.is_empty())
            && let Some(contents) = read(CITATION_FILE)
        {
            let cited = cited(&contents).map_err(|source| {
                let commit = commit.short().to_owned();
                AttributionError::Unreadable { commit, source: Box::new(source) }
            })?;
            if self.licences.is_empty() {
                self.licences = cited.licences;
            }
            if self.authors.is_empty() {
                self.authors = cited.authors;
            }
        }
        for (name, text) in self.licences.iter_mut().flat_map(|it| &mut it.own) {
            let file = format!("{LICENCE_TEXTS}/{name}.txt");
            let found = read(&file).filter(|contents| contents.len() <= MOST_BYTES);
            *text = found.and_then(|it| String::from_utf8(it).ok()).ok_or_else(|| {
                let (name, commit) = (name.clone(), commit.short().to_owned());
                AttributionError::NoText { name, file, commit }
            })?;
        }
        let missing = match (self.licences.is_empty(), self.authors.is_empty()) {
            (true, true) => "licence and authors",
            (true, false) => "licence",
            (false, true) => "authors",
            (false, false) => return Ok(self),
        };
        Err(AttributionError::Missing { missing, commit: commit.short().to_owned() })
    }
}

/// The fields of `CITATION.cff` that are needed.
#[derive(Deserialize)]
struct CitedWork {
    #[serde(default)]
    license: OneOrSeveral,
    /// The address of a licence that is in no list.
    #[serde(rename = "license-url")]
    license_url: Option<String>,
    #[serde(default)]
    authors: Vec<CitedAuthor>,
}

#[derive(Default, Deserialize)]
#[serde(untagged)]
enum OneOrSeveral {
    #[default]
    None,
    One(String),
    Several(Vec<String>),
}

/// A person has family names or given names, and anything else `name`.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct CitedAuthor {
    name: Option<String>,
    given_names: Option<String>,
    name_particle: Option<String>,
    family_names: Option<String>,
    name_suffix: Option<String>,
    orcid: Option<String>,
    website: Option<String>,
    email: Option<String>,
    affiliation: Option<String>,
}

fn cited(contents: &[u8]) -> Result<Attribution, AttributionFault> {
    if contents.len() > MOST_BYTES {
        return Err(AttributionFault::Size);
    }
    let text = str::from_utf8(contents).map_err(|_| AttributionFault::NoText)?;
    let work: CitedWork = serde_json::from_value(yaml(text)?)?;
    let licences = match work.license {
        OneOrSeveral::None => work.license_url.into_iter().collect(),
        OneOrSeveral::One(licence) => vec![licence],
        OneOrSeveral::Several(licences) => licences,
    };
    let licences =
        licences.iter().map(|text| LicenceName::parse(text)).collect::<Result<_, _>>()?;
    let authors = work.authors.into_iter().map(contributor).collect::<Result<_, _>>()?;
    Ok(Attribution { licences, authors, publisher: None })
}

fn contributor(author: CitedAuthor) -> Result<Contributor, AttributionFault> {
    let is_organization = author.name.is_some();
    let parts = [
        author.name,
        author.given_names,
        author.name_particle,
        author.family_names,
        author.name_suffix,
    ];
    let name = parts.into_iter().flatten().collect::<Vec<_>>().join(" ");
    if name.trim().is_empty() {
        return Err(AttributionFault::Nameless);
    }
    let url = author.orcid.or(author.website);
    let url = url.map(|url| page(&url)).transpose()?;
    let affiliation = author.affiliation.filter(|_| !is_organization);
    Ok(Contributor { name, url, mail: author.email, affiliation, is_organization })
}

/// A list or mapping whose end is not read yet.
enum Unended {
    List(Vec<Value>),
    Mapping(Map<String, Value>, Option<String>),
}

/// The value that a text in YAML is. Every scalar is a text. References within it are refused: a short text of them may
/// be a value that no memory holds.
fn yaml(text: &str) -> Result<Value, AttributionFault> {
    let mut unended: Vec<Unended> = Vec::new();
    for event in Parser::new_from_str(text) {
        let (event, span) = event?;
        let line = span.start.line();
        let value = match event {
            Event::Scalar(text, ..) => Value::String(text.into_owned()),
            Event::SequenceStart(..) => {
                unended.push(Unended::List(Vec::new()));
                Value::Null
            }
            Event::MappingStart(..) => {
                unended.push(Unended::Mapping(Map::new(), None));
                Value::Null
            }
            Event::SequenceEnd | Event::MappingEnd => match unended.pop() {
                Some(Unended::List(list)) => Value::Array(list),
                Some(Unended::Mapping(mapping, _)) => Value::Object(mapping),
                None => Value::Null,
            },
            Event::Alias(_) => return Err(AttributionFault::Alias { line }),
            _ => Value::Null,
        };
        if unended.len() > DEEPEST {
            return Err(AttributionFault::Depth { line });
        }
        if value.is_null() {
            continue;
        }
        match unended.last_mut() {
            None => return Ok(value),
            Some(Unended::List(list)) => list.push(value),
            Some(Unended::Mapping(mapping, key)) => match (key.take(), value) {
                (Some(key), value) => drop(mapping.insert(key, value)),
                (None, Value::String(text)) => *key = Some(text),
                (None, _) => return Err(AttributionFault::Key { line }),
            },
        }
    }
    Err(AttributionFault::Empty)
}

/// The reason why the licence or the authors of a crate's contents are unknown.
#[derive(Debug, thiserror::Error, Explain)]
#[hint(
    "give --license CC-BY-4.0 and --author 'NAME <ORCID>', with the licence and the names that hold for these results"
)]
pub enum AttributionError {
    /// The options and the repository both lack it.
    #[error(
        "neither options nor {CITATION_FILE} at commit {commit} give the {missing} of the crate"
    )]
    Missing {
        /// The missing part, in words.
        missing: &'static str,
        commit: String,
    },
    /// A licence is in no list, and its text is missing, too large, or no text.
    #[error("the text of the licence {name} cannot be read from {file} at commit {commit}")]
    #[hint(
        "commit its text as {file} and run the task again; or give its address: --license https://..."
    )]
    NoText {
        /// The name of the licence.
        name: String,
        file: String,
        commit: String,
    },
    /// The file of the repository is wrong.
    #[error("{CITATION_FILE} at commit {commit} cannot be understood")]
    Unreadable {
        commit: String,
        /// The cause.
        source: Box<AttributionFault>,
    },
}

/// A fault of a licence, of an author, or of a file that names them.
#[derive(Debug, thiserror::Error)]
pub enum AttributionFault {
    /// A name is missing.
    #[error("expected NAME or 'NAME <URL>'")]
    Name,
    /// The text is not the address of a page.
    #[error(
        "{0:?} is neither an address that begins with https:// nor an ORCID such as 0000-0002-1825-0097"
    )]
    Page(String),
    /// The text is not a licence.
    #[error(transparent)]
    Licence(#[from] LicenceFault),
    /// The file is too large.
    #[error("it has more than 1 MiB")]
    Size,
    /// The file is not a text.
    #[error("it is not UTF-8")]
    NoText,
    /// The file says nothing.
    #[error("it is empty")]
    Empty,
    /// The file is not written as it should be.
    #[error("it is not YAML")]
    Syntax(#[from] saphyr_parser::ScanError),
    /// A field is of another kind.
    #[error("a field has an invalid value")]
    Field(#[from] serde_json::Error),
    /// An author has no name.
    #[error("an author has no name")]
    Nameless,
    /// A reference within the file.
    #[error("line {line} refers to another part")]
    Alias { line: usize },
    /// Too many lists and mappings within each other.
    #[error("line {line} is nested too deeply")]
    Depth { line: usize },
    /// A key is a list or mapping.
    #[error("line {line} has a key that is a list or a mapping")]
    Key { line: usize },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_citation_file_names_licences_and_authors() {
        let text = "cff-version: 1.2.0\nlicense: [MIT, Apache-2.0]\nauthors:\n  - given-names: Ada\n    \
                    family-names: Lovelace\n    orcid: 'https://orcid.org/0000-0002-1825-0097'\n    \
                    affiliation: Example Lab\n  - name: \"The: others\"\n";
        let attribution = cited(text.as_bytes()).unwrap();
        let licences = ["MIT", "Apache-2.0"].map(|it| LicenceName::parse(it).unwrap());
        assert_eq!(attribution.licences, licences);
        let [ada, others] = &attribution.authors[..] else { unreachable!() };
        assert_eq!((&*ada.name, ada.is_organization), ("Ada Lovelace", false));
        assert_eq!(ada.affiliation.as_deref(), Some("Example Lab"));
        assert_eq!((&*others.name, others.is_organization), ("The: others", true));
        let one = cited(b"license: MIT\n").unwrap();
        assert_eq!((one.licences.len(), one.authors.len()), (1, 0));
        let own = cited(b"license-url: https://example.org/terms\n").unwrap();
        assert_eq!(own.licences, [LicenceName::parse("https://example.org/terms").unwrap()]);
    }

    #[test]
    fn a_person_named_twice_keeps_all_known_details() {
        let text = "authors:\n- {name: Lab, website: 'https://lab'}\n- {given-names: Ada, email: A@lab}\n\
                    - {given-names: A., email: a@lab, website: 'https://a', orcid: 0000-0002-1825-0097}\n\
                    - {given-names: Bob, orcid: 0000-0002-1694-233X}\n\
                    - {given-names: Bob, orcid: 0000-0001-5109-3700, affiliation: Lab}\n";
        let attribution = cited(text.as_bytes()).unwrap();
        let by = Contributor::parse("Ada <https://ada>", false).unwrap();
        let people = attribution.people(Some(&by));
        let known = people.iter().map(|it| (&*it.name, it.url.as_deref().unwrap_or_default()));
        assert_eq!(
            known.collect::<Vec<_>>(),
            [
                ("Lab", "https://lab"),
                ("Ada", "https://orcid.org/0000-0002-1825-0097"),
                ("Bob", "https://orcid.org/0000-0002-1694-233X"),
                ("Bob", "https://orcid.org/0000-0001-5109-3700"),
            ]
        );
        assert!(people[0].is(&Contributor::organization("Lab")));
    }

    #[test]
    fn an_invalid_citation_file_is_an_error_with_its_cause() {
        let [deep, deeper] = [100, 100_000].map(|depth| "[".repeat(depth));
        for (text, why) in [
            ("", "it is empty"),
            ("license: not one", "\"not\" is not in the list"),
            ("authors: [{orcid: x}]", "an author has no name"),
            ("authors: [{name: x, orcid: y}]", "is neither an address"),
            ("authors: x", "a field has an invalid value"),
            ("a: &a [x]\nb: [*a, *a]", "line 2 refers to another part"),
            ("? [a]\n: b", "has a key that is a list or a mapping"),
            ("license: [MIT", ""),
            (&deep, "line 1 is nested too deeply"),
            (&deeper, ""),
        ] {
            let error = cited(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        }
        assert!(cited(&[0xff]).is_err());
    }

    #[test]
    fn a_contributor_has_a_name_and_maybe_a_page() {
        let ada = Contributor::parse("Ada Lovelace <0000-0002-1825-009X>", false).unwrap();
        let url = "https://orcid.org/0000-0002-1825-009X";
        assert_eq!((&*ada.name, ada.url.as_deref()), ("Ada Lovelace", Some(url)));
        assert_eq!(Contributor::parse(" Lab ", true).unwrap().name, "Lab");
        for bad in ["", "<https://x>", "x <y>", "x <https://>", "a\nb", "a <b> c"] {
            assert!(Contributor::parse(bad, false).is_err(), "{bad}");
        }
    }
}
