//! Visiting every state that can be reached, and what must hold there.

use std::collections::HashSet;

use super::lease::Lease;
use super::world::{May, Run, Step, Storage, World};

impl World {
    /// Checks the law that must hold whenever and wherever everything stops: the next run, alone, ends with the outputs of one
    /// execution in their places.
    fn check(&self, lease: Lease) {
        for run in &self.runs {
            if let Step::Done([one, other]) = run.step {
                assert_eq!(one, other, "outputs of two executions were used: {self:?}");
            }
        }
        let mut after = self.clone();
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

/// Takes one of what is left; tells whether there was one.
fn spend(left: &mut usize) -> bool {
    left.checked_sub(1).map(|less| *left = less).is_some()
}

pub(super) const NOTHING: May = May { die: 0, look_dead: 0, give_up: 0 };

/// Visits every state that can be reached; returns how many there are.
pub(super) fn explore(storage: &Storage, runs: usize, lease: Lease, may: May) -> usize {
    let first = World::new(storage.clone(), runs, lease, may);
    let mut seen = HashSet::from([first.clone()]);
    let mut waiting = vec![first];
    while let Some(world) = waiting.pop() {
        world.check(lease);
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
