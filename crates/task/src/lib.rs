//! Tasks: [`load`] reads them from a repository, or finds all their problems; [`edit`] makes and changes them;
//! [`programs`] asks whether their programs can be read.

pub mod edit;
pub mod load;
pub mod programs;
