"""Working on a version: the search first, then lives of its windows, one slice at a time.

Every candidate and every life that was kept is never lived again, so a slice may be killed anywhere and be
sent twice. What its windows say is settled by ``deciding`` as soon as they are complete.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db.models import F
from django.utils import timezone

from scheduling.engine import model as m
from scheduling.engine.document.reader import parse
from scheduling.models import LearnedLife, LearnedOrder, LearnedState
from scheduling.services.errors import ServiceError
from scheduling.services.learned import (
    deciding,
    rivals,
    searching,
    states,
    training,
    verdicts,
    victims,
)
from scheduling.services.learned.figures import of_life
from scheduling.services.learned.orders import LEARNED, by_merit, under
from scheduling.services.learned.searching import StoppedError
from scheduling.services.learned.windows import TRAINING, period_of
from scheduling.simulation.ahead.compare import alone
from scheduling.simulation.ahead.period import drawn, live_again
from scheduling.simulation.run.options import UnsettledError

log = logging.getLogger(__name__)

SLICE_S = 15.0
"""CPU seconds after which a task leaves the worker to others."""
VICTIMS_MORE = 1.25
"""The search for victims ends at so many times the CPU time that the one for the order may take."""
HELD = timedelta(minutes=15)
"""Far above what one life takes."""
Json = dict[str, Any]


class TakenError(Exception):
    """The version is over, or somebody else works on it."""


@dataclass(slots=True)
class Slice:
    """What a task has spent, and how much of it is written down."""

    order: LearnedOrder
    spent_s: float = 0.0
    mark_s: float = field(default_factory=time.thread_time)

    def note(self, **fields: Any) -> None:
        """Write ``fields`` and the CPU time. Raises TakenError, and StoppedError when the slice is over."""
        now_s = time.thread_time()
        took_s, self.mark_s = now_s - self.mark_s, now_s
        mine = LearnedOrder.objects.filter(pk=self.order.pk, state=self.order.state)
        until = timezone.now() + HELD
        if not mine.update(cpu_s=F("cpu_s") + took_s, held_until=until, **fields):
            raise TakenError
        self.spent_s += took_s
        self.order.cpu_s += took_s
        if self.spent_s >= SLICE_S:
            raise StoppedError


def work(order_id: int) -> None:
    """One slice of a version; nothing where it is gone, over, or another is at it."""
    until = timezone.now() + HELD
    mine = LearnedOrder.objects.filter(training.idle(), pk=order_id, state__in=states.ALIVE)
    if not mine.update(held_until=until):
        return
    order = LearnedOrder.objects.select_related("cluster").get(pk=order_id)
    try:
        has_more = _slice(order)
    except TakenError:
        log.info("learned order %s is over", order_id)
        return
    except (ServiceError, UnsettledError, m.SnapshotError) as error:
        _reject(order, error)
        return
    except Exception:
        _release(order)
        raise
    _release(order)
    if has_more:
        training.send(order.pk)


def _slice(order: LearnedOrder) -> bool:
    """Whether there is more to do at once."""
    deciding.prepare(order)
    try:
        part = Slice(order)
        if order.state == LearnedState.TRAINING and not order.weights:
            _search(part)
        if order.state == LearnedState.TRAINING and TRAINING in order.work:
            _search_victims(part)
        _live(part)
    except StoppedError:
        return True
    return deciding.settle(order)


def _release(order: LearnedOrder) -> None:
    LearnedOrder.objects.filter(pk=order.pk).update(held_until=None)


def _reject(order: LearnedOrder, error: Exception) -> None:
    """It cannot be lived. One that decides stays as it is: nothing was found against it."""
    log.warning("learned order %s: %s", order.pk, error)
    told = (
        str(error) if isinstance(error, ServiceError) else "The engine finds no rest in this past."
    )
    if order.state == LearnedState.DECIDING:
        _release(order)
    else:
        states.move(order, LearnedState.REJECTED, f"It could not be judged: {told}")


def _search(part: Slice) -> None:
    order = part.order

    def cost(weights: Mapping[str, float]) -> float:
        if order.tried and order.cpu_s >= order.most_cpu_s:
            raise _SpentError
        return searching.stage_of(order.pk).cost(weights)

    try:
        searching.go_on(order, cost, lambda: part.note(tried=order.tried))
    except _SpentError:
        log.info("learned order %s: the search ends at its bound", order.pk)
    order.weights, order.spread = searching.best(order.tried), searching.spread(order.tried)
    part.note(weights=order.weights, spread=order.spread)


def _search_victims(part: Slice) -> None:
    """Then nothing needs the training days any more."""
    order = part.order
    stage = searching.stage_of(order.pk)
    if not order.victim_tried and not stage.evicts(order.weights):
        _end_victims(part, {}, victims.NOBODY_LEAVES)
        return

    def cost(weights: Mapping[str, float]) -> float:
        if order.victim_tried and order.cpu_s >= VICTIMS_MORE * order.most_cpu_s:
            raise _SpentError
        return stage.cost(order.weights, weights)

    try:
        victims.go_on(order, cost, lambda: part.note(victim_tried=order.victim_tried))
    except _SpentError:
        log.info("learned order %s: the search for victims ends at its bound", order.pk)
    best = victims.found(order)
    if not best:
        _end_victims(part, {}, victims.NOTHING_BETTER)
        return
    for seed in victims.lacking(order):
        mine, without = (stage.life_of(order.weights, each, seed) for each in (best, {}))
        victims.keep_life(order, seed, mine, without)
        part.note()
    is_taken, why = victims.judged(order)
    _end_victims(part, best if is_taken else {}, why)


def _end_victims(part: Slice, weights: Mapping[str, float], why: str) -> None:
    order = part.order
    order.victim_weights, order.victims_said = dict(weights), why
    order.victim_spread = searching.spread(order.victim_tried) if weights else {}
    order.work = {key: one for key, one in order.work.items() if key != TRAINING}
    part.note(
        victim_weights=order.victim_weights,
        victim_spread=order.victim_spread,
        victims_said=why,
        work=order.work,
    )


class _SpentError(Exception):
    """The search has had the CPU time that it may have."""


def _live(part: Slice) -> None:
    """Every life that is lacking, window by window, seed by seed."""
    order = part.order
    if not order.work:
        return
    world = parse(order.world)
    ordered = by_merit(world)
    for window, seed, keys in list(_lacking(order)):
        draw = drawn(period_of(order.work[window]), seed)
        own = live_again(alone(world), draw)
        rows = []
        for key in keys:
            if key in rivals.NAMES:
                figures = rivals.of_life(world, draw, key, ordered)
            else:
                figures = of_life(live_again(_world_of(order, world, key), draw), own, ordered)
            rows.append(
                LearnedLife(order=order, window=window, under=key, seed=seed, figures=figures)
            )
        # Whoever took it up while this one was thought dead has lived the same.
        LearnedLife.objects.bulk_create(rows, ignore_conflicts=True)
        part.note()
    order.work = {}
    part.note(work={}, world={})


def _world_of(order: LearnedOrder, world: m.Snapshot, key: str) -> m.Snapshot:
    return under(world, key, order.weights, order.victim_weights)


def _lacking(order: LearnedOrder) -> Iterator[tuple[str, int, list[str]]]:
    """(window, seed, orders that have not lived it) of windows whose work is kept."""
    lives = verdicts.lives_of(order)
    for window in order.windows:
        key = window["key"]
        if key not in order.work:
            continue
        wanted = [LEARNED, *(one["key"] for one in window["orders"])]
        for seed in range(1, order.replays + 1):
            lacking = [one for one in wanted if seed not in lives.get((key, one), {})]
            if lacking:
                yield key, seed, lacking


def progress(order: LearnedOrder) -> int:
    """Percent of a version in training: half is the search, for the order and then for victims."""
    tried = len(order.tried) + len(order.victim_tried)
    searched = min(1.0, tried / (searching.most_tries(order) + victims.most_tries(order)))
    if order.victims_said:
        searched = 1.0
    wanted = sum((1 + len(one["orders"])) * order.replays for one in order.windows)
    lived = LearnedLife.objects.filter(order=order).exclude(window=victims.WINDOW).count()
    return min(99, round(50 * searched + 50 * lived / max(1, wanted)))
