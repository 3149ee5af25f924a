//! What to do about the problems of a task.

use super::problems::LoadFault;
use super::words::committing;
use ce_model::exit::Explain;

impl LoadFault {
    /// A hint for the user, if this is the fault of a file or directory as a whole.
    fn file_hint(&self) -> Option<String> {
        let hint = match self {
            Self::Missing => "make it, or git restore it if it was removed by mistake",
            Self::Read(_) => "ls -l shows what it is, and who may read it",
            Self::NotAFile => "replace it by a file",
            Self::NotADirectory => "replace it by a directory",
            Self::Text(error) => return error.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }

    /// A hint for the user, if this is the fault of a value with the texts of its names.
    fn bound_hint(&self) -> Option<String> {
        match self {
            Self::NoComputation { nearest, .. } => {
                let meant = nearest.as_ref().map(|name| format!("did you mean {name:?}? else "));
                let meant = meant.unwrap_or_default();
                Some(format!("{meant}make it, or leave these points out in exclude.tsv"))
            }
            _ => self.hint(),
        }
    }
}

impl Explain for LoadFault {
    fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Kind(_) => {
                "write computation, input, literal, file, tree, member, sweep or points"
            }
            Self::NoComputation { nearest: Some(name), .. }
            | Self::NoInput { nearest: Some(name), .. }
            | Self::NoLabel { nearest: Some(name), .. } => {
                return Some(format!("did you mean {name:?}?"));
            }
            Self::NoComputation { name, nearest: None } if name.contains('{') => {
                "in braces, only a factor of a sweep around the node stands for its levels"
            }
            Self::NoComputation { nearest: None, .. } => {
                "if computations/ is a submodule: git submodule update --init --recursive; if a link, check where it leads"
            }
            Self::NoInput { nearest: None, .. } => {
                "name it in the file inputs of the task, or bind it in a sweep around the node"
            }
            Self::Duplicate { .. } => "give each input a name of its own",
            Self::TooMany(_) => "put them into a directory, which is one value",
            Self::Backwards => "write the smaller number first, as in 01_02-both",
            Self::OutOfSlice { .. } => "outputs are numbered from 00",
            Self::Cycle(_) => "remove the link",
            Self::NotExecutable => "chmod +x, and commit the change of mode",
            Self::Place => "call it nn-text or nn_mm-text, as in 00-left or 01_02-both",
            Self::Width { .. } => {
                "change the range in the name, or the file outputs of the sub-workflow"
            }
            Self::Gap { .. } | Self::Overlap { .. } => "number the inputs from 00, without gap",
            Self::Name(error) => return error.hint(),
            Self::NoFile(path) if path.contains('{') => {
                "in braces, only names of inputs of the task and of sweeps around the node stand for texts"
            }
            Self::OwnDirectory => {
                "read it as a tree: TREE('.:PATH'), with its path from the top of the repository"
            }
            Self::NoFile(_) => {
                "correct the path, which is relative to the task, or commit the file"
            }
            Self::Bound { fault, .. } => return fault.bound_hint(),
            Self::OtherSignature { what, .. } => {
                return Some(format!(
                    "give all computations that the name leads to the same {what}, \
                     or leave these points out in exclude.tsv"
                ));
            }
            Self::Exposed { exposed, .. } => return exposed.hint.clone(),
            Self::Slice(error) => return error.hint(),
            Self::NoOutput => "remove the file to pass up all outputs",
            Self::Outside(_) => "link only to what is committed with the task",
            Self::Elsewhere => "commit a file there that does the same, instead of the link",
            Self::NoSubmodule(_) => "say which commit is read, with a node in inputs/00-revision",
            Self::UncommittedFile => "git add and git commit it, or evaluate with --dirty",
            Self::Uncommitted(_) => committing(),
            Self::Filtered { .. } => {
                "run git status: it starts the filter, and notes unchanged files in the index"
            }
            Self::Converted { .. } => "remove the filter of the file from .gitattributes",
            Self::Snapshot(error) => return error.hint(),
            Self::Rule(error) => return error.hint(),
            Self::NoLabel { nearest: None, .. } => "name a line of the computation's file inputs",
            Self::NotHere(_) => "install it where the line says, or commit another line",
            Self::Arity { .. } => {
                "give the node as many inputs: directories inputs/00-NAME and so on"
            }
            Self::InputText { .. } => "give the input one line of UTF-8 text",
            Self::Moved => "run it again",
            Self::Head(error) => return error.hint(),
            Self::Sweep(fault) => return fault.hint(),
            Self::Resource(fault) => return fault.hint(),
            _ => return self.file_hint(),
        };
        Some(hint.to_owned())
    }
}
