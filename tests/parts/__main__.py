"""Program: start PostgreSQL and Redis, run the suites that matter on them, and beside them the whole as
processes.

``python -m tests.parts``. What differs between databases is how rows are locked, ordered and refused; what
differs between caches is what several processes count together. The suites are those that ask for either.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from tests.parts.chosen import PARTLY
from workshop.testbed.parts import postgres, redis_server

ROOT = Path(__file__).resolve().parents[2]
SUITES = (
    "tests/portal/accounts",
    "tests/portal/alerts",
    "tests/portal/api/test_guards.py",
    "tests/portal/audit",
    "tests/portal/config/test_rotation.py",
    "tests/portal/demo/test_large.py",
    "tests/portal/reports/test_entitlements.py",
    "tests/portal/reports/test_evictions.py",
    "tests/portal/reports/test_saved_views.py",
    "tests/portal/reports/test_showback.py",
    "tests/portal/reports/test_use.py",
    "tests/portal/teams/test_access.py",
    "tests/portal/teams/test_service_accounts.py",
    "tests/portal/web/studies/test_adapting.py",
    "tests/portal/web/test_group_rules.py",
    "tests/scheduling/models",
    "tests/scheduling/services/studies",
    "tests/scheduling/services/ledger",
    "tests/scheduling/services/workloads/test_booking.py",
    "tests/scheduling/services/test_ledger.py",
    "tests/scheduling/services/test_lifecycle.py",
    "tests/scheduling/services/test_passes.py",
    "tests/scheduling/services/test_quotas_at_once.py",
    "tests/scheduling/services/test_workdays.py",
    "tests/security/test_guesses_at_once.py",
    "tests/security/test_sessions.py",
    "tests/security/test_sign_in.py",
    "tests/security/test_throttles.py",
    "tests/security/test_tokens.py",
)
WHOLE = tuple(f"tests/parts/test_{name}.py" for name in ("whole", "days", "versions", "neighbours"))
"""What is killed and waited for takes one process of pytest as long as the others take the second one."""


@contextmanager
def pytest(
    tests: Sequence[str], environment: dict[str, str], *options: str, told: IO[str] | None = None
) -> Iterator[subprocess.Popen[str]]:
    """Runs beside the block, to whose end it is waited for; what it prints goes to ``told``, if given."""
    command = [sys.executable, "-m", "pytest", *options, *tests]
    began = time.monotonic()
    with subprocess.Popen(
        command, cwd=ROOT, env={**os.environ, **environment}, stdout=told, stderr=told, text=True
    ) as run:
        yield run
    sys.stdout.write(f"{len(tests)} suites in {time.monotonic() - began:.0f} s\n")
    sys.stdout.flush()


def main() -> int:
    """The whole beside the suites, which compute while that waits for what was killed to come back; what it
    prints follows theirs: of those that passed, too, how long each took.
    """
    # The broker of the suites stays in the process: who sends and who takes a task are in one there.
    chosen = ("-n", "2", "--dist", "worksteal", "-p", "tests.parts.chosen")
    apart = ("-n", "2", "--dist", "loadfile", "-rP")
    with TemporaryFile("w+") as told:
        with (
            postgres() as database,
            redis_server() as cache,
            pytest(WHOLE, {"WEIR_TEST_PARTS": "1"}, *apart, told=told) as whole,
            pytest(
                (*SUITES, *PARTLY),
                {"DATABASE_URL": database.url, "WEIR_CACHE_URL": cache.url},
                *chosen,
            ) as suites,
        ):
            suites.wait()
        told.seek(0)
        shutil.copyfileobj(told, sys.stdout)
    return suites.returncode or whole.returncode


if __name__ == "__main__":
    sys.exit(main())
