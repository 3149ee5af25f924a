//! Calls that ask for more than the executor has, whatever else runs.

use std::num::NonZeroU32;

use ce_executor::{AllocationShape, Offer, Reach};
use ce_model::exit::Explain;
use ce_model::humanize::{counted, size};
use ce_model::plan::CallId;
use ce_model::resources::{Resources, TaskLauncher};

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
    /// It asks for a launcher.
    #[error("it asks for the launcher {}, and an execution starts one process", .0.word())]
    Launcher(TaskLauncher),
    /// It asks for an allocation of another shape.
    #[error("it asks for {asked}, and the allocation has {}, {}", counted(there.nodes.get() as usize, "node"), counted(there.tasks.get() as usize, "task"))]
    Shape {
        /// The shape that it asks for, as lines of resources.
        asked: String,
        /// The shape of the allocation.
        there: AllocationShape,
    },
    /// It asks for several processes, and cannot be executed without isolation.
    #[error("it asks for an allocation, where nothing is isolated, and its root is the input {0}")]
    Root(String),
}

impl Misfit {
    /// Returns why a call can never be executed with so many slots, if that is so.
    pub(super) fn of(resources: &Resources, slots: usize, offer: &Offer) -> Option<Self> {
        if resources.spans()
            && let Some(misfit) = Self::of_span(resources, offer.reach)
        {
            return Some(misfit);
        }
        let Resources { cpus, memory, gpus, .. } = resources;
        let [cpus, gpus] = [cpus, gpus].map(|it| it.map_or(0, NonZeroU32::get));
        let memory = memory.unwrap_or_default();
        if cpus as usize > slots {
            return Some(Self::Cpus { asked: cpus, there: slots });
        }
        if let Some(there) = offer.memory.filter(|there| memory > *there) {
            return Some(Self::Memory { asked: memory, there });
        }
        // Those of an allocation may be on other hosts.
        let there = offer.gpus.filter(|there| gpus as usize > *there && !resources.spans())?;
        Some(Self::Gpus { asked: gpus, there })
    }

    /// Returns why a call that asks for an allocation can never have one.
    pub(super) fn of_span(resources: &Resources, reach: Reach) -> Option<Self> {
        let Resources { nodes, tasks, launcher, .. } = *resources;
        let several = |number: Option<NonZeroU32>| number.filter(|it| it.get() > 1);
        match reach {
            Reach::Any => None,
            Reach::Process => several(nodes)
                .map(|nodes| Self::Nodes(nodes.get()))
                .or_else(|| several(tasks).map(|tasks| Self::Tasks(tasks.get())))
                .or_else(|| launcher.map(Self::Launcher)),
            // exec may use all that it finds, so it must not find more than it asks for.
            Reach::Allocation(there) => {
                let is_shape = nodes.is_none_or(|nodes| nodes == there.nodes)
                    && resources.task_count() == there.tasks;
                let asked = || shape(nodes, tasks);
                (!is_shape).then(|| Self::Shape { asked: asked(), there })
            }
        }
    }
}

impl Explain for Misfit {
    fn hint(&self) -> Option<String> {
        let hint = match self {
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
            Self::Nodes(_) | Self::Tasks(_) | Self::Launcher(_) | Self::Shape { .. } => {
                "give --on slurm on a host of a cluster, or --on workers and start ce worker as the script of an allocation of that shape"
                    .to_owned()
            }
            Self::Root(_) => {
                "give it its programs by lines path of its access, or let it ask for one task".to_owned()
            }
        };
        Some(hint)
    }
}

/// A shape as lines of resources.
fn shape(nodes: Option<NonZeroU32>, tasks: Option<NonZeroU32>) -> String {
    Resources { nodes, tasks, ..Resources::default() }.lines().join(", ")
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
            let root = || self.computation(id)?.access.root().filter(|_| resources.spans());
            let root = || root().map(|root| Misfit::Root(root.name.clone()));
            Some((id, Misfit::of(&resources, slots, &offer).or_else(root)?))
        };
        self.plan.calls().filter_map(misfit).collect()
    }
}
