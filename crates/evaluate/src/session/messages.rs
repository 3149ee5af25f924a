//! What the user should know of executions while they go on.

use ce_model::exit::Explain;

use std::error::Error as _;

use std::sync::atomic::Ordering;

use super::Session;

impl Session {
    /// Returns what the user should know of executions by now, each thing once.
    pub(super) fn notice(&self) -> Option<String> {
        let (executor, _) = self.executor.as_ref()?;
        if let Some(notice) = self.notices.next().or_else(|| self.notices.links(&self.storage)) {
            return Some(notice);
        }
        if let Some(queue) = &self.queue {
            return queue.notice().or_else(|| self.slurm.as_ref()?.notice());
        }
        self.isolation_warning().or_else(|| executor.notice())
    }

    /// Returns once the reason why computations are not isolated although they should be, with a
    /// hint.
    fn isolation_warning(&self) -> Option<String> {
        let (executor, _) = self.executor.as_ref()?;
        let error = executor.exposed().filter(|_| !self.warned.swap(true, Ordering::AcqRel))?;
        let because = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        let hint = error.hint();
        let hint = hint.as_deref().unwrap_or("ce doctor, which says what the host lacks");
        Some(format!(
            "warning: computations are not isolated here: {error}{because}\n  try: {hint}"
        ))
    }
}
