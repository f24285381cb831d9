"""Hostile input on PostgreSQL, which refuses what SQLite stores: NUL, and texts too long for a column."""

import pytest

from tests import postgresql

pytestmark = pytest.mark.long

MODULE = "tests/security/test_hostile_input.py"
KEYWORDS = (
    "sign_in or (at_once and (nobody or lead)) or (in_the_path and lead) or (each_place and lead)"
)


@pytest.mark.skipif(bool(postgresql.missing()), reason=postgresql.missing() or "-")
def test_hostile_input_is_no_server_error_on_postgresql():
    run = postgresql.run_tests(MODULE, "-k", KEYWORDS)
    assert run.returncode == 0, run.stdout[-4000:]
