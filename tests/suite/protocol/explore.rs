//! Visiting every state that can be reached, and what must hold there.

use std::collections::HashSet;

use super::lease::Lease;
use super::watchers::{Cleaner, Reader};
use super::world::{Execution, May, Run, Step, Storage, World};

impl World {
    /// Checks the law that must hold whenever and wherever everything stops: the next run, alone, ends with the outputs of one
    /// execution in their places.
    fn check(&self, lease: Lease, may: May, is_whole: bool) {
        for run in &self.runs {
            if let Step::Done([one, other]) = run.step {
                assert_eq!(one, other, "outputs of two executions were used: {self:?}");
                self.check_report(one, is_whole);
            }
        }
        match self.reader {
            Reader::Found([one, other]) => {
                assert_eq!(one, other, "outputs of two executions were found: {self:?}");
            }
            Reader::Missing(execution) if is_whole => self.check_missing(execution, may),
            Reader::Missing(_) | Reader::Away | Reader::ReadRecord | Reader::Look(..) => {}
        }
        let mut after = self.clone();
        after.may_still = NOTHING;
        while after.cleaner != Cleaner::Away && after.clean() {}
        for at in 0..after.runs.len() {
            after.kill(at);
            while after.advance(at) {}
        }
        let execution = after.storage.staged.len() as u8;
        after.storage.staged.push([false; 2]);
        after.runs = vec![Run::new(execution, lease)];
        for _ in 0..100 {
            if !after.advance(0) {
                break;
            }
        }
        let Step::Done([one, other]) = after.runs[0].step else { panic!("it hangs: {self:?}") };
        assert_eq!(one, other, "outputs of two executions after {self:?}");
        assert_eq!(after.storage.places, [Some(one); 2], "other files than told after {self:?}");
    }

    /// Checks the law of an execution that was reported: its paths lead to outputs, and to its own unless a record had lost its outputs
    /// before. Then two runs without leases may replace that at once, and one of them may replace an output of the other one: the next
    /// run finds it damaged.
    fn check_report(&self, execution: Execution, is_whole: bool) {
        let Storage { record, places, .. } = &self.storage;
        if is_whole && *record == Some([execution; 2]) {
            assert_eq!(*places, [Some(execution); 2], "others than reported are there: {self:?}");
        }
        assert!(places.iter().all(Option::is_some), "a reported path leads nowhere: {self:?}");
    }

    /// Checks the law of an output that a reader has not found: it was lost before these runs, its record was replaced meanwhile, or its run
    /// was taken for dead, and will report nothing.
    fn check_missing(&self, execution: Execution, may: May) {
        let is_old = usize::from(execution) >= self.runs.len();
        let is_replaced = self.storage.record != Some([execution; 2]);
        let is_cleaned = self.may_still.clean < may.clean;
        assert!(is_old || is_replaced || is_cleaned, "what is published is not found: {self:?}");
    }

    /// Checks the laws that must hold of runs that respect leases, wherever they are.
    fn check_leases(&self, may: May) {
        let is_over = |run: &Run| !run.is_alive();
        let can_go_on = (0..self.runs.len()).any(|at| self.clone().advance(at));
        assert!(can_go_on || self.runs.iter().all(is_over), "they wait for each other: {self:?}");
        let executed = self.runs.iter().filter(|run| run.executed).count();
        if may.die == 0 && may.look_dead == 0 {
            assert!(executed <= 1, "it is executed twice: {self:?}");
            assert!(can_go_on || executed == 1, "it was not executed: {self:?}");
            assert!(can_go_on || self.storage.lease.is_none(), "it is left behind: {self:?}");
        }
    }

    /// The states that can come next.
    fn next(&self) -> Vec<Self> {
        let mut next = Vec::new();
        let mut try_on = |change: &dyn Fn(&mut Self) -> bool| {
            let mut world = self.clone();
            if change(&mut world) {
                next.push(world);
            }
        };
        try_on(&|world| world.read());
        try_on(&|world| world.clean());
        for at in 0..self.runs.len() {
            try_on(&|world| world.advance(at));
            try_on(&|world| world.misjudge(at));
            try_on(&|world| spend(&mut world.may_still.die) && world.kill(at));
            try_on(&|world| spend(&mut world.may_still.give_up) && world.give_up(at));
            try_on(&|world| spend(&mut world.may_still.look_dead) && world.look_dead(at));
        }
        next
    }
}

/// Takes a leftover; returns whether there was one.
fn spend(left: &mut usize) -> bool {
    left.checked_sub(1).map(|less| *left = less).is_some()
}

pub(super) const NOTHING: May = May { die: 0, look_dead: 0, give_up: 0, read: 0, clean: 0 };

/// Visits every state that can be reached; returns how many there are.
pub(super) fn explore(storage: &Storage, runs: usize, lease: Lease, may: May) -> usize {
    let first = World::new(storage.clone(), runs, lease, may);
    let executes_once = lease == Lease::Wanted && may.die + may.look_dead == 0;
    let is_whole = storage.record.is_none() || executes_once;
    let mut seen = HashSet::from([first.clone()]);
    let mut waiting = vec![first];
    while let Some(world) = waiting.pop() {
        world.check(lease, may, is_whole);
        if lease == Lease::Wanted {
            world.check_leases(may);
        }
        for next in world.next() {
            if seen.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    seen.len()
}
