//! The finding of a probe, in words.

/// The finding of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// The name of the probe: a few words that never change.
    pub probe: &'static str,
    /// The finding.
    pub found: String,
    /// The trouble, if there is any.
    pub trouble: Option<Trouble>,
}

/// The consequences of a finding for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// The severity.
    pub grade: Grade,
    /// The consequences.
    pub means: String,
    /// A hint for the user, if there is any.
    pub hint: Option<String>,
}

/// The severity of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It costs nothing, but the user should know it.
    Note,
    /// It costs time.
    Slow,
    /// It breaks a promise.
    Broken,
}

impl Diagnosis {
    /// A finding without trouble.
    pub fn ok(probe: &'static str, found: impl Into<String>) -> Self {
        Self { probe, found: found.into(), trouble: None }
    }

    /// Adds a note.
    #[must_use]
    pub fn note(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Note, means)
    }

    /// Adds trouble that costs time.
    #[must_use]
    pub fn slow(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Slow, means)
    }

    /// Adds trouble that breaks a promise.
    #[must_use]
    pub fn broken(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Broken, means)
    }

    /// Adds a hint, if there is trouble.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(trouble) = &mut self.trouble {
            trouble.hint = Some(hint.into());
        }
        self
    }

    /// The severity of the trouble, if there is any.
    pub fn grade(&self) -> Option<Grade> {
        self.trouble.as_ref().map(|trouble| trouble.grade)
    }

    fn graded(self, grade: Grade, means: impl Into<String>) -> Self {
        let trouble = Trouble { grade, means: means.into(), hint: None };
        Self { trouble: Some(trouble), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_good_diagnosis_has_no_hint_and_the_worst_grade_is_the_greatest() {
        assert_eq!(Diagnosis::ok("a", "b").hint("c").trouble, None);
        let broken = Diagnosis::ok("a", "b").broken("c").hint("d");
        assert_eq!(broken.trouble.as_ref().unwrap().hint.as_deref(), Some("d"));
        assert!(Diagnosis::ok("a", "b").slow("c").grade() < broken.grade());
        assert!(Diagnosis::ok("a", "b").grade() < Diagnosis::ok("a", "b").note("c").grade());
    }
}
