"""People to tell that the GPUs of their work idle: its owner, else the members of its queue's team. Told once
they have idled for as long as the policy says, daily from then on, and again when somebody asks for it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from portal.accounts.models import User
from portal.display.format import duration, gpus_counted, memory, when
from portal.notices.models import Kind
from portal.notices.outbox import tell
from portal.teams.models import Membership
from scheduling.models import Cluster, IdleSpell
from scheduling.models.workloads import HOLDING
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.idle import culled_at, going_on, tell_owner

AGAIN = timedelta(days=1)
SOONEST = timedelta(minutes=10)
"""Between two nudges."""


def look_all() -> None:
    for cluster in Cluster.objects.exclude(metrics_url=""):
        look(cluster)


@transaction.atomic
def look(cluster: Cluster) -> None:
    """Tell of each spell that is long enough, and was not told of within the day."""
    now = cluster.now()
    spells = going_on(cluster).filter(
        Q(told_at=None) | Q(told_at__lte=now - AGAIN),
        Q(kept_until=None) | Q(kept_until__lte=now),
        since__lte=now - timedelta(seconds=cluster.idle_after_s),
        workload__state__in=HOLDING,
    )
    for spell in spells.select_related("workload__queue", "workload__cluster", "gpu_class"):
        _tell(spell, now)


@transaction.atomic
def nudge(spell: IdleSpell, *, by: User) -> None:
    """Tell again now. Raises ServiceError where it is over, or was told of just before."""
    now = spell.workload.cluster.now()
    rows = IdleSpell.objects.select_for_update(of=("self",)).filter(pk=spell.pk, until=None)
    again = rows.select_related("workload__queue", "workload__cluster", "gpu_class").first()
    if again is None:
        raise ServiceError("moved_on", "Its GPUs are no longer idle.", "See the page again.")
    if again.told_at is not None and again.told_at > now - SOONEST:
        raise ServiceError(
            "told_already", f"Its owner was told {duration(now - again.told_at)} ago.",
            "Wait some minutes.",
        )  # fmt: skip
    _tell(again, now, asked_by=by.get_username())


def _tell(spell: IdleSpell, now: datetime, asked_by: str = "") -> None:
    work, cluster = spell.workload, spell.workload.cluster
    size, for_ = gpus_counted(spell.gpus), duration(now - spell.since)
    for user in _whom(spell, now):
        tell(
            user, Kind.IDLE, cluster, source=f"idle {spell.pk} {spell.told + 1}", about=work.name,
            title=f"Nothing has run on {size} of {work.name} for {for_}.",
            lines=_lines(spell, user, now, asked_by),
            address=reverse("web:workload", args=[cluster.name, work.uid]),
        )  # fmt: skip
    tell_owner(spell, now)


def _lines(spell: IdleSpell, user: User, now: datetime, asked_by: str) -> list[list[str]]:
    cluster = spell.workload.cluster
    lines = [["Holds", f"{gpus_counted(spell.gpus)} of {spell.gpu_class.name}."]]
    if spell.memory_mib:
        lines.append(["Memory", f"{memory(spell.memory_mib)} of each are taken meanwhile."])
    if asked_by:
        lines.append(["Asked by", f"{asked_by}."])
    at = culled_at(spell, cluster, now)
    zone = user.display_time_zone or cluster.display_time_zone
    said = "Give them back by cancelling it, if nothing more is to run."
    if at is not None:
        said = f"It is cancelled at {when(at, now, zone)} unless something runs, or you keep it."
    return [*lines, ["Next", said]]


def _whom(spell: IdleSpell, now: datetime) -> Iterable[User]:
    work = spell.workload
    owner = User.objects.filter(username=work.user, is_active=True)
    if owner.exists() or work.queue is None:
        return owner
    memberships = Membership.objects.in_force(now).filter(team__queue=work.queue)
    return User.objects.filter(pk__in=memberships.values("user"), is_active=True).order_by("pk")
