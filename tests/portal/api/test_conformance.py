"""The API answers as its schema says, to anybody, also to input that nobody thought of or that is hostile."""

import copy
import os

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.accounts.models import ApiToken, Persona, User
from portal.teams.models import Membership, ServiceAccount, Team
from tests.factories import example_cluster, make_user
from tests.portal.kubernetes import serving
from tests.security.hostile import SURROGATES, TEXTS
from tests.security.test_numbers import DOCUMENT

pytestmark = [pytest.mark.django_db, pytest.mark.long]
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
THERE = {
    "cluster": "fra1", "name": "pretraining", "uid": "uid-there", "number": 48213,
    "team": "pretraining", "account": "svc-there",
    "username": "m.okafor",
}  # fmt: skip
"""Addresses are made to exist, or every answer would be a 404."""

MORE = ("data scientist", "approver", "operator", "finance")
"""Shipped personas of which the example has nobody."""
PEOPLE = {
    "anonymous": "",
    "outsider": "outsider",
    "researcher": "researcher",
    "lead": "lead",
    "admin": "admin",
    **{name.replace(" ", "_"): name.replace(" ", ".") for name in MORE},
}
EXAMPLES = dict.fromkeys(PEOPLE, 30 if NIGHTLY else 3) | ({} if NIGHTLY else {"admin": 5})
AT_ONCE = 1
"""So many people beside the admin, who reaches everything, ask an operation, the next ones the next; at night
everybody asks each."""
SHORT = [text for text in TEXTS.values() if len(text) < 500]
schemathesis.openapi.format("hostile", st.sampled_from(SHORT))
schemathesis.openapi.format("hostile-in-json", st.sampled_from([*SHORT, *SURROGATES.values()]))


def operations(document):
    schema = schemathesis.openapi.from_dict(document)
    schema.app = get_wsgi_application()
    return {found.ok().label: found.ok() for found in schema.get_all_operations()}


def turned_hostile(document):
    """The same document, whose texts and numbers of queries and JSON bodies are what attackers send."""
    document = copy.deepcopy(document)
    for verbs in document["paths"].values():
        for operation in verbs.values():
            # What guards a call keeps it from the view that is to read what is hostile.
            given = [p for p in operation.get("parameters", ()) if p["in"] != "header"]
            operation["parameters"] = given
            for parameter in given:
                if parameter["in"] == "query":
                    parameter["schema"] = _hostile(parameter["schema"], "hostile")
            content = operation.get("requestBody", {}).get("content", {})
            for kind in set(content) - {"application/json"}:
                del content[kind]
    schemas = document["components"]["schemas"]
    for name in [name for name in schemas if name.endswith("Request")]:
        schemas[name] = _hostile(schemas[name], "hostile-in-json")
    return document


def _hostile(schema, form):
    if "properties" in schema:
        inside = {key: _hostile(value, form) for key, value in schema["properties"].items()}
        return {**schema, "properties": inside}
    if "items" in schema:
        return {**schema, "items": _hostile(schema["items"], form)}
    if schema.get("type") in ("string", "integer", "number", "boolean"):
        return {"type": "string", "format": form}
    return schema


OPERATIONS = operations(DOCUMENT)
HOSTILE = operations(turned_hostile(DOCUMENT))


@pytest.fixture(scope="module")
def tokens(django_db_setup, django_db_blocker):
    """The headers of each person of the example organisation, over an API server."""
    signals = (request_started, request_finished)
    for signal in signals:
        # A WSGI server closes its connections after each request; the test's own must live on.
        signal.disconnect(close_old_connections)
    with django_db_blocker.unblock(), transaction.atomic():
        cluster = example_cluster()
        cluster.workloads.filter(name="pretraining-run-1").update(uid=THERE["uid"])
        make_user("outsider")
        program, team = make_user(THERE["account"]), Team.objects.get(name=THERE["team"])
        ServiceAccount.objects.create(user=program, team=team)
        for name in MORE:
            held = {"persona": Persona.objects.get(name=name)}
            team = Team.objects.get(name="pretraining" if "scientist" in name else "operations")
            Membership.objects.create(user=make_user(name.replace(" ", ".")), team=team, **held)
        with serving(cluster):
            yield {who: headers_of(name) for who, name in PEOPLE.items()}
        transaction.set_rollback(True)
    for signal in signals:
        signal.connect(close_old_connections)


def headers_of(name):
    if not name:
        return {"Host": "localhost"}
    _, token = ApiToken.issue(User.objects.get(username=name), "conformance")
    return {"Authorization": f"Bearer {token}", "Host": "localhost"}


@pytest.mark.parametrize("label", OPERATIONS)
def test_answer_conforms_to_the_schema(label, tokens):
    conforms(OPERATIONS[label], tokens["admin"], examples=30 if NIGHTLY else 4)


def meetings():
    """Each operation and who asks it."""
    others = [who for who in PEOPLE if who != "admin"]
    for number, label in enumerate(HOSTILE):
        turn = {others[(AT_ONCE * number + more) % len(others)] for more in range(AT_ONCE)}
        yield from ((label, who) for who in PEOPLE if NIGHTLY or who == "admin" or who in turn)


@pytest.mark.parametrize(("label", "who"), list(meetings()))
def test_answer_to_hostile_input_conforms_to_the_schema(label, who, tokens):
    conforms(HOSTILE[label], tokens[who], examples=EXAMPLES[who])


def conforms(operation, headers, *, examples):
    """The same examples each time: what fails here fails for everybody."""

    @given(case=operation.as_strategy())
    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def check(case):
        case.path_parameters = {
            key: THERE.get(key, value) for key, value in (case.path_parameters or {}).items()
        }
        with transaction.atomic():
            case.call_and_validate(headers=headers, checks=CHECKS)
            transaction.set_rollback(True)

    check()
