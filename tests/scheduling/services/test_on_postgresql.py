"""The rules of the database and the doors of quotas once more, on PostgreSQL.

The tests run in a process of their own, whose settings name the other database.
"""

import pytest

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
    run = postgresql.run_tests(*MODULES, "-k", KEYWORDS)
    assert run.returncode == 0, run.stdout[-4000:]
