"""Validates crates as Provenance Run Crates: validate.py CRATE..., where a crate is a directory or a ZIP archive.

Prints a line for each requirement that a crate does not meet, with tabs between: the crate, REQUIRED or RECOMMENDED, the number of
the check, the entity, and what is wrong; and then a line with the number of checks. Contexts come from contexts.py, and nothing
from a network.
"""

import io
import json
import sys

import requests
from contexts import CONTEXTS
from requests.adapters import HTTPAdapter
from rocrate_validator import services
from rocrate_validator.models import Severity, ValidationSettings


def answer(_adapter, request, **_options):
    """Answers requests for contexts. All others fail."""
    context = CONTEXTS.get(request.url)
    if context is None:
        raise requests.ConnectionError(f"there is no network for {request.url}")
    response = requests.Response()
    response.status_code, response.url, response.request = 200, request.url, request
    response.headers["Content-Type"] = "application/ld+json"
    response.raw = io.BytesIO(json.dumps({"@context": context}).encode())
    return response


def main():
    HTTPAdapter.send = answer
    for crate in sys.argv[1:]:
        settings = ValidationSettings(
            rocrate_uri=crate,
            profile_identifier="provenance-run-crate",
            requirement_severity=Severity.RECOMMENDED,
            no_cache=True,
        )
        result = services.validate(settings)
        for issue in result.get_issues():
            message = " ".join(str(issue.message).split())
            print(crate, issue.severity.name, issue.check.identifier, issue.violatingEntity, message, sep="\t")
        print(crate, "checked", len(result.statistics.checks), sep="\t")


main()
