//! The nouns of CompEval, and pure functions on them: digests, names, workflows, sweeps, and plans.
//!
//! Nothing here reads a file, starts a process, or prints.

// What the derivation of `Explain` names it.
extern crate self as ce_model;

/// Makes ids: indices with a type for each kind of thing.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub struct $name(u32);

        impl $name {
            /// The id of the thing at this place.
            pub fn at(index: usize) -> Self {
                debug_assert!(u32::try_from(index).is_ok(), "fewer than 2^32 things");
                Self(index as u32)
            }

            /// The place of the thing with this id.
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )+};
}

pub mod access;
pub mod declaration;
pub mod digest;
pub mod exit;
pub mod expression;
pub mod file_format;
pub mod host_use;
pub mod humanize;
pub mod leftovers;
pub mod name;
pub mod plan;
pub mod probe_diagnosis;
pub mod resources;
pub mod shared_text;
pub mod slice;
pub mod statistics;
pub mod suggest;
pub mod sweep;
pub mod system_hints;
pub mod task;
pub mod template;
pub mod text_file;
