//! Mistakes in a text, and the exact words for them.

use super::mistakes;
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

#[test]
fn every_mistake_is_reported_with_its_place_and_what_to_try() {
    golden::check("text/mistakes.txt", &mistakes(TEXTS.map(str::to_owned)));
}
