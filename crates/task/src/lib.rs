//! Tasks: [`load`] reads them from a repository, or finds all their problems; [`edit`] makes and changes them.

pub mod edit;
pub mod load;
