"""The rules of the database and the doors of quotas once more, on PostgreSQL.

The tests run in a process of their own, whose settings name the other database.
"""

import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests import postgresql

MODULES = (
    "tests/scheduling/models/test_constraints.py",
    "tests/scheduling/services/test_checkpoints.py",
    "tests/scheduling/services/test_quotas_at_once.py",
    "tests/scheduling/services/quotas",
)
KEYWORDS = "TestConstraints or two_saves or save or revert or fit or grid or outlive"
"""What touches rows; the refusals that only compute are the same everywhere."""


@pytest.mark.skipif(bool(postgresql.missing()), reason=postgresql.missing() or "-")
def test_rules_and_doors_hold_on_postgresql():
    with postgresql.server() as url:
        run = subprocess.run(
            [sys.executable, "-m", "pytest", *MODULES, "-k", KEYWORDS],
            cwd=settings.BASE_DIR,
            env={**os.environ, "DATABASE_URL": url},
            capture_output=True,
            text=True,
            check=False,
        )
    assert run.returncode == 0, run.stdout[-4000:]
