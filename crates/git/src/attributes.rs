//! The attributes of files in a commit, and in a work tree.

use std::collections::HashSet;
use std::path::Path;

use gix::Repository;
use gix::attrs::search::{MetadataCollection, Outcome};
use gix::attrs::{Search, StateRef};
use gix::bstr::{BStr, BString, ByteSlice};
use gix::filter::plumbing::encoding::Encoding;
use gix::glob::pattern::Case;
use gix::index::State;
use gix::index::entry::Mode;
use gix::worktree::stack::state::attributes::Source;

use super::opening::{SECTION, Unsupported};
use super::{GitResult, to_path};

/// The file of a directory with the attributes of files there and below.
pub(super) const ATTRIBUTES: &str = ".gitattributes";

/// The attributes that the files around a directory, and in it, give to files there.
#[derive(Clone, Default)]
pub(super) struct CommitAttributes {
    search: Search,
    names: MetadataCollection,
    /// One of the files with attributes names filters.
    pub(super) names_filters: bool,
}

impl std::fmt::Debug for CommitAttributes {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("CommitAttributes").finish_non_exhaustive()
    }
}

impl CommitAttributes {
    /// Adds the attributes that a directory has, given by its path in the repository.
    pub(super) fn add(&mut self, dir: &Path, contents: &[u8]) {
        let (source, is_root) = (dir.join(ATTRIBUTES), dir.as_os_str().is_empty());
        let root = Some(Path::new(""));
        // Git passes over lines that it cannot read, too.
        drop(self.search.add_patterns_buffer(contents, source, root, &mut self.names, is_root));
        self.names_filters |= contents.contains_str("filter");
    }

    /// The filter of a file.
    pub(super) fn filter_of(&self, path: &Path) -> Option<String> {
        if !self.names_filters {
            return None;
        }
        let mut outcome = Outcome::default();
        outcome.initialize_with_selection(&self.names, ["filter"]);
        let path: &BStr = path.as_os_str().as_encoded_bytes().as_bstr();
        self.search.pattern_matching_relative_path(
            path,
            Case::Sensitive,
            Some(false),
            &mut outcome,
        );
        outcome.iter_selected().find_map(|found| match found.assignment.state {
            StateRef::Value(name) => Some(name.as_bstr().to_string()),
            StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
        })
    }
}

/// The filter of Git LFS, which needs no program here.
pub(super) const LFS: &str = "lfs";

/// An attribute of the files of a work tree.
struct Attribute<'a> {
    stack: gix::AttributeStack<'a>,
    outcome: Outcome,
}

impl<'a> Attribute<'a> {
    fn open(repository: &'a Repository, index: &State, name: &str) -> GitResult<Self> {
        let stack = repository.attributes_only(index, Source::WorktreeThenIdMapping)?;
        let outcome = stack.selected_attribute_matches([name]);
        Ok(Self { stack, outcome })
    }

    /// The value that a file has, if it is a word.
    fn value(&mut self, path: &BStr) -> GitResult<Option<String>> {
        self.stack.at_entry(path, Some(Mode::FILE))?.matching_attributes(&mut self.outcome);
        Ok(self.outcome.iter_selected().find_map(|found| match found.assignment.state {
            StateRef::Value(name) => Some(name.as_bstr().to_string()),
            StateRef::Set | StateRef::Unset | StateRef::Unspecified => None,
        }))
    }
}

/// Returns the cause why files of a work tree cannot be compared with their blobs, or converted to them, if it is known. `files` are
/// relative to the top.
pub(super) fn unsupported<'p>(
    repository: &Repository,
    index: &State,
    files: impl Iterator<Item = &'p BStr>,
) -> GitResult<Option<Unsupported>> {
    if repository.submodules().is_err() {
        return Ok(Some(Unsupported::Modules));
    }
    let mut encodings = Attribute::open(repository, index, "working-tree-encoding")?;
    for path in files {
        if let Some(encoding) = encodings.value(path)?
            && Encoding::for_label(encoding.as_bytes()).is_none()
        {
            let file = to_path(path);
            return Ok(Some(Unsupported::Encoding { file, encoding }));
        }
    }
    Ok(None)
}

/// The filters that attributes give to the files of a work tree.
pub(super) struct Drivers<'a> {
    /// The filters that the configuration has a program for.
    programs: HashSet<BString>,
    filters: Attribute<'a>,
}

impl<'a> Drivers<'a> {
    pub(super) fn read(repository: &'a Repository, index: &State) -> GitResult<Self> {
        let config = repository.config_snapshot();
        let sections = config.plumbing().sections_by_name(SECTION).into_iter().flatten();
        let names = sections.filter_map(|it| it.header().subsection_name().map(BStr::to_owned));
        let programs = names.collect();
        Ok(Self { programs, filters: Attribute::open(repository, index, SECTION)? })
    }

    /// The filter of a file, if it has one.
    pub(super) fn of_file(&mut self, path: &BStr) -> GitResult<Option<String>> {
        self.filters.value(path)
    }

    /// Whether a filter is a program here.
    pub(super) fn is_program(&self, filter: &str) -> bool {
        self.programs.contains(filter.as_bytes().as_bstr())
    }
}
