"""The two JSON-LD contexts of crates, with the terms that CompEval uses and no others.

No package of a registry has the contexts, and tests have no network. The validator reports a term that is missing here as
an error, so a new one has to be looked up: https://w3id.org/ro/crate/1.1/context and
https://w3id.org/ro/terms/workflow-run/context.
"""

SCHEMA = """
    ComputerLanguage ControlAction CreateAction CreativeWork Dataset HowTo HowToStep Organization OrganizeAction Person
    PropertyValue SoftwareApplication SoftwareSourceCode WebSite
    about actionStatus additionalType affiliation agent author codeRepository contentSize creator datePublished description
    encodingFormat endTime exampleOfWork hasPart identifier instrument isBasedOn license mainEntity mentions name object
    position programmingLanguage propertyID publisher result sameAs startTime step unitCode url value version workExample
""".split()

WORKFLOW_RUN = ["resourceUsage", "sha1"]

CONTEXTS = {
    "https://w3id.org/ro/crate/1.1/context": {
        **{term: f"http://schema.org/{term}" for term in SCHEMA},
        "File": "http://schema.org/MediaObject",
        "conformsTo": "http://purl.org/dc/terms/conformsTo",
        "ComputationalWorkflow": "https://bioschemas.org/ComputationalWorkflow",
        "FormalParameter": "https://bioschemas.org/FormalParameter",
        "input": "https://bioschemas.org/ComputationalWorkflow#input",
        "output": "https://bioschemas.org/ComputationalWorkflow#output",
    },
    "https://w3id.org/ro/terms/workflow-run/context": {
        term: f"https://w3id.org/ro/terms/workflow-run#{term}" for term in WORKFLOW_RUN
    },
}
