"""Notices, by person. Events come by their outbox; what cycles do to workloads is read from the ledger.

Both write a notice in the transaction that takes its cause off the list, so each is told once, whatever is
killed in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import User
from portal.approvals.models import QuotaLoan, QuotaRequest
from portal.approvals.moves import title
from portal.approvals.who import deciders
from portal.display.format import duration, hours
from portal.notices import ends, letters
from portal.notices.models import Cursor, Kind, Notice
from portal.notices.times import due_at
from portal.teams.reading import Reading
from scheduling.models import Announcement, Cluster, Eviction, StartForecast, State, Transition
from scheduling.services.starts.tell import predicted_start as said_now
from scheduling.services.words.endings import RAN_OUT
from scheduling.services.words.sentences import name_of, readable

LONG_WAIT = timedelta(hours=2)
AT_ONCE = 500
"""Rows of the ledger that are told in one pass."""

SENT = {"submit": "asked", "forward": "forwarded it"}
SAID = {
    "approve": "was approved",
    "ask_changes": "was sent back: changes are asked for",
    "reject": "was rejected",
    "revoke": "was revoked",
    "begin": "has begun",
    "fail": "could not begin",
    "expire": "has ended",
}


def hear(announcement: Announcement) -> None:
    """The subscriber: notices of one event of a request."""
    after = announcement.after or {}
    request = (
        QuotaRequest.objects.select_related("cluster", "queue", "giver", "author", "forwarder")
        .filter(pk=after.get("request", 0))
        .first()
    )
    if request is None or announcement.refused:
        return
    verb = announcement.kind.partition(".")[2]
    source = f"event {announcement.pk}"
    if verb != "comment":
        settle(request)
    for user, kind, said, lines in _of_request(request, verb, announcement):
        if user.get_username() == announcement.actor:
            continue
        tell(
            user, kind, request.cluster, source=source, about=str(request), title=said, lines=lines,
            address=reverse("web:request", args=[request.cluster.name, request.pk]),
        )  # fmt: skip


def settle(subject: QuotaRequest | QuotaLoan) -> None:
    """It has moved on: whose turn it was has nothing to do any more."""
    open_ = Notice.objects.filter(kind=Kind.NEEDS_ME, about=str(subject), read_at=None)
    open_.update(read_at=timezone.now())


Told = tuple[User, Kind, str, list[list[str]]]


def _of_request(request: QuotaRequest, verb: str, announcement: Announcement) -> Iterable[Told]:
    by = f" by {announcement.actor}" if announcement.actor else ""
    word = "Said" if verb in ("comment", "forward") else "Reason"
    lines = [[word, announcement.reason]] if announcement.reason else []
    if verb in ("submit", "forward"):
        yield from _turns(request, announcement.actor, SENT[verb], lines)
    if verb == "submit" and request.granted_at is not None:
        yield from _to_parties(request, Kind.DECIDED, "was approved at once", lines)
    elif verb in SAID:
        yield from _to_parties(request, Kind.DECIDED, f"{SAID[verb]}{by}", lines)
    elif verb == "near_end":
        left = duration(request.ends_at - request.cluster.now()) if request.ends_at else ""
        yield from _to_parties(
            request, Kind.ENDS, f"ends in {left}", [["Next", "Renew it, or let it end."]]
        )
    elif verb == "comment":
        yield from _to_parties(request, Kind.COMMENT, f"has a comment{by}", lines)


def _turns(request: QuotaRequest, actor: str, did: str, lines: list[list[str]]) -> Iterable[Told]:
    said = f"{request}, {title(request)}: {actor or 'Weir'} {did}, and it is your turn."
    for user in deciders(request):
        yield user, Kind.NEEDS_ME, said, lines


def _to_parties(
    request: QuotaRequest, kind: Kind, said: str, lines: list[list[str]]
) -> Iterable[Told]:
    for user in {u.pk: u for u in (request.author, request.forwarder) if u is not None}.values():
        yield user, kind, f"{request}, {title(request)}, {said}.", lines


def tell(
    user: User,
    kind: Kind,
    cluster: Cluster,
    *,
    source: str,
    about: str,
    title: str,
    lines: list[list[str]],
    address: str,
    at: datetime | None = None,
) -> bool:
    """Whether there is one notice more: none where the person wants none of the kind or was told already."""
    time = due_at(user, kind, timezone.now(), cluster.display_time_zone)
    if time is None or not user.is_active:
        return False
    notice, made = Notice.objects.get_or_create(
        user=user,
        source=source,
        defaults={
            "kind": kind, "cluster": cluster, "at": at or cluster.now(), "due_at": time,
            "about": about[:300], "title": title[:300], "lines": lines, "address": address,
        },
    )  # fmt: skip
    if made:
        letters.write(user, notice)
    return made


def look_all() -> int:
    """What happened to people's workloads since the last look, on every cluster; how many rows were told."""
    return sum(look(cluster) for cluster in Cluster.objects.all())


@transaction.atomic
def look(cluster: Cluster) -> int:
    """Tell what the ledger has past the cursor, and move it, in one transaction: two at once wait."""
    cursor, made = Cursor.objects.get_or_create(cluster=cluster)
    cursor = Cursor.objects.select_for_update().get(pk=cursor.pk)
    if made:
        # What is long past is no news.
        cursor.eviction = _last(Eviction.objects.filter(workload__cluster=cluster))
        cursor.transition = _last(Transition.objects.filter(workload__cluster=cluster))
        cursor.save()
        return 0
    people = {user.get_username(): user for user in User.objects.filter(is_active=True)}
    evicted = list(_evictions(cluster, cursor.eviction)[:AT_ONCE])
    steps = list(_steps(cluster, cursor.transition)[:AT_ONCE])
    for eviction in evicted:
        if user := people.get(eviction.workload.user):
            _tell_eviction(user, cluster, eviction)
    for step in steps:
        if user := people.get(step.workload.user):
            tell_step = _tell_start if step.to_state == State.RUNNING else _tell_end
            tell_step(user, cluster, step)
    cursor.eviction = max([cursor.eviction, *(row.pk for row in evicted)])
    cursor.transition = max([cursor.transition, *(row.pk for row in steps)])
    cursor.save()
    return len(evicted) + len(steps)


def _last(rows: Any) -> int:
    return rows.aggregate(last=Max("pk"))["last"] or 0


def _evictions(cluster: Cluster, after: int) -> Any:
    rows = Eviction.objects.filter(workload__cluster=cluster, pk__gt=after).order_by("pk")
    return rows.select_related("workload__queue", "for_workload__queue", "for_queue", "gpu_class")


def _steps(cluster: Cluster, after: int) -> Any:
    """Starts, ends, and stops at a run-time limit."""
    began = Q(to_state=State.RUNNING) & ~Q(from_state=State.RUNNING)
    stopped = Q(to_state=State.REQUEUED, reason=RAN_OUT)
    rows = Transition.objects.filter(
        stopped | Q(to_state=State.FINISHED) | began, workload__cluster=cluster, pk__gt=after
    )
    return rows.select_related("workload__queue").order_by("pk")


def _tell_eviction(user: User, cluster: Cluster, eviction: Eviction) -> None:
    """By whom, why, what is lost, what comes next."""
    work, reader = eviction.workload, Reading(user)
    by = name_of(eviction.for_workload, reader) if eviction.for_workload else ""
    lost = hours((eviction.lost_gpu_s or 0) / 3600)
    forecast = said_now(StartForecast.objects.filter(workload=work).first(), cluster.now())
    again = "It waits again, first in line of its priority."
    if forecast.p50 is not None:
        again = (
            f"It waits again; it is expected to start in {duration(forecast.p50 - cluster.now())}."
        )
    tell(
        user,
        Kind.EVICTED,
        cluster,
        source=f"eviction {eviction.pk}",
        about=work.name,
        title=f"{work.name} was evicted" + (f" for {by}." if by else "."),
        lines=[
            ["Why", readable(eviction, reader).sentence],
            ["Lost", f"{lost} GPU-hours since its last checkpoint."],
            ["Next", again],
        ],
        address=reverse("web:workload", args=[cluster.name, work.uid]),
        at=eviction.at,
    )


def _tell_start(user: User, cluster: Cluster, step: Transition) -> None:
    """Only after a long wait; what starts soon after it came is seen starting."""
    work = step.workload
    waited = step.at - _waited_since(step)
    if waited < LONG_WAIT:
        return
    tell(
        user,
        Kind.STARTED,
        cluster,
        source=f"start {step.pk}",
        about=work.name,
        title=f"{work.name} started after {duration(waited)}.",
        lines=[],
        address=reverse("web:workload", args=[cluster.name, work.uid]),
        at=step.at,
    )


def _tell_end(user: User, cluster: Cluster, step: Transition) -> None:
    """Of what its owner did himself nothing."""
    found = ends.told_of(step)
    if found is None:
        return
    kind, title_, lines = found
    work = step.workload
    tell(
        user, kind, cluster, source=f"end {step.pk}", about=work.name, title=title_, lines=lines,
        address=reverse("web:workload", args=[cluster.name, work.uid]), at=step.at,
    )  # fmt: skip


def _waited_since(step: Transition) -> datetime:
    """When it last came to wait."""
    waits = Transition.objects.filter(
        workload=step.workload, to_state__in=(State.PENDING, State.REQUEUED), pk__lt=step.pk
    )
    last = waits.order_by("-pk").first()
    return last.at if last else step.workload.submitted_at
