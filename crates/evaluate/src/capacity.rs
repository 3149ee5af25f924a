//! Capacity and reservations: which calls may begin with the resources that running calls leave, and which never may.
//!
//! The oldest waiting call has priority: resources that it lacks are kept for it, and other calls begin only if they need
//! none of these resources. So no call waits forever, and resources that it does not need are not idle. An exclusive call
//! takes all slots.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;

use ce_executor::{AllocationShape, Offer, Reach};
use ce_model::exit::Explain;
use ce_model::humanize::{counted, size};
use ce_model::plan::CallId;
use ce_model::resources::{Resources, TaskLauncher};

/// The resources that a call takes while it is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reservation {
    /// The number of slots.
    slots: usize,
    /// The memory in bytes.
    memory: u64,
    /// The number of graphics processors.
    gpus: usize,
    /// Whether nothing else may be in progress.
    exclusive: bool,
}

impl Reservation {
    /// The reservation of a call that requests nothing.
    pub(super) const ONE: Self = Self { slots: 1, memory: 0, gpus: 0, exclusive: false };

    /// Returns the reservation of a call with these resources; `None` if it is only the slot that every call has.
    pub(super) fn from_resources(resources: &Resources) -> Option<Self> {
        let Resources { cpus, memory, gpus, .. } = resources;
        let spans = resources.spans();
        let reservation = Self {
            slots: cpus.map_or(1, NonZeroU32::get) as usize,
            memory: memory.unwrap_or_default(),
            gpus: gpus.filter(|_| !spans).map_or(0, NonZeroU32::get) as usize,
            // It has its allocation to itself.
            exclusive: resources.exclusive || spans,
        };
        (reservation != Self::ONE).then_some(reservation)
    }
}

/// The resources that a call lacks to begin.
#[derive(Clone, Copy, Debug, Default)]
struct Shortage {
    slots: bool,
    memory: bool,
    gpus: bool,
}

/// The free and the reserved resources, and the calls that wait for some.
#[derive(Debug)]
pub(super) struct Reservations {
    /// The number of slots.
    all: usize,
    /// The number of free slots.
    free: usize,
    /// The memory that is not reserved, in bytes.
    memory: u64,
    /// The number of free graphics processors.
    gpus: usize,
    /// The number of calls that have released their resources, and whose outputs are being published.
    unpublished: usize,
    /// The calls that wait, in order.
    waiting: VecDeque<(CallId, Reservation)>,
    /// The reservations of the calls in progress that waited for one.
    granted: HashMap<CallId, Reservation>,
    /// The resources kept for the first call that waits: all that it has lacked since it became the first.
    kept: Shortage,
}

impl Reservations {
    pub(super) fn new(slots: usize, offer: Offer) -> Self {
        Self {
            all: slots,
            free: slots,
            memory: offer.memory.unwrap_or(u64::MAX),
            gpus: offer.gpus.unwrap_or(usize::MAX),
            unpublished: 0,
            waiting: VecDeque::new(),
            granted: HashMap::new(),
            kept: Shortage::default(),
        }
    }

    /// Whether a call may begin with one slot.
    pub(super) const fn lets_begin(&self) -> bool {
        self.free > 0 && !self.kept.slots
    }

    /// Lets a call begin with one slot.
    pub(super) const fn begin(&mut self) {
        self.free -= 1;
    }

    /// Lets a call in progress wait for a reservation, and gives its slot back.
    pub(super) fn wait(&mut self, call: CallId, reservation: Reservation) {
        self.release(call);
        self.waiting.push_back((call, reservation));
    }

    /// Gives everything back that a call has.
    pub(super) fn release(&mut self, call: CallId) {
        match self.granted.remove(&call) {
            Some(reservation) => {
                self.free += self.slots(reservation);
                self.memory += reservation.memory;
                self.gpus += reservation.gpus;
            }
            None => self.free += 1,
        }
    }

    /// Notes that the outputs of a call that has given everything back are being published.
    pub(super) const fn begin_publishing(&mut self) {
        self.unpublished += 1;
    }

    /// Notes that the outputs of this number of calls are published, or will never be.
    pub(super) const fn end_publishing(&mut self, calls: usize) {
        self.unpublished -= calls;
    }

    /// Whether [`grant`](Self::grant) would find a call.
    pub(super) fn may_grant(&self) -> bool {
        self.next().is_some()
    }

    /// Grants the reservation of a call that waits, if one fits. Returns the call.
    pub(super) fn grant(&mut self) -> Option<CallId> {
        let (_, first) = *self.waiting.front()?;
        let lacks = self.lacks(first);
        // Kept resources stay kept, or two calls that are short of different things might wait for each other's leftovers.
        self.kept.slots |= lacks.slots;
        self.kept.memory |= lacks.memory;
        self.kept.gpus |= lacks.gpus;
        let at = self.next()?;
        let (call, reservation) = self.waiting.remove(at)?;
        if at == 0 {
            self.kept = Shortage::default();
        }
        self.take(call, reservation);
        Some(call)
    }

    /// Whether a call could have a reservation now.
    pub(super) fn fits(&self, reservation: Reservation) -> bool {
        let Shortage { slots, memory, gpus } = self.lacks(reservation);
        !slots && !memory && !gpus
    }

    /// Gives a call a reservation that fits.
    pub(super) fn take(&mut self, call: CallId, reservation: Reservation) {
        self.free -= self.slots(reservation);
        self.memory -= reservation.memory;
        self.gpus -= reservation.gpus;
        self.granted.insert(call, reservation);
    }

    /// The place of the first waiting call whose resources are free.
    fn next(&self) -> Option<usize> {
        let (_, first) = *self.waiting.front()?;
        if self.fits(first) {
            return Some(0);
        }
        let Shortage { slots, memory, gpus } = self.lacks(first);
        // Every call takes a slot.
        if slots || self.kept.slots {
            return None;
        }
        let (no_memory, no_gpus) = (memory || self.kept.memory, gpus || self.kept.gpus);
        self.waiting.iter().position(|(_, reservation)| {
            let Shortage { slots, memory, gpus } = self.lacks(*reservation);
            let memory = memory || no_memory && reservation.memory > 0;
            let gpus = gpus || no_gpus && reservation.gpus > 0;
            !slots && !memory && !gpus
        })
    }

    fn slots(&self, reservation: Reservation) -> usize {
        if reservation.exclusive { self.all } else { reservation.slots.min(self.all) }
    }

    fn lacks(&self, reservation: Reservation) -> Shortage {
        let is_disturbed = reservation.exclusive && self.unpublished > 0;
        Shortage {
            slots: is_disturbed || self.slots(reservation) > self.free,
            memory: reservation.memory > self.memory,
            gpus: reservation.gpus > self.gpus,
        }
    }
}

/// The reason why a call can never be executed here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Explain)]
pub enum Unsatisfiable {
    /// It asks for more processors.
    #[error("it asks for {asked} cpus, and only {there} may be used")]
    #[hint("give -j {asked} to use that many, or let the call ask for fewer")]
    Cpus {
        /// The number that it asks for.
        asked: u32,
        /// The available number.
        there: usize,
    },
    /// It asks for more memory.
    #[error("it asks for {} of memory, and this host has {}", size(*asked), size(*there))]
    #[hint("execute it on a host with more memory, or let the call ask for less")]
    Memory {
        /// The number of bytes that it asks for.
        asked: u64,
        /// The number of available bytes.
        there: u64,
    },
    /// It asks for more graphics processors.
    #[error("it asks for {}, and this host has {there}", counted(*asked as usize, "gpu"))]
    #[hint(
        "execute it on a host that has them, name them in CUDA_VISIBLE_DEVICES, or let the call ask for fewer"
    )]
    Gpus {
        /// The number that it asks for.
        asked: u32,
        /// The available number.
        there: usize,
    },
    /// It wants to be bound to more processors.
    #[error("it asks for {asked} cpus of its own, and this run may use {there} of the host")]
    #[hint("let it ask for fewer, or leave out pin; taskset -cp $$ shows what a shell may use")]
    Pinned {
        /// The number that it asks for.
        asked: u32,
        /// The number that it may use.
        there: usize,
    },
    /// It asks for several hosts.
    #[error("it asks for {0} nodes, and an execution has one")]
    #[hint(Some(getting_allocation()))]
    Nodes(u32),
    /// It asks for several processes.
    #[error("it asks for {0} tasks, and an execution starts one")]
    #[hint(Some(getting_allocation()))]
    Tasks(u32),
    /// It asks for a launcher.
    #[error("it asks for the launcher {}, and an execution starts one process", .0.text())]
    #[hint(Some(getting_allocation()))]
    Launcher(TaskLauncher),
    /// It asks for an allocation of another shape.
    #[error("it asks for {asked}, and the allocation has {}, {}", counted(there.nodes.get() as usize, "node"), counted(there.tasks.get() as usize, "task"))]
    #[hint(Some(getting_allocation()))]
    Shape {
        /// The shape that it asks for, as lines of resources.
        asked: String,
        there: AllocationShape,
    },
    /// It asks for several processes, and cannot be executed without isolation.
    #[error("it starts tasks itself, so it is not isolated, and its root is the input {0}")]
    #[hint("give it its programs by lines path of its access, or let it ask for one task")]
    Root(String),
}

impl Unsatisfiable {
    /// Returns why a call can never be executed with these slots and this offer, or `None` if it can.
    pub(super) fn find(resources: &Resources, slots: usize, offer: &Offer) -> Option<Self> {
        if resources.spans()
            && let Some(unsatisfiable) = Self::of_span(resources, offer.reach)
        {
            return Some(unsatisfiable);
        }
        let Resources { cpus, memory, gpus, .. } = resources;
        let [cpus, gpus] = [cpus, gpus].map(|it| it.map_or(0, NonZeroU32::get));
        let memory = memory.unwrap_or_default();
        if cpus as usize > slots {
            return Some(Self::Cpus { asked: cpus, there: slots });
        }
        let pinned = resources.pinned().map_or(0, NonZeroU32::get);
        if let Some(there) = offer.processors.filter(|there| pinned as usize > *there) {
            return Some(Self::Pinned { asked: pinned, there });
        }
        if let Some(there) = offer.memory.filter(|there| memory > *there) {
            return Some(Self::Memory { asked: memory, there });
        }
        // The processors of an allocation may be on other hosts.
        let there = offer.gpus.filter(|there| gpus as usize > *there && !resources.spans())?;
        Some(Self::Gpus { asked: gpus, there })
    }

    /// Returns why a call that asks for an allocation can never have one.
    pub(super) fn of_span(resources: &Resources, reach: Reach) -> Option<Self> {
        let Resources { nodes, tasks, ref launcher, .. } = *resources;
        let [nodes_asked, tasks_asked] = [nodes, tasks].map(|it| it.map_or(1, NonZeroU32::get));
        match reach {
            Reach::Any => None,
            Reach::Process if nodes_asked > 1 => Some(Self::Nodes(nodes_asked)),
            Reach::Process if tasks_asked > 1 => Some(Self::Tasks(tasks_asked)),
            Reach::Process => launcher.clone().map(Self::Launcher),
            // exec may use all resources that it finds, so it must not find more than it asks for.
            Reach::Allocation(there) => {
                let is_shape = nodes.is_none_or(|nodes| nodes == there.nodes)
                    && resources.task_count() == there.tasks;
                (!is_shape).then(|| Self::Shape { asked: shape(nodes, tasks), there })
            }
        }
    }
}

/// Describes in words how to execute a call in an allocation of its shape.
fn getting_allocation() -> String {
    "give --on slurm on a host of a cluster, or --on workers and start ce worker as the script of \
     an allocation of that shape"
        .to_owned()
}

/// A shape as lines of resources.
fn shape(nodes: Option<NonZeroU32>, tasks: Option<NonZeroU32>) -> String {
    Resources { nodes, tasks, ..Resources::default() }.lines().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXCLUSIVE: Reservation = Reservation { exclusive: true, ..Reservation::ONE };

    fn call(number: usize) -> CallId {
        CallId::at(number)
    }

    /// Three slots, 10 bytes and two graphics processors.
    fn host() -> Reservations {
        Reservations::new(
            3,
            Offer { memory: Some(10), gpus: Some(2), processors: None, reach: Reach::Process },
        )
    }

    /// Lets as many calls begin as may, one slot each. Returns how many.
    fn begin_all(reservations: &mut Reservations) -> usize {
        let mut count = 0;
        while reservations.grant().is_none() && reservations.lets_begin() {
            reservations.begin();
            count += 1;
        }
        count
    }

    /// Lets a call begin that waits for something at once.
    fn ask(reservations: &mut Reservations, number: usize, reservation: Reservation) {
        assert!(reservations.lets_begin());
        reservations.begin();
        reservations.wait(call(number), reservation);
    }

    fn granted(reservations: &mut Reservations) -> Option<CallId> {
        let may_grant = reservations.may_grant();
        let granted = reservations.grant();
        assert_eq!(granted.is_some(), may_grant);
        granted
    }

    #[test]
    fn an_exclusive_call_that_waits_lets_running_ones_end_and_is_next() {
        let mut reservations = host();
        assert_eq!(begin_all(&mut reservations), 3);
        reservations.wait(call(0), EXCLUSIVE);
        reservations.wait(call(1), EXCLUSIVE);
        // However many others are ready, none begins.
        assert_eq!(begin_all(&mut reservations), 0);
        assert!(!reservations.may_grant(), "one that began before is not over");
        reservations.release(call(2));
        assert_eq!(granted(&mut reservations), Some(call(0)));
        assert_eq!(begin_all(&mut reservations), 0);
        reservations.release(call(0));
        assert_eq!(granted(&mut reservations), Some(call(1)));
        reservations.release(call(1));
        assert_eq!(begin_all(&mut reservations), 3);
    }

    #[test]
    fn nothing_is_published_beside_an_exclusive_call() {
        let mut reservations = host();
        ask(&mut reservations, 0, EXCLUSIVE);
        reservations.begin_publishing();
        assert_eq!(granted(&mut reservations), None);
        reservations.end_publishing(1);
        assert_eq!(granted(&mut reservations), Some(call(0)));
    }

    #[test]
    fn a_call_that_needs_several_slots_is_not_kept_waiting_by_small_ones() {
        let mut reservations = host();
        assert_eq!(begin_all(&mut reservations), 3);
        reservations.wait(call(0), Reservation { slots: 2, ..Reservation::ONE });
        assert_eq!(begin_all(&mut reservations), 0, "the free slot is kept");
        reservations.release(call(1));
        assert_eq!(granted(&mut reservations), Some(call(0)));
        assert_eq!(begin_all(&mut reservations), 0, "all slots are taken");
        reservations.release(call(0));
        assert_eq!(begin_all(&mut reservations), 2);
    }

    #[test]
    fn a_call_that_waits_for_memory_does_not_block_calls_that_need_no_memory() {
        let mut reservations = host();
        let with = |memory| Reservation { memory, ..Reservation::ONE };
        ask(&mut reservations, 0, with(6));
        assert_eq!(granted(&mut reservations), Some(call(0)));
        ask(&mut reservations, 1, with(5));
        assert_eq!(granted(&mut reservations), None);
        ask(&mut reservations, 2, with(1));
        assert_eq!(granted(&mut reservations), None, "what the first one lacks is kept for it");
        assert_eq!(begin_all(&mut reservations), 2);
        reservations.release(call(0));
        assert_eq!(granted(&mut reservations), Some(call(1)));
    }

    #[test]
    fn a_resource_that_an_executor_ignores_is_unlimited() {
        let mut reservations = Reservations::new(2, Offer::default());
        let most = Reservation { memory: u64::MAX, gpus: usize::MAX, ..Reservation::ONE };
        ask(&mut reservations, 0, most);
        assert_eq!(granted(&mut reservations), Some(call(0)));
    }

    #[test]
    fn no_call_starves_while_others_take_one_of_its_resources() {
        let mut reservations = host();
        let first = Reservation { slots: 2, gpus: 2, ..Reservation::ONE };
        ask(&mut reservations, 0, Reservation { gpus: 1, ..Reservation::ONE });
        assert_eq!(granted(&mut reservations), Some(call(0)));
        ask(&mut reservations, 1, first);
        // It lacks a graphics processor, and nothing else: a slot is free for another one. Then it lacks slots, too.
        assert_eq!(begin_all(&mut reservations), 1);
        reservations.release(call(2));
        assert_eq!(begin_all(&mut reservations), 0, "what it has lacked once stays kept");
        reservations.release(call(0));
        assert_eq!(granted(&mut reservations), Some(call(1)));
        reservations.release(call(1));
        assert_eq!(begin_all(&mut reservations), 3, "everything is free again");
    }
}
