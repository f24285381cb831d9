"""The database of tests as migrations leave it, made once and kept: making it takes eight CPU-seconds of each
process that asks for rows, copying it a hundredth of one.

It goes by the migrations alone: an edit of them, another Django or app that brings some makes it anew. Django
still looks at a copy, and applies what it lacks.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path

import django
from django.apps import apps
from django.db.backends.base.base import BaseDatabaseWrapper

from portal.audit.guard import guard, unguard
from workshop.alone import alone

FOLDER = Path(__file__).parents[1] / "var" / "test-database"


def kept() -> Path:
    """Where the database of these migrations is, once it is there."""
    digest = sha256(f"{sys.version} {sqlite3.sqlite_version} {django.__version__}".encode())
    for app in apps.get_app_configs():
        for path in sorted(Path(app.path, "migrations").glob("*.py")):
            digest.update(f"{app.label} {path.name}".encode() + path.read_bytes())
    return FOLDER / f"{digest.hexdigest()[:16]}.sqlite3"


@contextmanager
def migrated(database: Path) -> Iterator[None]:
    """``database`` is a copy inside, or will be one: what the block makes there is kept for the next process.
    Of processes that begin together one makes it and the others wait."""
    with alone(FOLDER / ".lock"):
        place = kept()
        if not place.exists():
            yield
            _keep(database, place)
            return
        shutil.copyfile(place, database)
    yield


def _keep(database: Path, place: Path) -> None:
    """The older ones go: one is as good as another only for the same migrations."""
    for old in FOLDER.glob("*.sqlite3"):
        old.unlink()
    half = place.with_suffix(".half")
    half.unlink(missing_ok=True)
    with closing(sqlite3.connect(database)) as made:
        # What its journal still holds is in it then.
        made.execute("VACUUM INTO ?", (str(half),))
    os.replace(half, place)


@contextmanager
def unguarded(connection: BaseDatabaseWrapper) -> Iterator[None]:
    """As for whoever owns the table of the audit log and dropped its triggers; made again at the end."""
    unguard(connection)
    try:
        yield
    finally:
        guard(connection)
