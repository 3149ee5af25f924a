//! Git trees as values: directories under the names of task inputs.

use std::path::Path;
use std::sync::atomic::Ordering;

use super::{Input, Inputs, NewTree};
use crate::disk::{Result, StorageError};
use ce_files::cache::digests;
use ce_files::manifest::Manifest;
use ce_model::digest::ObjectId;

impl Inputs<'_> {
    /// Returns the directory that a Git tree is, or that it would be. `None` if that is not known without
    /// reading the tree.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn known_tree(&self, tree: &ObjectId) -> Result<Option<Input>> {
        let cache = self.storage.ingest.cache.as_ref();
        let digest = cache.and_then(|cache| digests::look_up_tree(cache, tree));
        digest.map(|digest| self.known(digest)).transpose()
    }

    /// Returns the directory that a Git tree with this manifest is, or that it would be.
    ///
    /// # Errors
    ///
    /// Fails if the storage cannot be read.
    pub fn find_tree(&self, tree: &ObjectId, manifest: &Manifest) -> Result<Input> {
        let digest = manifest.digest();
        if let Some(cache) = &self.storage.ingest.cache {
            digests::insert_tree(cache, tree, digest);
        }
        self.known(digest)
    }

    /// Stores the directory that a Git tree is. A function writes its files, and returns their manifest.
    ///
    /// # Errors
    ///
    /// Fails if the function does, or the storage cannot be written. Then no part of it remains.
    pub fn store_tree<E: From<StorageError>>(
        &self,
        tree: &ObjectId,
        fill: impl FnOnce(&NewTree<'_>) -> Result<Manifest, E>,
    ) -> Result<Input, E> {
        let root = &self.storage.root;
        self.publish(|copy: &Path| {
            root.disk.make_dir(copy)?;
            let manifest = fill(&NewTree::private(root, copy))?;
            root.disk.seal_directory(copy)?;
            let digest = manifest.digest();
            root.keep_manifest(&digest, &manifest)?;
            if let Some(cache) = &self.storage.ingest.cache {
                digests::insert_tree(cache, tree, digest);
            }
            Ok(digest)
        })
    }

    /// Fails if the user asked to stop.
    ///
    /// # Errors
    ///
    /// Never fails for another reason.
    pub fn go_on(&self) -> Result<()> {
        match self.storage.ingest.stop.load(Ordering::Relaxed) {
            true => Err(StorageError::Interrupted),
            false => Ok(()),
        }
    }
}
