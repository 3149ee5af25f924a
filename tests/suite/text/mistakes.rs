//! Mistakes in a text, and the exact words for them.

use std::fs;

use compeval::load::{self, Uncommitted};

use super::{message, mistakes};
use crate::golden;

/// Texts that cannot be parsed, and texts that do not fit the task.
const TEXTS: [&str; 48] = [
    "",
    "Inputs: 'x'",
    "Inputs: 'x', \nINPUT('x')",
    "Inputs: 'x', 'x'\nINPUT('x')",
    "Inputs: x y\nx",
    "INPUT('x') INPUT('y')",
    "INPUT('x'",
    "INPUT('x)\n",
    "INPUT(x)",
    "INPUT('x' INPUT('y'))",
    "INPUT('x')[00]",
    "INPT('x')",
    "WHATEVER('x' INPUT('x'))",
    "OWN('../x')",
    "add",
    "()",
    "( add)[0",
    "(add (mul INPUT('x')\n          INPUT('y')\n     )[0]\n     INPUT('x')",
    "(a/b INPUT('x'))",
    "(.. INPUT('x'))",
    "(|a b INPUT('x'))",
    "(|a\\nb| INPUT('x'))",
    "(|a\\x110000;| INPUT('x'))",
    "(add :left)",
    "(add :left :right INPUT('x'))",
    "(add : INPUT('x'))",
    "(add :(mul) INPUT('x'))",
    "(add INPUT('x') INPUT('y'))[]",
    "(add INPUT('x') INPUT('y'))[0 1]",
    "(add INPUT('x') INPUT('y'))[one]",
    "(add INPUT('x') INPUT('y'))[100]",
    "(divmod INPUT('x') INPUT('y'))[01, quotent]",
    "(add INPUT('x') INPUT('y'))[| sum|]",
    "(add INPUT('x') INPUT('y'))[0,]",
    "(add INPUT('x') INPUT('y'))[0]]",
    "(add #1# INPUT('x'))",
    "(add #1=INPUT('x') #1=INPUT('y'))",
    "#1=(add #1# INPUT('x'))",
    "(add #x= INPUT('x'))",
    "(add #1 INPUT('x'))",
    "(add #99999999999= INPUT('x'))",
    "FILE('/etc/passwd')",
    "(add INPUT('x'))[00]",
    "(add INPUT('x') INPUT('yy'))[01]",
    "(add (divmod INPUT('x') INPUT('y'))\n     INPUT('z'))",
    "(add (unknown INPUT('x')) INPUT('y'))",
    "(add :a/b INPUT('x') INPUT(' x'))",
    "(add INPUT('x')) ; comments\n; are skipped\n)",
];

/// Texts with computations that do not fit the task, or that nothing can execute. As files they would be wrong, too.
const UNFIT: [&str; 7] = [
    "f: x -> z\n    #CE access read relative\n    cat\n\n(f x)\n",
    "f: x -> z\n    #CE resources cpus many\n    cat\n\n(f x)\n",
    "f: x -> z\n    cat\n\n(g x)\n",
    "f: x -> ../z\n    cat\n\n(f x)\n",
    "add: x -> z\n    cat\n\n(add x)\n",
    "f: x -> z\n    cat\n\n(f x)[zz]\n",
    "f: x -> z\n    cat\n\n(f x y)\n",
];

/// Texts in which a computation is wrong: what beginners write.
const COMPUTATIONS: [&str; 36] = [
    "f: x, y -> z\n    cat\n\n(f x y)\n",
    "f: x y z\n    cat\n\n(f x y)\n",
    "f:\n    cat\n\n(f)\n",
    "f x -> z\n    cat\n\n(f x)\n",
    "f : x -> z\n    cat\n\n(f x)\n",
    "f:x -> z\n    cat\n\n(f x)\n",
    "def f: x -> z\n    cat\n\n(f x)\n",
    "    f: x -> z\n        cat\n\n(f x)\n",
    "f: x -> y -> z\n    cat\n\n(f x)\n",
    "f: x ->\n    cat\n\n(f x)\n",
    "f: x -> 'a b\n    cat\n\n(f x)\n",
    "f/g: x -> z\n    cat\n\n(f x)\n",
    "f: x -> z\n\n(f x)\n",
    "f: x -> z\ncat \"$1\" > \"$2\"\n\n(f x)\n",
    "f: x -> z\n    if true; then\n    cat\nfi\n\n(f x)\n",
    "f: x -> z\n    cat <<END > \"$2\"\nhello, world\nEND\n\n(f x)\n",
    "f: x -> z\n    #!/usr/bin/python3\nimport sys\n    print(1)\n\n(f x)\n",
    "f: x -> z\n    for i in 1 2; do\n\techo\n    done\n\n(f x)\n",
    "f: x -> z\n    one\n  two\n\n(f x)\n",
    "f: x -> z\n    one \u{1b}[0m\n\n(f x)\n",
    "f: x -> z\n    #!/usr/bin/env node\n    console.log(1)\n\n(f x)\n",
    "f: x -> z\n    #!/usr/bin/env -S deno run\n    x\n\n(f x)\n",
    "f: x -> z\n    # counts\n    #!/usr/bin/python3\n    print(1)\n\n(f x)\n",
    "f: x -> z\n    #CE inputs x\n    cat\n\n(f x)\n",
    "f: x -> z\n    #CE acess network\n    cat\n\n(f x)\n",
    "f: x -> z\n    cat\n    #CE access network\n\n(f x)\n",
    "f: x -> z\n    one\nf: y -> z\n    two\n\n(f x)\n",
    "(f x)\n\nf: x -> z\n    cat\n",
    "f: x -> z\n    cat\n",
    "f: x -> z\n    cat\n\nz = (f x)\n",
    "z = x\nInputs: y -> z\n    cat\n\n(f x)\n",
    "f: x\n  -> z\n    cat\n\n(f x)\n",
    "f: x x.1 x-1 -> z\n    cat\n\n(f x)\n",
    "f: x -> z\n    cat\n# why\n    suffix='B'\n    sort\n\n(f x)\n",
    "f: x -> z\n    cat\n\n    (f x)\n",
    "z = x\nInputs: y\n\n(f x)\n",
];

#[test]
fn every_mistake_is_reported_with_its_place_and_what_to_try() {
    golden::check("text/mistakes.txt", &mistakes(TEXTS.map(str::to_owned)));
    golden::check("text/computations.txt", &mistakes(COMPUTATIONS.map(str::to_owned)));
    let lab = super::one_text::task("").commit();
    let unfit = UNFIT.map(|text| {
        let lab = lab.path("task");
        fs::write(lab.join("workflow.ce"), format!("Inputs: x, y\n{text}")).unwrap();
        let error = load::task(&lab, Uncommitted::Ignore, None).unwrap_err();
        format!("{text}\n{}\n", message(&error))
    });
    golden::check("text/unfit.txt", &unfit.concat());
}
