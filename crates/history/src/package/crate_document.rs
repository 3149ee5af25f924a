//! The document of metadata that describes a crate: <https://www.researchobject.org/workflow-run-crate/>.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs;

use ce_model::digest::Digest;
use ce_model::output_format::OutputFormat;
use ce_model::task::{Node, NodeId, Task, WORKFLOW_TEXT};
use ce_storage::StorageError;
use ce_storage::records::JobRecord;
use jiff::Timestamp;

use super::attribution::Attribution;
use super::entities::{
    COMPLETED, CrateStep, CrateValues, ENGINE, Entities, Entity, StepKey, described, encoded, kind,
    of_path, performed, reference, references, revision,
};
use super::run_crate::{Actions, RunCrate};
use super::{Package, PackagedFile, README};

/// The file with the metadata of a crate.
pub(super) const METADATA: &str = "ro-crate-metadata.json";

/// The definitions of the terms of the metadata.
const CONTEXTS: [&str; 2] =
    ["https://w3id.org/ro/crate/1.1/context", "https://w3id.org/ro/terms/workflow-run/context"];

/// The format of the file with the metadata.
const SPECIFICATION: &str = "https://w3id.org/ro/crate/1.1";

/// The profiles that a crate follows: address, name, version.
const PROFILES: [(&str, &str, &str); 4] = [
    ("https://w3id.org/ro/wfrun/process/0.5", "Process Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/workflow/0.5", "Workflow Run Crate", "0.5"),
    ("https://w3id.org/ro/wfrun/provenance/0.5", "Provenance Run Crate", "0.5"),
    (WORKFLOW_PROFILE, "Workflow RO-Crate", "1.0"),
];

/// The profile that the file with the metadata follows, too.
const WORKFLOW_PROFILE: &str = "https://w3id.org/workflowhub/workflow-ro-crate/1.0";

/// The profile that a workflow follows.
const BIOSCHEMAS: &str = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE";

/// The formats of files that a crate has beside those of the package: type, address and name.
const PLAIN_TEXT: [&str; 3] =
    ["text/plain", "https://www.nationalarchives.gov.uk/PRONOM/x-fmt/111", "Plain Text File"];
const MARKDOWN: [&str; 3] =
    ["text/markdown", "https://www.nationalarchives.gov.uk/PRONOM/fmt/1149", "Markdown"];

/// The greatest size of a file that is read to find its type, in bytes.
const MOST_READ: u64 = 1 << 20;

/// The language of workflows.
const LANGUAGE: &str = "#workflow-language";

/// The files of a crate beside those of its package: paths and texts. The last one has the metadata.
pub fn crate_texts(
    run: &RunCrate<'_>,
    package: &Package,
    readme: String,
) -> Result<Vec<(&'static str, String)>, StorageError> {
    let metadata = document(run, package, &readme)?;
    let workflow = (WORKFLOW_TEXT, run.workflow.clone());
    Ok(vec![(README, readme), workflow, (METADATA, metadata)])
}

/// Describes the job and its package, as a document of JSON-LD.
fn document(run: &RunCrate<'_>, package: &Package, readme: &str) -> Result<String, StorageError> {
    let mut graph = Entities::default();
    let descriptor = graph.of(METADATA, &["CreativeWork"]);
    descriptor.with("about", reference("./"));
    descriptor.set("conformsTo", references([SPECIFICATION, WORKFLOW_PROFILE]));
    graph.of("./", &["Dataset"]);
    graph.of(SPECIFICATION, &["CreativeWork"]).with("name", "RO-Crate").with("version", "1.1");
    for (id, name, version) in PROFILES {
        graph.of(id, &["CreativeWork"]).with("name", name).with("version", version);
    }
    graph.of(BIOSCHEMAS, &["CreativeWork"]).with("name", "ComputationalWorkflow profile");
    let compeval = run.job.recorded.as_ref().map(|it| &*it.compeval);
    let compeval = compeval.unwrap_or(env!("CARGO_PKG_VERSION"));
    graph.of(ENGINE, &["SoftwareApplication"]).with("name", "CompEval").with("version", compeval);
    graph.of(LANGUAGE, &["ComputerLanguage"]).with("name", "CompEval workflow");
    graph.of(LANGUAGE, &[]).with("version", compeval);
    let mut parts = vec![WORKFLOW_TEXT.to_owned(), README.to_owned()];
    let mut values = CrateValues { graph, ids: HashMap::new() };
    let outputs = run.job.outputs.iter().enumerate();
    let outputs: HashMap<String, &str> =
        outputs.map(|(number, output)| (run.entry.file(number), &*output.file)).collect();
    for file in &package.files {
        // An output of the job is what a call or sweep has made.
        let source = outputs.get(&file.file).copied().unwrap_or(&file.file);
        parts.push(packaged(run, (file, source), &mut values));
    }
    let mut actions = Actions::new(run, values);
    describe_parameters(run, package, &mut actions.values);
    actions.describe()?;
    let (mut values, steps, mentions, span) = actions.finish();
    describe_steps(run, &mut values.graph, &steps);
    describe_job(run, package, &mut values, span);
    let job = job_id(run);
    if mentions.is_empty() {
        // A workflow has a tool that was executed: one without calls is evaluated by CompEval alone.
        values.graph.of(&job, &[]).set("instrument", references([WORKFLOW_TEXT, ENGINE]));
    }
    let mut described = vec![job];
    described.extend(mentions);
    described.extend(values.graph.has(ORGANIZATION).then(|| ORGANIZATION.to_owned()));
    let graph = &mut values.graph;
    text(graph, (README, readme), MARKDOWN).with("about", reference("./"));
    describe_root(run, graph, compeval);
    graph.of("./", &[]).set("hasPart", references(parts)).set("mentions", references(described));
    Ok(graph.document(&CONTEXTS))
}

/// Describes the inputs and outputs of the workflow.
fn describe_parameters(run: &RunCrate<'_>, package: &Package, values: &mut CrateValues) {
    for input in &run.job.inputs {
        let file = values.input(run.history, package, (input.name.as_str(), &input.digest));
        let id = format!("#workflow/in/{}", encoded(input.name.as_str()));
        values.parameter(&id, input.name.as_str(), (&file, &input.digest));
    }
    for (file, output) in outputs(run, package) {
        let id = format!("#workflow/out/{}", encoded(&file.path));
        values.parameter(&id, &file.path, (&of_path(&file.path, output), output));
    }
}

/// The outputs of the job in the package.
fn outputs<'p>(
    run: &RunCrate<'_>,
    package: &'p Package,
) -> impl Iterator<Item = (&'p PackagedFile, &'p Digest)> {
    let names: BTreeSet<String> =
        (0..run.job.outputs.len()).map(|number| run.entry.file(number)).collect();
    let files = package.files.iter().filter(move |file| names.contains(&file.file));
    files.map(|file| (file, &file.contents))
}

fn job_id(run: &RunCrate<'_>) -> String {
    format!("#job/{}", encoded(&run.entry.short()))
}

/// Describes the run of the workflow, and that of CompEval.
fn describe_job(
    run: &RunCrate<'_>,
    package: &Package,
    values: &mut CrateValues,
    span: Option<[Timestamp; 2]>,
) {
    let mut inputs = Vec::new();
    for input in &run.job.inputs {
        inputs.push(values.input(run.history, package, (input.name.as_str(), &input.digest)));
    }
    let outputs = outputs(run, package).map(|(file, output)| of_path(&file.path, output));
    let id = job_id(run);
    let names: Vec<&str> = run.job.inputs.iter().map(|input| input.name.as_str()).collect();
    let description = match &names[..] {
        [] => "CompEval evaluated the workflow of the task".to_owned(),
        names => {
            format!("CompEval evaluated the workflow of the task, given {}", names.join(", "))
        }
    };
    let graph = &mut values.graph;
    let job = graph.of(&id, &["CreateAction"]);
    job.with("name", format!("Run of the task {}", run.job.task));
    job.with("description", description);
    job.with("instrument", reference(WORKFLOW_TEXT));
    job.set("object", references(inputs)).set("result", references(outputs));
    job.with("actionStatus", COMPLETED);
    let agent = if run.is_own() { run.agent(graph) } else { None };
    performed(graph.of(&id, &[]), agent.as_deref(), span);
    // Nothing was organized for a workflow without calls.
    if graph.has(ORGANIZATION) {
        let organization = graph.of(ORGANIZATION, &[]);
        performed(organization, agent.as_deref(), span);
        organization.with("name", "Run of CompEval").with("instrument", reference(ENGINE));
        organization.with("description", "Executed the calls of the workflow, or took them over");
        organization.with("result", reference(&id));
    }
}

/// Describes the crate as a whole.
fn describe_root(run: &RunCrate<'_>, graph: &mut Entities, compeval: &str) {
    let JobRecord { task, commit, place, .. } = run.job;
    let place = place.as_deref().filter(|place| !place.is_empty());
    let place = place.map(|place| format!(", {place} of its repository")).unwrap_or_default();
    let remote = run.remote_of(commit.full());
    let of_remote = remote.map(|it| format!(" of {it}")).unwrap_or_default();
    let commit = commit.full();
    let description = format!(
        "A run of the task {task}{place}, at commit {commit}{of_remote}, recorded by CompEval {compeval}"
    );
    let Attribution { licences, authors, publisher } = &run.attribution;
    let mut ids: Vec<String> = Vec::new();
    for author in authors {
        let id = run.contributor(author, graph);
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    let publisher = publisher.as_ref().map(|it| run.contributor(it, graph));
    let licences: Vec<String> = licences.iter().map(|it| it.describe(graph)).collect();
    let root = graph.of("./", &[]);
    root.with("name", format!("Run of the task {task}")).with("description", description);
    root.with("datePublished", run.day.as_str()).set("license", references(licences));
    root.set("author", references(&ids)).set("publisher", publisher.map(reference));
    root.set("conformsTo", references(PROFILES.map(|(id, ..)| id)));
    root.with("mainEntity", reference(WORKFLOW_TEXT));
    graph.of(WORKFLOW_TEXT, &[]).set("creator", references(ids));
}

/// Describes the workflow, those of its sweeps, and their steps.
fn describe_steps(run: &RunCrate<'_>, graph: &mut Entities, steps: &BTreeMap<StepKey, CrateStep>) {
    let types = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"];
    graph.of(WORKFLOW_TEXT, &types);
    text(graph, (WORKFLOW_TEXT, &run.workflow), PLAIN_TEXT);
    let levels = levels(&run.task);
    let mut positions: HashMap<String, usize> = HashMap::new();
    for (number, (key, step)) in steps.iter().enumerate() {
        let level = match key {
            StepKey::Node(node) => levels.get(node).copied().flatten(),
            StepKey::Other(_) => None,
        };
        // Points of a sweep may be there and lead to no table of it.
        let level = level.map(|node| StepKey::Node(node).workflow());
        let workflow = level.filter(|id| graph.has(id)).unwrap_or(WORKFLOW_TEXT.to_owned());
        let position = positions.entry(workflow.clone()).or_default();
        *position += 1;
        let (id, control) = (format!("#step/{number}"), format!("#control/{number}"));
        let entity = graph.of(&id, &["HowToStep"]).with("name", step.name.as_str());
        entity.with("position", position.to_string());
        entity.set("workExample", references(&step.tools));
        let entity = graph.of(&control, &["ControlAction"]);
        entity.with("name", format!("Step {}", step.name)).with("instrument", reference(&id));
        entity.set("object", references(&step.actions));
        graph.of(ORGANIZATION, &["OrganizeAction"]).push("object", reference(control));
        let entity = graph.of(&workflow, &[]);
        entity.push("step", reference(id));
        step.tools.iter().for_each(|tool| entity.add("hasPart", reference(tool)));
    }
    let (commit, task) = (run.job.commit.full(), &run.job.task);
    let remote = run.remote_of(commit);
    let mut workflows = vec![(WORKFLOW_TEXT.to_owned(), task.to_string())];
    for (key, step) in steps {
        let id = key.workflow();
        if graph.has(&id) {
            workflows.push((id, step.name.clone()));
        }
    }
    for (id, name) in workflows {
        let workflow = graph.of(&id, &[]);
        workflow.with("name", name).with("version", commit);
        workflow.with("programmingLanguage", reference(LANGUAGE));
        workflow.with("conformsTo", reference(BIOSCHEMAS));
        workflow.set("url", run.address()).set("codeRepository", remote);
        workflow.set("identifier", revision(commit));
        if !workflow.knows("hasPart") {
            workflow.with("hasPart", reference(ENGINE));
        }
    }
}

/// Describes a file of the package, and which value it is a copy of. Returns its id.
fn packaged(
    run: &RunCrate<'_>,
    (file, source): (&PackagedFile, &str),
    values: &mut CrateValues,
) -> String {
    let id = of_path(&file.path, &file.contents);
    let shown = file.path.rsplit('/').next().unwrap_or(&file.path);
    let entity = values.graph.of(&id, &[kind(&file.contents)]);
    described(entity, shown, &file.contents);
    if !file.contents.is_directory() {
        let is_small = file.contents.size <= MOST_READ;
        let read = || if is_small { fs::read(run.storage.path(&file.file)).ok() } else { None };
        entity.with("encodingFormat", OutputFormat::media_type_of(shown, read));
    }
    for name in [source, &file.file] {
        let first = values.ids.entry(name.to_owned()).or_insert_with(|| id.clone());
        if *first != id {
            values.graph.of(&id, &[]).add("sameAs", reference(first));
        }
    }
    id
}

/// The id of the run of CompEval.
const ORGANIZATION: &str = "#run";

/// The sweep whose body each node is in: of nested ones, the outermost that needs it.
fn levels(task: &Task) -> HashMap<NodeId, Option<NodeId>> {
    let mut levels = HashMap::new();
    let mut bodies = VecDeque::from([(task.workflow.root(), None)]);
    while let Some((body, level)) = bodies.pop_front() {
        let mut stack = vec![body];
        while let Some(node) = stack.pop() {
            if levels.contains_key(&node) {
                continue;
            }
            levels.insert(node, level);
            let inputs = task.workflow[node].inputs().iter().map(|input| input.node);
            match &task.workflow[node] {
                Node::Sweep { inputs: parts, .. } => {
                    bodies.extend(parts.first().map(|body| (body.node, Some(node))));
                    stack.extend(inputs.skip(1));
                }
                _ => stack.extend(inputs),
            }
        }
    }
    levels
}

/// Describes a text of the crate.
fn text<'g>(
    graph: &'g mut Entities,
    (path, text): (&str, &str),
    [kind, address, name]: [&str; 3],
) -> &'g mut Entity {
    graph.of(address, &["WebSite"]).with("name", name);
    let entity = graph.of(path, &["File"]);
    described(entity, path, &Digest::of(text.as_bytes()));
    entity.set("encodingFormat", [kind.into(), reference(address)])
}
