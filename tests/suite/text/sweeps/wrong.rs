//! Mistakes in the sweeps of a text, and the exact words for them.

use super::super::mistakes;
use crate::golden;

/// Sweeps with mistakes. Without inputs, the body is one that reads `a`.
const WRONG: [&str; 44] = [
    "SWEEP()",
    "SWEEP('s' BODY)",
    "SWEEP(:factors/00-a BODY)",
    "SWEEP(:factors/00-a '1' '2' '1' BODY)",
    "SWEEP(:factors/00-a '1' ' 2' '' BODY)",
    "SWEEP(:factors/00-a '1' |2\\xa;3| |4\\x9;| BODY)",
    "SWEEP(:factors/00-a '1' :factors/00-b '2' BODY)",
    "SWEEP(:factors/00-a '1' :factors/00-a '2' BODY)",
    "SWEEP(:factors/a '1' BODY)",
    "SWEEP(:factor/00-a '1' BODY)",
    "SWEEP(:factors '1' BODY)",
    "SWEEP(:factors/00-a/b '1' BODY)",
    "SWEEP(:factors/00-a one BODY)",
    "SWEEP(:factors/00-a.tsv 'a' '1' BODY)",
    "SWEEP(:factors/00-a.tsv BODY)",
    "SWEEP(:factors/00-a.tsv () BODY)",
    "SWEEP(:factors/00-a.tsv ('a' 'a') BODY)",
    "SWEEP(:factors/00-a.tsv ('a' '') BODY)",
    "SWEEP(:factors/00-a.tsv ('a') ('') BODY)",
    "SWEEP(:factors/00-a.tsv ('a' 'n') ('1' 'x')\n ('2') ('3' |t\\x9;t|) BODY)",
    "SWEEP(:factors/00-a.tsv ('a' 'n') ('1' 'x')\n ('1' 'x') BODY)",
    "SWEEP(:factors/00-a '1' :exclude.tsv ('b') ('1') BODY)",
    "SWEEP(:factors/00-a '1' :exclude.tsv ('a') ('2') BODY)",
    "SWEEP(:factors/00-a '1' :replicates BODY)",
    "SWEEP(:factors/00-a '1' :replicates 'many' BODY)",
    "SWEEP(:factors/00-a '1' :replicates '2' BODY)",
    "SWEEP(:factors/00-a '1' :columns 'seconds' '01 x' '00 a' '00 **' '00 **' BODY)",
    "SWEEP(:factors/00-a '1' :columns '00 x [s' '00 * [s] less' BODY)",
    "SWEEP(:factors/00-a '1' :alow-failed BODY)",
    "SWEEP(:factors/00-a '1' :runs BODY)",
    "SWEEP(:factors/00-a '1' :points INPUT('x') :body BODY)",
    "SWEEP(:factors/00-a '1' BODY :points INPUT('x'))",
    "SWEEP(BODY (divmod INPUT('x') INPUT('x')) INPUT('x'))",
    "SWEEP(BODY (divmod INPUT('x') INPUT('x')))",
    "SWEEP((add INPUT('x') INPUT('x')) :points INPUT('x'))",
    "SWEEP(BODY :names 'a' 'b' :points INPUT('x'))",
    "SWEEP(:factors/00-a '1' :names 'a' BODY)",
    "SWEEP(:factors/00-x '1' :factors/01-aa '2' (add INPUT('x') INPUT('a')))",
    "(add SWEEP(:factors/00-a '1' SWEEP(:factors/00-a '2' BODY)) INPUT('a'))",
    "SWEEP((add INPUT('x') SWEEP(BODY INPUT('x'))) INPUT('x'))[02]",
    "POINTS('p' :columns '00 a' :factors/00-a '1')",
    "SWEEP(:factors/00-sum '1' (add INPUT('sum') INPUT('x')))",
    "SWEEP(:factors/00-remainder '1' (divmod INPUT('remainder') INPUT('x'))[1])",
    "SWEEP(:factors/00-value '1' INPUT('value'))",
];

/// The same for nodes `points`.
const WRONG_POINTS: [&str; 4] = [
    "POINTS()",
    "POINTS('p' INPUT('x'))",
    "POINTS('p' :replicates '3')",
    "POINTS(:points INPUT('x'))",
];

#[test]
fn every_mistake_in_a_sweep_is_reported_with_its_place_and_what_to_try() {
    let texts = WRONG.into_iter().chain(WRONG_POINTS);
    let texts = texts.map(|text| text.replace("BODY", "(add INPUT('a') INPUT('x'))"));
    golden::check("text/sweeps.txt", &mistakes(texts));
}
