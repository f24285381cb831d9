"""Rules: who sees and edits which, the first ones of a cluster, and the doors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Q, QuerySet

from portal.accounts.models import User
from portal.alerts.models import Figure, Firing, Rule, Tell
from portal.alerts.series import OF_WORK
from portal.teams.access import dividable_queues, is_operator
from portal.teams.models import Team
from portal.teams.people import visible_people, visible_teams
from scheduling.models import Cluster, GpuClass, Queue
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

MOST = 100
OF_CLUSTER = frozenset({Figure.ENGINE_STALLED, Figure.MIRROR_STALE, Figure.OVERSUBSCRIBED})
"""Of no single queue."""
FROM_ONE = frozenset({Figure.OVERSUBSCRIBED, Figure.IN_VAIN})
"""Should be none at all, so that a rule may say *more than 0*."""
CIRCLE = frozenset({"escalate_s", "escalate_team", "escalate_people"})
HOUR, DAY = 3600, 86_400
FIRST: tuple[dict[str, Any], ...] = (
    {"figure": Figure.LONGEST_WAIT, "over": 24 * HOUR, "tell": Tell.LEADS},
    {"figure": Figure.STARVATION, "over": 2 * HOUR, "tell": Tell.LEADS},
    {"figure": Figure.IDLE_GPUS, "over": 12 * HOUR, "least_gpus": 4, "tell": Tell.OWNER},
    {"figure": Figure.EVICTED_AGAIN, "over": 3, "tell": Tell.OWNER},
    {"figure": Figure.IN_VAIN, "over": 0},
    {"figure": Figure.BUDGET, "over": 7, "tell": Tell.LEADS, "again_s": 7 * DAY},
    {"figure": Figure.OVERSUBSCRIBED, "over": 0, "for_s": HOUR},
    {"figure": Figure.ENGINE_STALLED, "over": 60},
    {"figure": Figure.MIRROR_STALE, "over": 30},
)
"""What every cluster is watched for from the beginning."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A rule as it is typed."""

    figure: Figure
    over: float
    for_s: int = 0
    queue: Queue | None = None
    gpu_class: GpuClass | None = None
    least_gpus: int = 1
    tell: Tell = Tell.OPERATORS
    again_s: int = 6 * HOUR
    escalate_s: int = 0
    escalate_team: Team | None = None
    escalate_people: tuple[str, ...] = ()

    def columns(self) -> dict[str, Any]:
        names = {name: getattr(self, name) for name in self.__slots__}
        return names | {"escalate_people": list(self.escalate_people)}

    def differs_by_circle_alone(self, before: Wish) -> bool:
        changed = {name for name in self.__slots__ if getattr(self, name) != getattr(before, name)}
        return bool(changed) and changed <= CIRCLE


def wished(rule: Rule) -> dict[str, Any]:
    """What was typed of it, as ``Wish`` takes it."""
    columns = {name: getattr(rule, name) for name in Wish.__slots__}
    return columns | {"escalate_people": tuple(rule.escalate_people)}


def visible(user: User, cluster: Cluster) -> QuerySet[Rule]:
    """All for operators; for leads those of the queues that they lead."""
    rows = Rule.objects.filter(cluster=cluster).select_related(
        "queue", "gpu_class", "cluster", "escalate_team"
    )
    if is_operator(user):
        return rows
    return rows.filter(queue__in=led(user, cluster))


def led(user: User, cluster: Cluster) -> QuerySet[Queue]:
    return dividable_queues(user).filter(cluster=cluster, parent__isnull=False)


def may_watch(user: User, cluster: Cluster) -> bool:
    """Whether there is a page of alerts for the person."""
    return is_operator(user) or led(user, cluster).exists()


def check(user: User, cluster: Cluster, wish: Wish) -> None:
    """Raises ServiceError at the field."""
    if wish.queue is None and not is_operator(user):
        raise ServiceError("whose", "Choose a queue that you lead.", field="queue")
    if wish.figure in OF_CLUSTER and wish.queue is not None:
        raise ServiceError(
            "no_queue", "That is of the whole cluster.", "Leave the queue empty.", field="queue"
        )
    if wish.tell == Tell.OWNER and wish.figure not in OF_WORK:
        raise ServiceError(
            "nobodys", "That is of no single workload, so nobody owns it.",
            "Tell leads or operators.", field="tell",
        )  # fmt: skip
    if wish.over < 0 or (wish.over == 0 and wish.figure not in FROM_ONE):
        raise ServiceError("always", "It would always fire.", "Write more than 0.", field="over")
    check_circle(user, wish)


def check_circle(user: User, wish: Wish) -> None:
    """Whether the second circle are people that ``user`` sees, and there is a time after which they are told.
    Raises ServiceError.
    """
    if (wish.escalate_team or wish.escalate_people) and not wish.escalate_s:
        raise ServiceError(
            "no_hours", "A second circle needs a time after which it is told.", "Write hours.",
            field="escalate_s",
        )  # fmt: skip
    if wish.escalate_team and not visible_teams(user).filter(pk=wish.escalate_team.pk).exists():
        raise ServiceError(
            "unknown_team", "There is no such team.", "Choose another.", field="escalate_team"
        )
    seen = visible_people(user).filter(is_active=True, username__in=wish.escalate_people)
    unknown = sorted({*wish.escalate_people} - {*seen.values_list("username", flat=True)})
    if unknown:
        raise ServiceError(
            "unknown_people", f"Nobody here is called {', '.join(unknown)}.",
            "Write user names with commas between.", field="escalate_people",
        )  # fmt: skip


@transaction.atomic
def save(*, by: User, cluster: Cluster, wish: Wish, rule: Rule | None = None) -> Rule:
    """A new rule, or ``rule`` as it is wished now; what fires by the old one ends, unless only the second
    circle is another. Raises ServiceError."""
    check(by, cluster, wish)
    before: Mapping[str, Any] = {}
    if rule is None:
        Cluster.objects.select_for_update().get(pk=cluster.pk)
        if Rule.objects.filter(cluster=cluster).count() >= MOST:
            raise ServiceError("too_many", f"There are {MOST} rules.", "Delete one first.")
        rule = Rule(cluster=cluster)
    else:
        before = as_json(rule)
        if not wish.differs_by_circle_alone(Wish(**wished(rule))):
            rule.over_since = rule.value = rule.near = None
            end_firings(rule, cluster.now())
    for name, value in wish.columns().items():
        setattr(rule, name, value)
    rule.save()
    announce_of("alert.rule_set", by, rule, before, as_json(rule))
    return rule


@transaction.atomic
def delete(rule: Rule, *, by: User) -> None:
    announce_of("alert.rule_deleted", by, rule, as_json(rule), {})
    rule.delete()


def end_firings(rule: Rule, now: datetime) -> None:
    Firing.objects.filter(rule=rule, until=None).update(until=now)


def acknowledge(firing: Firing, *, by: User, now: datetime) -> None:
    """Somebody looks after it. Raises ServiceError where it is over, or somebody does already."""
    firings = Firing.objects.filter(pk=firing.pk, until=None, acknowledged_at=None)
    if not firings.update(acknowledged_at=now, acknowledged_by=by.get_username()):
        raise ServiceError(
            "moved_on", "It is over, or somebody has acknowledged it.", "See the page again."
        )
    announce_of("alert.acknowledged", by, firing.rule, {}, {"since": firing.since.isoformat()})


def acknowledge_rule(rule: Rule, *, by: User, now: datetime) -> None:
    """Of what fires by it. Raises ServiceError where nothing does."""
    firing = Firing.objects.filter(rule=rule, until=None).select_related("rule__cluster").first()
    if firing is None:
        raise ServiceError("moved_on", "It is over.", "Nothing fires by this rule now.")
    acknowledge(firing, by=by, now=now)


def as_json(rule: Rule) -> dict[str, Any]:
    return {
        "figure": rule.figure,
        "queue": rule.queue.path if rule.queue else "",
        "gpu_class": rule.gpu_class.name if rule.gpu_class else "",
        "over": rule.over,
        "for_s": rule.for_s,
        "least_gpus": rule.least_gpus,
        "tell": rule.tell,
        "again_s": rule.again_s,
        "escalate_s": rule.escalate_s,
        "escalate_team": rule.escalate_team.name if rule.escalate_team else "",
        "escalate_people": rule.escalate_people,
    }


def announce_of(
    kind: str, by: User | None, rule: Rule, before: Mapping[str, Any], after: Mapping[str, Any]
) -> None:
    announce(
        kind,
        actor=by,
        cluster=rule.cluster,
        queue=rule.queue.path if rule.queue else "",
        subject=rule.get_figure_display(),
        before=before,
        after=after,
    )


def mine(user: User, cluster: Cluster) -> Q:
    """Of the queues that the person leads."""
    return Q(queue__in=led(user, cluster))
