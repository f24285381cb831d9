"""What one person does to several workloads at once, by a page or by the API: each is answered for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from portal.accounts.models import User
from portal.teams.access import operable, visible_workloads
from scheduling.models import Cluster, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.several import MOST, Action, act_on


@dataclass(frozen=True, slots=True)
class ActOutcome:
    """Of one that was named; ``workload`` is None for what the person may not see, or is not there."""

    uid: str
    workload: Workload | None
    refused: ServiceError | None = None

    @property
    def name(self) -> str:
        return self.workload.name if self.workload else self.uid


def look_up(user: User, cluster: Cluster, uids: Iterable[str]) -> list[ActOutcome]:
    """Each of ``uids`` once, in their order, refused where ``user`` may not touch it.

    Raises ServiceError for more than are done at once.
    """
    wanted = list(dict.fromkeys(uids))
    if len(wanted) > MOST:
        raise ServiceError(
            "too_many_at_once",
            f"{len(wanted)} workloads are more than the {MOST} that can be acted on at once;"
            " nothing was done.",
            f"Name at most {MOST}, then the others.",
            field="uids",
        )
    related = ("cluster", "queue", "gpu_class", "priority_class")
    seen = visible_workloads(user).filter(cluster=cluster, uid__in=wanted)
    found = {work.uid: work for work in seen.select_related(*related)}
    mine = operable(user, found.values())
    return [_answer(uid, found.get(uid), mine) for uid in wanted]


def _answer(uid: str, work: Workload | None, mine: set[int]) -> ActOutcome:
    if work is None:
        return ActOutcome(uid, None, _absent())
    return ActOutcome(uid, work, None if work.pk in mine else not_theirs(work))


def _absent() -> ServiceError:
    return ServiceError(
        "not_found", "There is no such workload, or you may not see it.", "Reload the list."
    )


def not_theirs(work: Workload) -> ServiceError:
    """Of a workload that somebody sees and may not touch."""
    return ServiceError(
        "not_allowed",
        f"{work.name} belongs to {work.user or 'nobody known'}.",
        "Ask them, the lead of the queue's team, or somebody who operates the cluster.",
    )


def act(
    user: User, answers: Sequence[ActOutcome], action: Action, *, priority_class: str = ""
) -> list[ActOutcome]:
    """``answers`` of ``look_up`` with what came of those that were not refused."""
    todo = [one.workload for one in answers if one.workload and not one.refused]
    name = user.get_username()
    outcomes = act_on(todo, action, user=name, priority_class=priority_class)
    came_of = {outcome.workload.uid: outcome.refused for outcome in outcomes}
    return [replace(one, refused=came_of.get(one.uid, one.refused)) for one in answers]
