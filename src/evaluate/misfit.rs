//! Calls that ask for more than the executor has, whatever else runs.

use std::num::NonZeroU32;

use crate::executor::Offer;
use crate::plan::CallId;
use crate::task::resources::Resources;
use crate::words::{counted, size};

use super::Evaluation;

/// Why a call can never be executed here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Misfit {
    /// It asks for more processors.
    #[error("it asks for {asked} cpus, and only {there} may be used")]
    Cpus {
        /// The number that it asks for.
        asked: u32,
        /// The number that there are.
        there: usize,
    },
    /// It asks for more memory.
    #[error("it asks for {} of memory, and this host has {}", size(*asked), size(*there))]
    Memory {
        /// The number of bytes that it asks for.
        asked: u64,
        /// The number of bytes that there are.
        there: u64,
    },
    /// It asks for more graphics processors.
    #[error("it asks for {}, and this host has {there}", counted(*asked as usize, "gpu"))]
    Gpus {
        /// The number that it asks for.
        asked: u32,
        /// The number that there are.
        there: usize,
    },
    /// It asks for several hosts.
    #[error("it asks for {0} nodes, and an execution has one")]
    Nodes(u32),
    /// It asks for several processes.
    #[error("it asks for {0} tasks, and an execution starts one")]
    Tasks(u32),
}

impl Misfit {
    /// Returns why a call can never be executed with so many slots, if that is so.
    pub(super) fn of(resources: &Resources, slots: usize, offer: &Offer) -> Option<Self> {
        let Resources { cpus, memory, gpus, nodes, tasks, .. } = resources;
        let [cpus, gpus, nodes, tasks] =
            [cpus, gpus, nodes, tasks].map(|it| it.map_or(0, NonZeroU32::get));
        let memory = memory.unwrap_or_default();
        if offer.is_one_node && nodes > 1 {
            return Some(Self::Nodes(nodes));
        }
        if offer.is_one_node && tasks > 1 {
            return Some(Self::Tasks(tasks));
        }
        if cpus as usize > slots {
            return Some(Self::Cpus { asked: cpus, there: slots });
        }
        if let Some(there) = offer.memory.filter(|there| memory > *there) {
            return Some(Self::Memory { asked: memory, there });
        }
        let there = offer.gpus.filter(|there| gpus as usize > *there)?;
        Some(Self::Gpus { asked: gpus, there })
    }

    /// Advice for the user.
    pub fn hint(&self) -> String {
        match self {
            Self::Cpus { asked, .. } => {
                format!("give -j {asked} to use that many, or let the call ask for fewer")
            }
            Self::Memory { .. } => {
                "execute it on a host with more memory, or let the call ask for less".to_owned()
            }
            Self::Gpus { .. } => {
                "execute it on a host that has them, name them in CUDA_VISIBLE_DEVICES, or let the call ask for fewer"
                    .to_owned()
            }
            Self::Nodes(_) | Self::Tasks(_) => {
                "execute it by hand on a cluster, and bring the result into the storage; or let the call ask for one"
                    .to_owned()
            }
        }
    }
}

impl Evaluation {
    /// Returns the planned calls that can never be executed with so many slots. They may have results.
    pub fn misfits(&self, slots: usize, offer: impl FnOnce() -> Offer) -> Vec<(CallId, Misfit)> {
        if self.task.resources.is_empty() {
            return Vec::new();
        }
        let offer = offer();
        let misfit = |(id, _)| {
            let resources = self.plan.resources(id).ok().flatten()?;
            Some((id, Misfit::of(&resources, slots, &offer)?))
        };
        self.plan.calls().filter_map(misfit).collect()
    }
}
