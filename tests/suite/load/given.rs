//! Inputs that are not given, and have no default.

use compeval::git::Trees;
use compeval::load::Uncommitted;
use compeval::session::{BoundTask, InputError};
use compeval::storage::InputSource;
use compeval::{load, session};

use crate::lab::Lab;

#[test]
fn an_input_that_is_not_given_is_told_with_what_to_try() {
    let lab = Lab::task("Inputs: 'kind', 'x'\n(mul INPUT('x') OWN('{kind}'))[0]").commit();
    let task = || load::task(&lab.path("task"), Uncommitted::Refuse, None).unwrap().task;
    let trees = Trees::new(&lab.path("task"));
    // The text of the one is needed when the task is bound, the contents of the other one when it is evaluated.
    let named = BoundTask::new(&trees, task(), &[None, None]).map(drop);
    let kind = Some(InputSource::Bytes(b"a\n".to_vec()));
    let bound = BoundTask::new(&trees, task(), &[kind, None]).unwrap();
    let other = bound.contents(&trees).map(drop);
    for (input, result) in [("kind", named), ("x", other)] {
        let error = result.unwrap_err();
        assert!(matches!(error.of(), Some(InputError::NotGiven(_))), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("the input {input} is not given, and has no default")
        );
        let hint = format!("give {input}=FILE or -p {input}=TEXT");
        assert_eq!(error.hint(), Some(hint));
        assert_eq!(error.exit(), session::Exit::Malformed);
    }
}
