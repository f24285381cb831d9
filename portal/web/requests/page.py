"""One request as its page shows it: its life, what it would do, why, and what the reader may do about it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import F, FloatField, Sum

from portal.accounts.models import User
from portal.approvals.clock import warns_at
from portal.approvals.models import QuotaRequest, Step
from portal.approvals.previews import ReadablePreview, seen_by
from portal.approvals.states import DECIDABLE, GRANTED, IN_FORCE, OPEN, Kind, State, Verb
from portal.approvals.who import acted, approvers
from portal.approvals.wishes import Wish
from portal.display.format import gpus_counted, money, number
from portal.plans import asking as plans
from portal.plans.asking import PlanState
from portal.plans.kinds import REQUEST, WISH, of_request, of_wish
from portal.teams.reading import Reading
from scheduling.models import MILLI, GpuClass, Queue, UsageSample
from scheduling.services.words.sentences import OTHERS_QUEUE

PAST_DAYS = 30


@dataclass(frozen=True, slots=True)
class Stop:
    """A step of the life as it is drawn: ``mark`` is done, now, ahead or ended."""

    name: str
    mark: str
    at: datetime | None = None
    notes: tuple[str, ...] = ()
    line: str = ""


def as_typed(wish: Wish) -> PlanState | None:
    """What it would do as it is filled in; None where nothing is planned of it."""
    if wish.kind == Kind.ACCESS:
        return None
    return plans.ask(wish.queue.cluster, WISH, of_wish(wish))


def as_now(request: QuotaRequest, *, gpus: int | None, giver: Queue | None) -> PlanState | None:
    """What it would do as things are; None where nothing is planned of it."""
    if request.kind == Kind.ACCESS:
        return None
    return plans.ask(request.cluster, REQUEST, of_request(request, gpus, giver))


def expected(request: QuotaRequest, *, gpus: int | None, giver: Queue | None) -> dict[str, Any]:
    """The same for whoever approves it."""
    if request.kind == Kind.ACCESS:
        return {}
    return plans.plan_now(request.cluster, REQUEST, of_request(request, gpus, giver))


def preview_for(
    request: QuotaRequest, user: User, answer: dict[str, Any] | None
) -> ReadablePreview | None:
    if answer is None:
        return None
    return seen_by(
        user,
        request.cluster,
        answer,
        about=request.place.rpartition("/")[2],
        gpu_class=request.gpu_class,
    )


def since(before: ReadablePreview | None, now: ReadablePreview | None) -> str:
    """What is otherwise than when it was submitted; empty where nothing is, or nothing is known."""
    if before is None or now is None or before.fault or now.fault:
        return ""
    counts = [(before.starts, before.leaves), (now.starts, now.leaves)]
    if counts[0] == counts[1]:
        return ""
    return f"on submission {before.outcome}."


def life(request: QuotaRequest, steps: list[Step], user: User) -> list[Stop]:
    """What was done, and what is ahead where nothing comes between."""
    done = [_stop(step) for step in steps if step.verb != Verb.SAVE or not step.before]
    if request.state in (*OPEN, *GRANTED):
        return [*done[:-1], *_now(request, done[-1:]), *_ahead(request, user)]
    last = replace(done[-1], mark="ended") if done else None
    return [*done[:-1], *([last] if last else [])]


def _stop(step: Step) -> Stop:
    by = (str(step.by),) if step.by else (("by itself",) if step.before else ())
    return Stop(str(Verb(step.verb).label), "done", step.at, by, step.note)


def _now(request: QuotaRequest, last: list[Stop]) -> list[Stop]:
    return [replace(one, mark="now") for one in last]


def _ahead(request: QuotaRequest, user: User) -> Iterator[Stop]:
    state = State(request.state)
    if state == State.SUBMITTED:
        yield Stop("Lead", "ahead", None, ("forwards, or decides",))
    if state in DECIDABLE:
        count = len(approvers(request))
        mine = "one of them you" if _could(request, user) else ""
        yield Stop(
            "Approver", "ahead", None, (f"{count} could", mine) if mine else (f"{count} could",)
        )
    if state in OPEN:
        when = () if request.starts_at else ("on approval",)
        yield Stop("Active", "ahead", request.starts_at, when)
    if state == State.SCHEDULED:
        yield Stop("Active", "ahead", request.starts_at)
    if request.ends_at is not None:
        if state in (State.SCHEDULED, State.ACTIVE):
            yield Stop("Ends soon", "ahead", warns_at(request))
        yield Stop("Ends", "ahead", request.ends_at, ("the old values come back",))


def _could(request: QuotaRequest, user: User) -> bool:
    return not acted(user, request) and user in approvers(request)


def four_eyes(request: QuotaRequest, user: User) -> tuple[bool, str]:
    """Whether the reader may decide as another pair of eyes, and the sentence."""
    asker = f"{request.author or 'Somebody who is gone'} asked"
    sent = f" and {request.forwarder} forwarded" if request.forwarder else ""
    done = acted(user, request)
    if done:
        return False, f"{done} Somebody else decides."
    return True, f"{asker}{sent}; you did neither."


def giver_of(request: QuotaRequest, user: User) -> str:
    """The name of the giver as the person may read it; empty where none is named."""
    if request.giver is None:
        return ""
    reader = Reading(user)
    sees = reader.sees_queue(request.cluster_id, request.giver.path)
    return request.giver.name if sees else OTHERS_QUEUE


def facts(request: QuotaRequest, user: User, now: datetime) -> list[tuple[str, str]]:
    """(what, figure) beside the reason."""
    found = request.cluster.gpu_classes.filter(name=request.gpu_class).first()
    rows = []
    if request.is_about_quota:
        rows.append(("Kind", f"{request.kind}, {request.get_figure_display().lower()}"))
    else:
        rows.append(("Kind", "new queue" if request.kind == Kind.QUEUE else "access"))
    if request.granted_gpus is not None and request.granted_gpus != request.gpus:
        rows.append(
            ("Granted", f"{request.granted_gpus / MILLI:g} of {(request.gpus or 0) / MILLI:g}")
        )
    if request.is_about_quota and request.figure == "nominal":
        rows.append(("Taken from", giver_of(request, user) or "not said"))
    if found is not None and request.is_about_quota:
        rows += _most(request, found, now)
        rows += _holdings(request, user, found, now)
    return rows


def _most(request: QuotaRequest, found: GpuClass, now: datetime) -> Iterator[tuple[str, str]]:
    """What it comes to if all of it is used until its end."""
    if request.ends_at is None:
        return
    start = request.starts_at or request.granted_at or now
    hours = max(0.0, (request.ends_at - start).total_seconds()) / 3600 * request.amount / MILLI
    cost = Decimal(hours) * found.price_per_gpu_hour
    price = f", {money(cost, request.cluster.currency)}" if cost else ""
    yield "At most", f"{number(hours)} GPU-h{price}"


def _holdings(
    request: QuotaRequest, user: User, found: GpuClass, now: datetime
) -> Iterator[tuple[str, str]]:
    reader = Reading(user)
    for queue in (request.queue, request.giver):
        if queue is not None and reader.sees_queue(queue.cluster_id, queue.path):
            row = queue.quotas.in_force(now).filter(gpu_class=found).first()
            nominal = row.nominal_gpus / MILLI if row else 0
            yield f"{queue.name}, {PAST_DAYS} days", _holding(held_of(queue, found, now), nominal)


def _holding(gpus: float | None, nominal: float) -> str:
    return (
        f"nominal {nominal:g}, held not known"
        if gpus is None
        else f"held {number(gpus, 1)} of nominal {nominal:g}"
    )


def held_of(queue: Queue, found: GpuClass, now: datetime) -> float | None:
    """GPUs that it held on average of the last days, with everything below it, by the samples that tell of
    most of them: days that nobody rolled up yet are known by the hour. None where there are none."""
    begin = (now - timedelta(days=PAST_DAYS)).replace(hour=0, minute=0, second=0, microsecond=0)
    rows = UsageSample.objects.filter(queue=queue, gpu_class=found, start__gte=begin, start__lt=now)
    gpu_s = Sum(F("allocated_gpus") * F("seconds"), output_field=FloatField())
    known = rows.order_by().values_list("resolution").annotate(gpu_s=gpu_s, s=Sum("seconds"))
    _, most, seconds = max(known, key=lambda row: row[2], default=("", 0.0, 0))
    return most / seconds / MILLI if seconds else None


def lead(request: QuotaRequest, user: User, plan: ReadablePreview | None) -> str:
    """One sentence under the title."""
    parts = [_what(request)]
    if giver := giver_of(request, user):
        parts[0] += f", taken from {giver}"
    if request.state in DECIDABLE and plan is not None and not plan.fault:
        parts.append(f"Approved now, {plan.outcome}")
    if request.state in (*IN_FORCE, State.SCHEDULED) and request.decision:
        parts.append(request.decision.rstrip("."))
    if request.outcome:
        parts.append(request.outcome.rstrip("."))
    return ". ".join(parts) + "."


def _what(request: QuotaRequest) -> str:
    if request.kind == Kind.QUEUE:
        return f"A new queue {request.name} below {request.place or request.cluster.name}"
    if request.kind == Kind.ACCESS:
        what = request.gpu_class or request.priority_class
        return f"Everybody who submits to {request.place} may use {what}"
    limit = "more to borrow" if request.figure == "borrowing_limit" else "more of its own"
    return f"{request.place}: {gpus_counted(request.amount)} of {request.gpu_class} {limit}"


def heading(request: QuotaRequest) -> str:
    """'alignment asks for 8 more h100-80gb'."""
    name = request.place.rpartition("/")[2] or request.cluster.name
    if request.kind == Kind.QUEUE:
        return f"{name} asks for a queue {request.name}"
    if request.kind == Kind.ACCESS:
        return f"{name} asks for access to {request.gpu_class or request.priority_class}"
    limit = " to borrow" if request.figure == "borrowing_limit" else ""
    return (
        f"{name} asks for {number((request.gpus or 0) / MILLI, 3)} more {request.gpu_class}{limit}"
    )


def approve_label(request: QuotaRequest, plan: ReadablePreview | None, gpus: int) -> str:
    """'Approve 8, evict 1': the button says what it does."""
    amount = f" {number(gpus / MILLI, 3)}" if request.is_about_quota else ""
    evict = f", evict {plan.leaves}" if plan is not None and plan.leaves else ""
    return f"Approve{amount}{evict}"
