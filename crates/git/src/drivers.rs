//! External filters: programs that Git's configuration names, and attributes give to files. None is
//! ever started here.
//!
//! Without its filter, the blob that Git would record of a file is unknown. Its own contents are
//! used.

use std::collections::HashSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use gix::attrs::StateRef;
use gix::attrs::search::Outcome;
use gix::bstr::{BStr, BString};
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;
use gix::{ObjectId, Repository};

use super::GitResult;

/// The section of the configuration.
const SECTION: &str = "filter";

/// The keys of a filter that name a program, or ask for one.
const KEYS: [&str; 4] = ["clean", "smudge", "process", "required"];

/// Takes all programs from the configuration of an open repository. The names of filters that had
/// any stay.
pub(super) fn disarm(repository: &mut Repository) -> GitResult<()> {
    let config = repository.config_snapshot();
    let named = config.plumbing().sections_and_ids_by_name(SECTION);
    let sections: Vec<_> = named.into_iter().flatten().map(|(_, id)| id).collect();
    if sections.is_empty() {
        return Ok(());
    }
    let mut config = repository.config_snapshot_mut();
    for id in sections {
        let Some(mut section) = config.section_mut_by_id(id) else { continue };
        let mut programs = 0;
        for key in KEYS {
            while let Some(value) = section.remove(key) {
                programs += usize::from(key != "required" && !value.is_empty());
            }
        }
        if programs == 0 {
            config.remove_section_by_id(id);
        }
    }
    config.commit()?;
    Ok(())
}

/// The files of a work tree that have an external filter.
pub(super) struct Drivers<'a> {
    known: HashSet<BString>,
    stack: gix::AttributeStack<'a>,
    outcome: Outcome,
}

impl<'a> Drivers<'a> {
    /// The filters of a repository, if it has any.
    pub(super) fn of(repository: &'a Repository, index: &State) -> GitResult<Option<Self>> {
        let config = repository.config_snapshot();
        let sections = config.plumbing().sections_by_name(SECTION).into_iter().flatten();
        let names = sections.filter_map(|it| it.header().subsection_name().map(BStr::to_owned));
        let known: HashSet<BString> = names.collect();
        if known.is_empty() {
            return Ok(None);
        }
        let stack = repository.attributes_only(index, Source::WorktreeThenIdMapping)?;
        let outcome = stack.selected_attribute_matches([SECTION]);
        Ok(Some(Self { known, stack, outcome }))
    }

    /// The external filter of a file, if it has one.
    pub(super) fn of_file(&mut self, path: &BStr) -> GitResult<Option<String>> {
        self.stack.at_entry(path, Some(Mode::FILE))?.matching_attributes(&mut self.outcome);
        let found = self.outcome.iter_selected().find_map(|found| match found.assignment.state {
            StateRef::Value(name) => self.known.get(name.as_bstr()),
            _ => None,
        });
        Ok(found.map(ToString::to_string))
    }
}

/// Whether a file has the contents of a blob.
pub(super) fn is_blob(repository: &Repository, path: &Path, id: ObjectId) -> GitResult<bool> {
    let mut file = File::open(path)?;
    // The contents that a filter keeps elsewhere are large, and the blob is not.
    let size = repository.find_header(id).map(|header| header.size());
    if size.is_ok_and(|size| file.metadata().is_ok_and(|it| it.len() != size)) {
        return Ok(false);
    }
    let mut contents = Vec::new();
    file.read_to_end(&mut contents)?;
    Ok(gix::objs::compute_hash(id.kind(), gix::objs::Kind::Blob, &contents)? == id)
}
