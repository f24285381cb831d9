"""The rule of promotion, and what becomes of a version by it.

Into shadow goes who is better than the order that decides on a later window, worse than it on none, and
keeps fairness. It decides once it is better than every other order on every window, the days in shadow among
them, with fairness kept, and a person lets learned orders decide. Who decides is checked every day, against
what would decide without it and against what really came; it demotes itself.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime, timedelta

from django.db import transaction

from scheduling.models import Cluster, LearnedLife, LearnedOrder, LearnedState
from scheduling.services.errors import ServiceError
from scheduling.services.lab.periods import world_document
from scheduling.services.learned import drifting, orders, rivals, states, verdicts, windows
from scheduling.services.learned.verdicts import DRIFT_KIND, SHADOW, SHADOW_KIND, standing
from scheduling.services.learned.windows import Span
from scheduling.services.snapshot.asked import live_or_refused

log = logging.getLogger(__name__)

MOST_SHADOW = timedelta(days=28)
"""Who is not promoted by then, and lacks more than the switch, is rejected."""
CHECKED_EVERY = timedelta(days=1)
CHECKED_DAYS = timedelta(days=3)
"""Of one check of drift."""
CHECKS_KEPT = 7
S = LearnedState


def prepare(order: LearnedOrder) -> None:
    """Have the next window lived that its state asks for, if any is due."""
    now, kind = order.cluster.now(), ""
    if order.state == S.SHADOW and not _has(order, SHADOW_KIND) and now >= order.since + SHADOW:
        kind, since = SHADOW_KIND, now - SHADOW
    elif order.state == S.DECIDING and now >= _checked(order) + CHECKED_EVERY:
        kind, since = DRIFT_KIND, max(now - CHECKED_DAYS, order.trained_to + windows.WARM_UP)
    if kind and not order.work:
        _add(order, kind, Span.of(since, now))


def _has(order: LearnedOrder, kind: str) -> bool:
    return any(one["kind"] == kind for one in order.windows)


def _checked(order: LearnedOrder) -> datetime:
    """When its last check ended; a first one comes a day after it began to decide."""
    ends = [datetime.fromisoformat(w["end"]) for w in order.windows if w["kind"] == DRIFT_KIND]
    return max([order.since, *ends])


def _add(order: LearnedOrder, kind: str, span: Span) -> None:
    """Nothing where too little work came, or the cluster does not answer: it is tried again."""
    try:
        world = replace(live_or_refused(order.cluster), workloads=())
        period = windows.read(order.cluster, world, span, "since")
    except ServiceError as error:
        log.info("learned order %s, %s: %s", order.pk, kind, error)
        return
    others = orders.against(world) if kind == SHADOW_KIND else orders.of_one_that_decides(world)
    if kind == SHADOW_KIND and rivals.are_lived(order):
        others += rivals.on(world, period)
    windows.add(order, kind, span, period, others)
    order.world = world_document(world)
    if kind == DRIFT_KIND:
        _drop_old_checks(order)
    mine = LearnedOrder.objects.filter(pk=order.pk, state=order.state)
    mine.update(windows=order.windows, work=order.work, world=order.world)


def _drop_old_checks(order: LearnedOrder) -> None:
    checks = [one["key"] for one in order.windows if one["kind"] == DRIFT_KIND]
    old = set(checks[:-CHECKS_KEPT])
    order.windows = [one for one in order.windows if one["key"] not in old]
    LearnedLife.objects.filter(order=order, window__in=old).delete()


def settle(order: LearnedOrder) -> bool:
    """What its verdict makes of it; whether that asks for another look at once."""
    order.verdict = verdicts.judge(order)
    LearnedOrder.objects.filter(pk=order.pk).update(verdict=order.verdict)
    if order.state == S.TRAINING:
        found = standing(order.verdict)
        return states.move(order, S.JUDGED, told(found.better, found.worse, found.compared))
    if order.state == S.JUDGED:
        return _enter(order)
    if order.state == S.SHADOW:
        return _leave_shadow(order)
    return _check(order) if order.state == S.DECIDING else False


def told(better: int, worse: int, compared: int) -> str:
    return f"Better in {better} of {compared} comparisons, worse in {worse}."


def _enter(order: LearnedOrder) -> bool:
    """Into shadow, in place of who was there, or rejected."""
    found = standing(order.verdict)
    if found.broken:
        return states.move(order, S.REJECTED, f"Fairness is not kept: {_named(found.broken)}.")
    if found.worse_than_now:
        why = f"It is worse than the order that decides on {found.worse_than_now} of {found.windows} windows."
        return states.move(order, S.REJECTED, why)
    if not found.better_than_now:
        why = (
            f"It is no better than the order that decides on any of {found.windows} later windows."
        )
        return states.move(order, S.REJECTED, why)
    with transaction.atomic():
        Cluster.objects.select_for_update().get(pk=order.cluster_id)
        rows = LearnedOrder.objects.filter(cluster=order.cluster, state=S.SHADOW)
        for former in rows.select_related("cluster"):
            states.move(former, S.WITHDRAWN, f"{order} took its place in shadow.")
        why = (
            f"Better than the order that decides on {found.better_than_now} of {found.windows} later windows,"
            " with fairness kept."
        )
        return states.move(order, S.SHADOW, why)


def _leave_shadow(order: LearnedOrder) -> bool:
    """Promoted, rejected, or left there."""
    if not _has(order, SHADOW_KIND):
        return False
    found, now = standing(order.verdict), order.cluster.now()
    if found.broken or found.worse_than_now:
        what = (
            f"fairness is not kept ({_named(found.broken)})"
            if found.broken
            else "it is worse than the order that decides"
        )
        return states.move(order, S.REJECTED, f"Over the days in shadow {what}.")
    lacking = [one for one in verdicts.conditions(order, order.cluster) if not one.is_met]
    if not lacking:
        return _promote(order, found.windows)
    only_switch = len(lacking) == 1 and not order.cluster.learned_may_decide
    if now >= order.since + MOST_SHADOW and not only_switch:
        why = f"After {MOST_SHADOW.days} days in shadow it is not {lacking[0].name}: {lacking[0].lacks}."
        return states.move(order, S.REJECTED, why)
    return False


def _promote(order: LearnedOrder, count: int) -> bool:
    """In force with the next cycle, in place of the version that decided; not if the switch went off."""
    with transaction.atomic():
        cluster = Cluster.objects.select_for_update().get(pk=order.cluster_id)
        if not cluster.learned_may_decide:
            return False
        rows = LearnedOrder.objects.filter(cluster=cluster, state=S.DECIDING)
        for former in rows.select_related("cluster"):
            states.move(former, S.WITHDRAWN, f"{order} is better and took its place.")
        why = f"Better than every other order on all {count} windows, with fairness kept."
        return states.move(order, S.DECIDING, why)


def _check(order: LearnedOrder) -> bool:
    """Demoted by itself where the last days speak against it."""
    why = drifting.why_demoted(order, _named)
    return bool(why) and states.move(order, S.DEMOTED, why)


NAMES = {
    "unfair_pct": "unfair jobs",
    "worst_queue_ratio": "the worst queue against its own nominal",
    "evictions_per_job": "evictions per workload",
    "lost_gpu_hours_pct": "lost GPU-hours",
    "max_evictions_of_a_job": "evictions of one workload",
    "others_wait_s": "the wait of all other work",
}


def _named(figures: tuple[str, ...]) -> str:
    return ", ".join(NAMES[name] for name in figures)
