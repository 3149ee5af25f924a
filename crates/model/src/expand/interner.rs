//! The levels of a column that is being read.

use std::collections::HashMap;
use std::sync::Arc;

/// The levels of a column that is being read.
#[derive(Default)]
pub(crate) struct Interner {
    known: HashMap<Arc<str>, u32>,
    levels: Vec<Arc<str>>,
}

impl Interner {
    /// Returns the number of a text.
    pub(crate) fn number(&mut self, text: &str) -> u32 {
        if let Some(number) = self.known.get(text) {
            return *number;
        }
        // A sheet of 1 GiB has fewer texts than there are numbers.
        let (number, text) = (self.levels.len() as u32, Arc::<str>::from(text));
        self.levels.push(Arc::clone(&text));
        self.known.insert(text, number);
        number
    }

    pub(crate) fn into_levels(self) -> Vec<Arc<str>> {
        self.levels
    }
}
