//! Computations: their files, declarations, outputs, access and resources.

use super::TestTask;

/// The task whose `mul` is a script with these lines.
fn script(declared: &str) -> TestTask {
    let task = TestTask::base().without("computations/mul");
    task.script("mul.sh", &format!("#!/bin/sh\n# multiplies\n\n{declared}\n"))
}

#[test]
fn exec_is_executable() {
    TestTask::base().mode("computations/mul/exec", 0o644).tells(
        "computations/mul/exec: is not executable\n\
         try: chmod +x, and commit the change of mode",
    );
    script("#CE inputs a b\n#CE outputs product").mode("computations/mul.sh", 0o644).tells(
        "computations/mul.sh: is not executable\n\
         try: chmod +x, and commit the change of mode",
    );
}

#[test]
fn exec_is_in_the_directory_of_its_computation() {
    let task = TestTask::base().without("computations/add/exec");
    task.link("computations/add/exec", "../mul/exec").tells(
        "computations/add/exec: leads out of the computation's directory: only files in it are exported\n\
         try: commit a file there that does the same, instead of the link",
    );
}

#[test]
fn at_most_100_outputs_are_listed() {
    let outputs: String = (0..=100).map(|n| format!("{n}\n")).collect();
    TestTask::base().file("computations/add/outputs", outputs).tells(
        "computations/add/outputs: lists more than 100 entries\n\
         try: put them into a directory, which is one value",
    );
}

#[test]
fn inputs_and_outputs_have_names_of_files() {
    TestTask::base()
        .file("computations/add/inputs", "a\tb\nc/d\n")
        .file("computations/add/outputs", "x/../../../victim\n../\nright/\n")
        .file("computations/mul/outputs", "./\n/product\n")
        .tells(
            "computations/add/inputs:1: \"a\\tb\" holds a slash or a control character\n\
             try: write a name without slashes and control characters, as in sort-2\n\
             computations/add/outputs:1: \"x/../../../victim\" holds a slash or a control character\n\
             try: write a name without slashes and control characters, as in sort-2\n\
             computations/add/outputs:2: \"..\" is not a name\n\
             try: write a name without slashes and control characters, as in sort-2\n\
             computations/mul/outputs:1: \".\" is not a name\n\
             try: write a name without slashes and control characters, as in sort-2\n\
             computations/mul/outputs:2: \"/product\" holds a slash or a control character\n\
             try: write a name without slashes and control characters, as in sort-2",
        );
}

#[test]
fn a_name_stands_for_one_computation() {
    let declared = "#!/bin/sh\n#CE inputs a b\n#CE outputs product\n";
    // A file that is not executable, or that an editor has left, is not a computation.
    let task = TestTask::base().file("computations/mul.md", "A note.\n");
    let task = task.script("mul.sh~", declared);
    task.tells("");
    let task = task.script("mul.sh", declared);
    task.tells(
        "computations/mul: mul is mul/ and mul.sh: a name stands for one computation\n\
         try: give each a name of its own, or chmod -x a file that is not a computation",
    );
    let task = task.without("computations/mul");
    task.tells("");
    task.script("mul", declared).tells(
        "computations/mul: mul is mul and mul.sh: a name stands for one computation\n\
         try: give each a name of its own, or chmod -x a file that is not a computation",
    );
}

#[test]
fn a_script_that_is_not_executable_and_declares_nothing_is_not_a_computation() {
    let task = TestTask::base().without("computations/mul");
    task.file("computations/mul.sh", "#!/bin/sh\n").tells(
        "workflow/inputs/00-mul/value: there is no computation \"mul\"\n\
         try: if computations/ is a submodule: git submodule update --init --recursive; if a link, check where it leads",
    );
}

#[test]
fn a_script_is_suggested_by_its_name() {
    let task = script("#CE inputs a b\n#CE outputs product");
    let task = task.file("workflow/inputs/00-mul/value", "mull");
    task.tells(
        "workflow/inputs/00-mul/value: there is no computation \"mull\"\n\
         try: did you mean \"mul\"?",
    );
    let task = task.without("workflow").without("inputs");
    task.file("workflow.ce", "Inputs: x, y\n(mull x y)\n").tells(
        "workflow.ce:2: there is no computation \"mull\"\n\
         | (mull x y)\n\
         | ^\n\
         try: did you mean \"mul\"?",
    );
}

#[test]
fn a_declaration_has_known_words_and_ends() {
    script(
        "#CE input a b\n#CE outputs 'product\n#CE status\n#CE inputs a, b\ntrue\n#CE access suspend",
    )
    .tells(
        "computations/mul.sh:4: \"input\" cannot be declared\n\
         try: did you mean \"inputs\"?\n\
         computations/mul.sh:5: the quote before \"product\" does not end\n\
         try: write 'a b' for a name with a space\n\
         computations/mul.sh:6: a computation with the file status is a directory\n\
         try: make it a directory with the files inputs, outputs, exec and status\n\
         computations/mul.sh:7: there is a comma in \"a,\"\n\
         try: separate names by spaces; write 'a,b' for a name with a comma\n\
         computations/mul.sh:9: the declaration ends before this line, at line 8, which is not a comment\n\
         try: move it above line 8",
    );
    script("#CE inputs a b\n#CE output product").tells(
        "computations/mul.sh:5: \"output\" cannot be declared\n\
         try: did you mean \"outputs\"?",
    );
}

#[test]
fn the_access_and_resources_of_a_declaration_are_checked_by_line() {
    script(
        "#CE inputs a b\n#CE outputs product\n#CE access netwok\n#CE access root c\n#CE resources cpu 2",
    )
    .tells(
        "computations/mul.sh:6: \"netwok\" cannot be granted\n\
         try: write network, read PATH, write PATH, env NAME, set NAME INPUT, device PATH, root INPUT, path INPUT, at PATH NAME or suspend\n\
         computations/mul.sh:7: the computation has no input \"c\"\n\
         try: name a line of the computation's file inputs\n\
         computations/mul.sh:8: \"cpu\" is not a resource\n\
         try: did you mean \"cpus\"?",
    );
}

#[test]
fn a_script_declares_inputs_or_outputs() {
    script("# CE inputs a b").tells(
        "computations/mul.sh: declares neither inputs nor outputs\n\
         try: write lines such as #CE inputs NAMES and #CE outputs NAMES above the code, with the comment sign of its language and no space before CE",
    );
}

#[test]
fn a_line_of_access_grants_something_known() {
    let access = "# all of it is wrong\nnet\nread opt/tool\nwrite /a/../b\nenv 1\n\
                  network of the host\ndevice /etc/passwd\n";
    TestTask::base().file("computations/add/access", access).tells(
        "computations/add/access:2: \"net\" cannot be granted\n\
         try: write network, read PATH, write PATH, env NAME, set NAME INPUT, device PATH, root INPUT, path INPUT, at PATH NAME or suspend\n\
         computations/add/access:3: \"opt/tool\" is not an absolute path without ..\n\
         try: write an absolute path, as in read /opt/data\n\
         computations/add/access:4: \"/a/../b\" is not an absolute path without ..\n\
         try: write an absolute path, as in read /opt/data\n\
         computations/add/access:5: \"1\" is not the name of a variable, or the beginning of one and *\n\
         try: write a name, as in env OMP_NUM_THREADS or env OMP_*\n\
         computations/add/access:6: nothing may follow the word network\n\
         try: write the word alone in its line\n\
         computations/add/access:7: \"/etc/passwd\" is not below /dev\n\
         try: write a path such as device /dev/fuse",
    );
}

#[test]
fn access_names_inputs_that_there_are() {
    TestTask::base()
        .file("computations/add/inputs", "system\ntools\n")
        .file(
            "computations/add/access",
            "root sytem\nroot system\n# another one\nroot tools\npath tools\npath nothing\npath\n",
        )
        .file("computations/mul/inputs", "a\na\n")
        .file("computations/mul/access", "path a\n")
        .tells(
            "computations/add/access:1: the computation has no input \"sytem\"\n\
             try: did you mean \"system\"?\n\
             computations/add/access:4: line 2 names a root already\n\
             try: keep one root line; more than one path line is fine\n\
             computations/add/access:6: the computation has no input \"nothing\"\n\
             try: name a line of the computation's file inputs\n\
             computations/add/access:7: the computation has no input \"\"\n\
             try: name a line of the computation's file inputs\n\
             computations/mul/access:1: 2 inputs or outputs of the computation are called \"a\"\n\
             try: give them different names",
        );
}

#[test]
fn valid_resources_have_no_problems() {
    TestTask::base()
        .file(
            "workflow/resources",
            "# What it needs.\ncpus 4\nmemory\t8G\ntime 1h30min\ngpus 1\nnodes 2\ntasks 64\n\
             launcher srun\nexclusive\n",
        )
        .file("workflow/inputs/00-mul/resources", "cpus {x}\n")
        .file("computations/add/resources", "cpus 2\n")
        .file("resources", "add cpus 3\nmul memory 1M\ndivmod gpus 1\n")
        .tells("");
}

#[test]
fn a_line_of_resources_is_one_amount() {
    for (line, told) in [
        (
            "cpu 4",
            "workflow/resources:1: \"cpu\" is not a resource\n\
             try: did you mean \"cpus\"?",
        ),
        (
            "speed 3",
            "workflow/resources:1: \"speed\" is not a resource\n\
             try: write a line such as cpus 4, memory 8G, time 2h, gpus 1, nodes 2, tasks 64, launcher srun, exclusive, pin",
        ),
        (
            "cpus",
            "workflow/resources:1: the line has no amount\n\
             try: write a line such as cpus 4",
        ),
        (
            "cpus=8",
            "workflow/resources:1: \"cpus=8\" is not a resource\n\
             try: write cpus 8",
        ),
        (
            "cpus 0",
            "workflow/resources:1: \"0\" is not a number of cpus\n\
             try: write a line such as cpus 4",
        ),
        (
            "memory 1G..17G",
            "workflow/resources:1: \"1G..17G\" is not a range whose end is at least its beginning, and at most 16 times as much\n\
             try: write a line such as memory 4G..32G",
        ),
        (
            "memory 8",
            "workflow/resources:1: \"8\" is not a size with its unit K, M, G or T\n\
             try: write a line such as memory 8G",
        ),
        (
            "time soon",
            "workflow/resources:1: \"soon\" is not a time with its unit\n\
             try: write a line such as time 2h",
        ),
        (
            "exclusive please",
            "workflow/resources:1: nothing may follow the word exclusive\n\
             try: write the word exclusive alone",
        ),
        (
            "launcher mpirun",
            "workflow/resources:1: \"mpirun\" is not a launcher: srun is the only one, with options that begin with -\n\
             try: write a line such as launcher srun",
        ),
    ] {
        TestTask::base().file("workflow/resources", line).tells(told);
    }
}

#[test]
fn a_resource_is_asked_for_once() {
    TestTask::base().file("workflow/resources", "gpus 1\ncpus 1\ngpus 2\n").tells(
        "workflow/resources:3: line 1 asks for the same resource\n\
         try: keep one of them",
    );
    TestTask::base().file("resources", "mul memory 1G\nmul memory 1G\n").tells(
        "resources:2: line 1 asks for the same resource\n\
         try: keep one of them",
    );
}

#[test]
fn resources_name_inputs_and_names_that_are_bound() {
    TestTask::base().file("workflow/resources", "nodes {zero}\ntasks {X}\n").tells(
        "workflow/resources:1: {zero} is neither an input of the task nor bound by a sweep around the node workflow\n\
         try: name an input of the task, a factor, or a column of computed points that :names lists; or write a number\n\
         workflow/resources:2: {X} is neither an input of the task nor bound by a sweep around the node workflow\n\
         try: did you mean \"x\"?",
    );
}

#[test]
fn resources_of_a_task_name_the_computation() {
    TestTask::base().file("resources", "cpus 4\nmull cpus 4\nmul cpus\n").tells(
        "resources:1: the line does not say which computation it is for\n\
         try: write NAME cpus 4, with the name of a computation\n\
         resources:2: there is no computation \"mull\"\n\
         try: did you mean \"mul\"?\n\
         resources:3: the line has no amount\n\
         try: write a line such as cpus 4",
    );
}

#[test]
fn resources_of_a_computation_are_checked_there() {
    TestTask::base().file("computations/add/resources", "speed 3\n").tells(
        "computations/add/resources:1: \"speed\" is not a resource\n\
         try: write a line such as cpus 4, memory 8G, time 2h, gpus 1, nodes 2, tasks 64, launcher srun, exclusive, pin",
    );
}

#[test]
fn resources_of_an_input_are_not_read() {
    TestTask::base().file("workflow/inputs/01-x/resources", "cpus 4\n").tells(
        "warning: workflow/inputs/01-x/resources: nothing reads this\n\
         try: remove it, or correct its name",
    );
}
