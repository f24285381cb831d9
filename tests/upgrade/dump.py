"""Writes down the database of a release, small and as text: the example organisation, and one line of its
audit log.

At a release: ``DATABASE_URL=sqlite:////tmp/release.sqlite3 python -m tests.upgrade.dump``. The file of the
release before goes then, and test_upgrade.py reads the new one.
"""

from __future__ import annotations

import os
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import django

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MOST_BYTES = 300_000


def release() -> str:
    """The number of this version, as pyproject.toml says."""
    found = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    django.setup()
    from django.core.management import call_command
    from django.db import connection

    call_command("migrate", verbosity=0)
    _fill()
    connection.close()
    _write(Path(connection.settings_dict["NAME"]), HERE / f"{release()}.sql")


def _fill() -> None:
    from portal.accounts.models import User
    from scheduling.models import ClusterMode
    from scheduling.services.clusters.add import set_mode
    from tests.factories import example_cluster

    cluster = example_cluster()
    admin = User.objects.get(username="admin")
    set_mode(cluster, ClusterMode.OBSERVE, author=admin)


def _write(database: Path, to: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        text = "\n".join(connection.iterdump()) + "\n"
    assert len(text) <= MOST_BYTES, f"{len(text)} bytes: keep the release's database small"
    to.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
