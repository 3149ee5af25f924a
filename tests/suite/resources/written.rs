//! The files `resources`: a fault of a line is reported in its place, and at once.

use crate::lab::Lab;

fn lab() -> Lab {
    Lab::task("Inputs: 'x', 'y'\n(add (mul INPUT('x') INPUT('y'))[0] INPUT('y'))[0]")
}

/// The lines of complaints of `ce check` that speak of resources.
fn complaints(lab: &Lab) -> Vec<String> {
    let ran = lab.run("ce", &["check"]).exit(2);
    let lines = ran.stderr.lines().map(|line| line.trim().to_owned());
    lines.filter(|line| line.contains("resources") || line.starts_with("try")).collect()
}

#[test]
fn what_is_right_is_not_mentioned() {
    let all = "# What it needs.\ncpus 4\nmemory\t8G\ntime 1h30min\ngpus 1\nnodes 2\ntasks 64\nlauncher srun\nexclusive\n";
    let lab = lab()
        .file("workflow/resources", all)
        .file("workflow/inputs/00-mul/resources", "cpus {x}\n")
        .file("computations/add/resources", "cpus 2\n")
        .file("resources", "add cpus 3\nmul memory 1M\ndivmod gpus 1\n")
        .commit();
    let ran = lab.run("ce", &["check"]).exit(0);
    assert_eq!(ran.stderr, "");
}

#[test]
fn there_is_one_launcher() {
    let lab = lab().file("workflow/resources", "launcher mpirun\n").commit();
    let expected = [
        "workflow/resources:1: \"mpirun\" is not a launcher: srun is the only one, with options that begin with -",
        "try: write a line such as launcher srun",
    ];
    assert_eq!(complaints(&lab), expected);
}

#[test]
fn each_line_has_one_error() {
    let lab = lab()
        .file(
            "workflow/resources",
            "cpu 4\ncpus\nmemory 8\ntime soon\ncpus 0\ngpus 1\ngpus 2\nexclusive please\n\u{20}nodes {zero}\ntasks {X}\n",
        )
        .file("resources", "cpus 4\nmull cpus 4\nmul cpus\nmul memory 1G\nmul memory 1G\n")
        .file("computations/add/resources", "speed 3\n")
        .commit();
    assert_eq!(
        complaints(&lab),
        [
            "computations/add/resources:1: \"speed\" is no resource",
            "try: write a line such as cpus 4, memory 8G, time 2h, gpus 1, nodes 2, tasks 64, launcher srun, exclusive",
            "resources:1: the line does not say which computation it is for",
            "try: write NAME cpus 4, with the name of a computation",
            "resources:2: there is no computation \"mull\"",
            "try: did you mean \"mul\"?",
            "resources:3: the line does not say how much",
            "try: write a line such as cpus 4",
            "resources:5: line 4 asks for the same resource",
            "try: keep one of them",
            "workflow/resources:1: \"cpu\" is no resource",
            "try: did you mean \"cpus\"?",
            "workflow/resources:2: the line does not say how much",
            "try: write a line such as cpus 4",
            "workflow/resources:3: \"8\" is not a size with its unit K, M, G or T",
            "try: write a line such as memory 8G",
            "workflow/resources:4: \"soon\" is not a time with its unit",
            "try: write a line such as time 2h",
            "workflow/resources:5: \"0\" is not a number of cpus",
            "try: write a line such as cpus 4",
            "workflow/resources:7: line 6 asks for the same resource",
            "try: keep one of them",
            "workflow/resources:8: nothing may follow the word exclusive",
            "try: write the word exclusive alone",
            "workflow/resources:9: {zero} is neither an input of the task nor bound by a sweep around the node workflow",
            "try: name an input of the task, a factor, or a column of computed points that :names lists; or write a number",
            "workflow/resources:10: {X} is neither an input of the task nor bound by a sweep around the node workflow",
            "try: did you mean \"x\"?",
        ]
    );
}

#[test]
fn elsewhere_nothing_reads_such_a_file() {
    let lab = lab().file("workflow/inputs/01-y/resources", "cpus 4\n").commit();
    lab.run("ce", &["check"]).exit(0).says("workflow/inputs/01-y/resources: nothing reads this");
}
