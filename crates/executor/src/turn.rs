//! Turns: the right to execute on a host that several runs share.

use std::any::Any;
use std::fmt;

/// What an execution takes of its host that other runs may have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TurnRequest {
    /// The number of graphics processors.
    pub gpus: u32,
    /// Whether nothing else may be executed on the host meanwhile.
    pub exclusive: bool,
}

/// The right to execute, given back when dropped.
pub struct HostTurn {
    request: TurnRequest,
    gpus: Vec<String>,
    /// The locks.
    _held: Box<dyn Any + Send>,
}

impl HostTurn {
    /// A turn with these graphics processors, as long as something is held.
    pub(super) fn new(request: TurnRequest, gpus: Vec<String>, held: impl Any + Send) -> Self {
        Self { request, gpus, _held: Box::new(held) }
    }

    /// A turn of which nothing keeps anybody else waiting.
    pub(super) fn beside_all(request: TurnRequest) -> Self {
        Self::new(request, Vec::new(), ())
    }

    /// What was asked for.
    pub const fn request(&self) -> TurnRequest {
        self.request
    }

    /// The names of the graphics processors.
    pub fn gpus(&self) -> &[String] {
        &self.gpus
    }
}

impl fmt::Debug for HostTurn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostTurn").field("request", &self.request).finish_non_exhaustive()
    }
}
