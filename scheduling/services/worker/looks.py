"""What an installation stands on, looked at: the database and its schema, the broker, how old plans are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from celery import current_app
from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.db.models import QuerySet
from django.utils import timezone
from kombu.exceptions import OperationalError

from scheduling.engine.reasons.wording import plural
from scheduling.models import Cluster, ClusterMode

LATE_S = 120.0
"""A plan that is older is late: cycles come every few seconds, and a restart takes less than a minute."""
ASK_S = 1.0


@dataclass(frozen=True, slots=True)
class Look:
    """One thing that was looked at. ``fault`` is empty where it is well; it names no cluster and no host,
    for strangers may read it."""

    name: str
    fault: str = ""
    is_needed: bool = True
    """Whether a process that lacks it can do nothing of its work. A portal without plans is read all the
    same, and taken out of service by nobody."""


def database() -> Look:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except (DatabaseError, OSError) as error:
        return Look("database", f"does not answer ({type(error).__name__})")
    return Look("database")


def migrations() -> Look:
    try:
        lacking = 0 if _is_up_to_date() else len(unapplied())
    except (DatabaseError, OSError):
        return Look("migrations", "the database does not answer")
    return Look("migrations", f"not applied: {lacking}" if lacking else "")


def unapplied() -> list[str]:
    """Migrations of this version that the database has not seen."""
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


class _BehindError(Exception):
    """So that only good news is remembered: what is applied stays so while this code runs."""


@cache
def _applied() -> None:
    if unapplied():
        raise _BehindError


def _is_up_to_date() -> bool:
    try:
        _applied()
    except _BehindError:
        return False
    return True


def broker() -> Look:
    if settings.WEIR_BROKER_FOLDER:
        return Look("broker", is_needed=False)
    try:
        with current_app.connection_for_write(connect_timeout=ASK_S) as link:
            link.ensure_connection(max_retries=1, timeout=ASK_S)
    except (OperationalError, OSError) as error:
        return Look("broker", f"does not answer ({type(error).__name__})", is_needed=False)
    return Look("broker", is_needed=False)


def plans() -> Look:
    try:
        late, all_ = len(late_clusters()), _planned().count()
    except (DatabaseError, OSError):
        return Look("plans", "the database does not answer", is_needed=False)
    fault = (
        f"none of the last {LATE_S:.0f} s in {late} of {plural(all_, 'cluster')}" if late else ""
    )
    return Look("plans", fault, is_needed=False)


def late_clusters() -> list[Cluster]:
    """Those that are to be planned and were not of late."""
    now = timezone.now()
    return [
        one
        for one in _planned()
        if not one.planned_at or (now - one.planned_at).total_seconds() > LATE_S
    ]


def _planned() -> QuerySet[Cluster]:
    return Cluster.objects.exclude(mode=ClusterMode.PAUSED).order_by("name")


LOOKS: tuple[Callable[[], Look], ...] = (database, migrations, broker, plans)


def look() -> list[Look]:
    """All of them, in this order; never raises."""
    return [one() for one in LOOKS]
