//! Inputs that are not given, and have no default.

use compeval::git::Trees;
use compeval::load::Uncommitted;
use compeval::session::{BoundTask, InputError};
use compeval::{load, session};

use crate::lab::Lab;

#[test]
fn a_missing_input_is_reported_with_advice() {
    let bind = |lab: &Lab, given| {
        let task = load::task(&lab.path("task"), Uncommitted::Refuse, None).unwrap().task;
        let trees = Trees::new(&lab.path("task"));
        let bound = BoundTask::new(&trees, task, given)?;
        bound.contents(&trees).map(drop)
    };
    // The text of the one is needed when the task is bound, the contents of the other one when it is evaluated.
    let lab = Lab::task("Inputs: 'kind', 'x'\n(mul INPUT('x') OWN('{kind}'))[0]").commit();
    let named = bind(&lab, &[None, None]);
    let lab = Lab::task("Inputs: 'x'\n(mul INPUT('x') INPUT('x'))[0]").commit();
    let other = bind(&lab, &[None]);
    for (input, result) in [("kind", named), ("x", other)] {
        let error = result.unwrap_err();
        assert!(matches!(error.downcast_ref(), Some(InputError::NotGiven(_))), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("the input {input} is not given, and has no default")
        );
        let hint = format!("give {input}=FILE or -p {input}=TEXT");
        assert_eq!(error.hint(), Some(hint));
        assert_eq!(error.exit(), session::Exit::Malformed);
    }
}
