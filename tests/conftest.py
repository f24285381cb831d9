"""What every test may lean on."""

import os
import tempfile
from pathlib import Path

import pytest
from django.db import connections

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")


@pytest.fixture(scope="session")
def django_db_modify_db_settings(request):
    """SQLite in a file of its own, so that threads of one test (server, worker) see the same rows."""
    database = connections["default"].settings_dict
    if database["ENGINE"].endswith("sqlite3"):
        folder = Path(tempfile.mkdtemp(prefix="weir-test-", dir=_memory()))
        database["TEST"]["NAME"] = str(folder / "weir.sqlite3")
    request.getfixturevalue("django_db_modify_db_settings_parallel_suffix")


def _memory() -> str | None:
    shared = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    return str(shared) if os.access(shared, os.W_OK) else None
