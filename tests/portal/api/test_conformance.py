"""The API answers as its schema says, also to input that nobody thought of."""

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections, transaction
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from portal.accounts.models import ApiToken, User
from tests.factories import example_cluster
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
THERE = {"cluster": "fra1", "name": "pretraining", "uid": "uid-there", "number": 48213}
"""Addresses are made to exist, or every answer would be a 404."""

SCHEMA = schemathesis.openapi.from_dict(SchemaGenerator().get_schema(request=None, public=True))
SCHEMA.app = get_wsgi_application()
OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}


@pytest.fixture(scope="module")
def headers(django_db_setup, django_db_blocker):
    """A token that opens everything of the example organisation, over an API server."""
    signals = (request_started, request_finished)
    for signal in signals:
        # A WSGI server closes its connections after each request; the test's own must live on.
        signal.disconnect(close_old_connections)
    with django_db_blocker.unblock(), transaction.atomic():
        cluster = example_cluster()
        cluster.workloads.filter(name="pretraining-run-1").update(uid=THERE["uid"])
        _, token = ApiToken.issue(User.objects.get(username="admin"), "conformance")
        with serving(cluster):
            yield {"Authorization": f"Bearer {token}", "Host": "localhost"}
        transaction.set_rollback(True)
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.parametrize("label", OPERATIONS)
def test_answer_conforms_to_the_schema(label, headers):
    @given(case=OPERATIONS[label].as_strategy())
    @settings(
        max_examples=8,
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
