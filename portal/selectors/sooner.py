"""What a person could change so that a waiting workload starts now."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.accounts.models import User
from portal.teams.reach import reach_of
from portal.teams.reading import Reading
from scheduling.models import StartChanges, Workload
from scheduling.services.explain.sooner import plan_now, planned_changes
from scheduling.services.words.sentences import answers

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Sooner:
    """Each change of one input within the person's reach that would start it, as planned at ``at``."""

    changes: Sequence[Json]
    at: datetime


def sooner(person: User, work: Workload) -> Sooner:
    """Planned now on the live cluster. Raises ServiceError where that does not answer."""
    wanted = [(work, reach_of(person, work.cluster))]
    return _readable(person, work, next(plan_now(work.cluster, wanted)))


def planned(person: User, work: Workload) -> Sooner | None:
    """As it was planned in the background; None where it was not yet."""
    row = planned_changes(work, reach_of(person, work.cluster))
    return _readable(person, work, row) if row else None


def _readable(person: User, work: Workload, row: StartChanges) -> Sooner:
    return Sooner(answers(row.found, work, Reading(person)), row.at)
