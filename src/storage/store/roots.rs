//! What runs use: announced before it is looked for, so that nobody takes it away meanwhile.
//!
//! A run writes the names into its private directory and then looks. Whoever wants to take
//! something away first takes away its record, and then reads what is announced: one of the two
//! sees the other.

use std::collections::HashSet;

use super::Storage;
use crate::storage::disk::Result;
use crate::storage::layout::{DIGITS, Entry, RUNS, RunName, roots_file, task_input};
use crate::storage::records::JobRecord;

/// Names in the storage that are in use: files, results, and directories with all in them.
#[derive(Debug, Default)]
pub struct GcRoots(HashSet<String>);

impl Storage {
    /// Tells others that this run is going to look for these names, or below them.
    ///
    /// A storage that cannot be written is not told: nobody could take anything away from it. On
    /// one that is full, what this run uses may be taken away; a call that reads it then fails.
    pub fn announce_roots(&self, names: impl IntoIterator<Item = String>) {
        let text = names.into_iter().fold(String::new(), |text, name| text + &name + "\n");
        if self.root.writable && !text.is_empty() && self.run.appear(&self.root).is_ok() {
            drop(
                self.root
                    .disk
                    .append(&self.path(&roots_file(self.run.directory())), text.as_bytes()),
            );
        }
    }

    /// Returns what all other runs that live have announced.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn gc_roots(&self) -> Result<GcRoots> {
        let mut roots = GcRoots::default();
        for room in self.root.names(RUNS)? {
            let Ok(run) = room.parse::<RunName>() else { continue };
            let alive = run != *self.run.name()
                && !self.run.is_over(&run)
                && self.run.is_alive(&run, &self.root.disk, &self.root.path(&run.directory()));
            if let Some(text) =
                self.root.disk.read(&self.path(&roots_file(&format!("{RUNS}/{room}"))))?
                && alive
            {
                let text = String::from_utf8_lossy(&text);
                roots.0.extend(text.lines().map(str::to_owned));
            }
        }
        Ok(roots)
    }
}

impl GcRoots {
    /// Adds what a job was made of.
    pub fn add_job(&mut self, job: &JobRecord) {
        self.0.extend(job.calls.iter().cloned());
        let names = |digits| job.inputs.iter().map(move |it| task_input(&it.digest, digits));
        self.0.extend(DIGITS.into_iter().flat_map(names));
    }

    /// Whether a result with so many files is in use, or one of its files.
    pub fn has(&self, entry: &Entry, files: usize) -> bool {
        let whole = match entry {
            Entry::Call(name) | Entry::Job(name) => name.short(),
            Entry::TaskInput(_) => entry.file(0),
        };
        self.0.contains(&whole)
            || (0..files).map(|number| entry.file(number)).any(|file| self.has_file(&file))
    }

    /// Whether a file, or a directory that it is in, is in use.
    pub(in crate::storage) fn has_file(&self, file: &str) -> bool {
        let ends = file.match_indices('/').map(|(at, _)| at).chain([file.len()]);
        ends.map(|end| &file[..end]).any(|name| self.0.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_in_use_with_all_in_it_and_nothing_beside_it() {
        let roots = GcRoots(["c_add/123", "t_a/1/00/x"].map(str::to_owned).into());
        for used in ["c_add/123", "c_add/123/00/a_b", "t_a/1/00/x"] {
            assert!(roots.has_file(used), "{used}");
        }
        for free in ["c_add", "c_add/1234/00/a_b", "t_a/1/00/xy", "t_a/1/01/x"] {
            assert!(!roots.has_file(free), "{free}");
        }
    }
}
