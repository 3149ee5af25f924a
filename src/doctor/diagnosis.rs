//! The finding of one probe, in words.

/// What one probe found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnosis {
    /// What was probed, in a few words that never change.
    pub probe: &'static str,
    /// What was found.
    pub found: String,
    /// What is not as it should be; `None` if all is well.
    pub trouble: Option<Trouble>,
}

/// What a finding means for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// How bad it is.
    pub grade: Grade,
    /// What happens because of it.
    pub means: String,
    /// What the user can do about it, if there is anything.
    pub hint: Option<String>,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// It is good to know.
    Note,
    /// It costs time.
    Slow,
    /// A promise cannot be kept.
    Broken,
}

impl Diagnosis {
    /// All is well.
    pub fn ok(probe: &'static str, found: impl Into<String>) -> Self {
        Self { probe, found: found.into(), trouble: None }
    }

    /// Something is good to know, whatever was found.
    #[must_use]
    pub fn note(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Note, means)
    }

    /// It costs time.
    #[must_use]
    pub fn slow(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Slow, means)
    }

    /// A promise cannot be kept.
    #[must_use]
    pub fn broken(self, means: impl Into<String>) -> Self {
        self.graded(Grade::Broken, means)
    }

    /// What to try. All that is well needs no hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        if let Some(trouble) = &mut self.trouble {
            trouble.hint = Some(hint.into());
        }
        self
    }

    /// How bad it is; `None` if all is well.
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
    fn what_is_well_has_no_hint_and_the_worst_is_the_greatest() {
        assert_eq!(Diagnosis::ok("a", "b").hint("c").trouble, None);
        let broken = Diagnosis::ok("a", "b").broken("c").hint("d");
        assert_eq!(broken.trouble.as_ref().unwrap().hint.as_deref(), Some("d"));
        assert!(Diagnosis::ok("a", "b").slow("c").grade() < broken.grade());
        assert!(Diagnosis::ok("a", "b").grade() < Diagnosis::ok("a", "b").note("c").grade());
    }
}
