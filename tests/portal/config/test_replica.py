"""What reads from the replica of the database, and what never does."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings
from django.http import HttpResponse
from django.test import RequestFactory
from django.urls import resolve

from portal.accounts.models import User
from portal.config.replica import ReplicaMiddleware, ReplicaRouter
from portal.reports.models import SavedView
from scheduling.models import Workload

router = ReplicaRouter()
LEDGER, PEOPLE = Workload, User


def read_by(method: str, address: str) -> list[str | None]:
    """From where a view at ``address`` reads work, people and saved views."""
    found: list[str | None] = []

    def view(request) -> HttpResponse:
        request.resolver_match = resolve(address)
        layer.process_view(request, view, (), {})
        found.extend(router.db_for_read(model) for model in (LEDGER, PEOPLE, SavedView))
        return HttpResponse()

    layer = ReplicaMiddleware(view)
    layer(RequestFactory().generic(method, address))
    return found


@pytest.mark.parametrize(
    ("method", "address", "is_read_there"),
    [
        ("GET", "/c/fra1/reports/showback", True),
        ("HEAD", "/c/fra1/reports/showback", True),
        ("GET", "/api/v1/clusters/fra1/reports/showback", True),
        ("POST", "/c/fra1/reports/views/save", False),
        ("GET", "/c/fra1/workloads/", False),
        ("GET", "/account/", False),
    ],
)
def test_reports_alone_read_the_ledger_from_the_replica(method, address, is_read_there):
    assert read_by(method, address) == ["replica" if is_read_there else None, None, None]


def test_after_a_report_the_thread_reads_where_it_writes():
    read_by("GET", "/c/fra1/reports/showback")

    assert router.db_for_read(LEDGER) is None


def test_nothing_is_written_or_migrated_there():
    assert router.db_for_write(LEDGER) == "default"
    assert not router.allow_migrate("replica", "scheduling")
    assert router.allow_migrate("default", "scheduling")


def settings_with(**environment: str) -> dict:
    said = (
        "import json; from portal.config import settings as s; print(json.dumps({"
        "'databases': {n: d['NAME'] for n, d in s.DATABASES.items()},"
        "'cursors': s.DATABASES['default'].get('DISABLE_SERVER_SIDE_CURSORS', False),"
        "'router': getattr(s, 'DATABASE_ROUTERS', []),"
        "'layers': [m for m in s.MIDDLEWARE if 'Replica' in m or 'Tracing' in m]}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", said], cwd=settings.BASE_DIR, env={**os.environ, **environment},
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_setting_names_the_replica_and_the_pooler():
    made = settings_with(
        DATABASE_URL="postgres://u:p@h/weir", WEIR_REPLICA_URL="postgres://u:p@r/copy",
        WEIR_DATABASE_POOLER="true",
    )  # fmt: skip

    assert made["databases"] == {"default": "weir", "replica": "copy"}
    assert made["cursors"]
    assert made["router"] == ["portal.config.replica.ReplicaRouter"]
    assert made["layers"] == ["portal.config.replica.ReplicaMiddleware"]


def test_without_the_settings_there_is_neither():
    made = settings_with(DATABASE_URL="postgres://u:p@h/weir")

    assert made == {
        "databases": {"default": "weir"}, "cursors": False, "router": [], "layers": []
    }  # fmt: skip
