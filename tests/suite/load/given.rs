//! Inputs that are not given, and have no default.

use compeval::git::Trees;
use compeval::load::Uncommitted;
use compeval::session::InputError;
use compeval::{load, session};

use crate::lab::Lab;

#[test]
fn an_input_that_is_not_given_is_told_with_what_to_try() {
    let lab = Lab::task("Inputs: 'kind', 'x'\n(mul INPUT('x') OWN('{kind}'))[0]").commit();
    let task = || load::task(&lab.path("task"), Uncommitted::Refuse, None).unwrap().task;
    let trees = Trees::new(&lab.path("task"));
    // The text of the one is needed when the task is bound, the contents of the other one when it is evaluated.
    let named = session::bind(&trees, task(), &[None, None]).map(drop);
    let other = session::with_defaults(&trees, &task(), &[]).map(drop);
    for error in [named, other].map(Result::unwrap_err) {
        assert!(matches!(error.of(), Some(InputError::NotGiven(_))), "{error:?}");
        assert_eq!(error.to_string(), "the input kind is not given, and has no default");
        assert_eq!(error.hint().as_deref(), Some("give kind=FILE or -p kind=TEXT"));
        assert_eq!(error.exit(), session::Exit::Malformed);
    }
}
