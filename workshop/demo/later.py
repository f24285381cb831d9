"""What of a demo waits until its first page is there: what its people do, studies, months of demand and start
forecasts.

It is worked out at the lowest priority, once, within ``MOST_CPU_S`` of a core, by a process that is forked as
workers are and ends as soon as studies have something to do: each of the two takes as much memory as the
portal. The next one goes on where it ended, but for start forecasts, which are made in one go.
"""

from __future__ import annotations

import itertools
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from portal.display.later import MONTHS, STARTS, note, progress
from scheduling.engine.document import dump, parse
from scheduling.models import Cluster, DemandForecast, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.ledger.demand_forecasts import forecast_queues, look_ahead
from scheduling.services.ledger.rollup import floor
from scheduling.services.snapshot import build as snapshots
from scheduling.services.worker.children import ChildPart
from scheduling.services.worker.parts import are_studies_on
from workshop.demo import experiment
from workshop.demo.acting import act
from workshop.demo.past.forecasts import Moment, tell_past
from workshop.demo.past.live import DEMAND, SEED, capacity, demand_of
from workshop.demo.past.older import write_older
from workshop.demo.studies import study

MOST_CPU_S = 120.0
"""Of all its processes. Forecasts of starts come last: those that it does not reach are never made."""
MOST_TURNS = 12
"""Processes of one start of the demo; what fails each time is tried again by its next start."""
LOWEST = 19
MOMENTS = "moments.json"


def part(folder: Path, messages: Path) -> ChildPart:
    """Its process, which begins when something is left and studies, by ``messages``, have nothing to do."""
    ended: list[int] = []
    are_on = partial(are_studies_on, messages)

    def is_wanted() -> bool:
        return len(ended) < MOST_TURNS and not are_on() and bool(progress(folder))

    def run() -> None:
        os.nice(LOWEST)
        work_off(folder, are_on)

    return ChildPart("later", run, is_wanted=is_wanted, gone=ended.append)


def put_off(
    cluster: Cluster, folder: Path, moments: Sequence[Moment], *, before: datetime | None
) -> None:
    """Note what is to be worked out: starts at ``moments``, and the months ``before`` the lived past (None:
    of a recording, which says nothing of them)."""
    rows = [{"snapshot": dump(m.snapshot), "waiting": sorted(m.waiting)} for m in moments]
    (folder / MOMENTS).write_text(json.dumps(rows))
    since = datetime.now(UTC).isoformat()
    queues = len(forecast_queues(cluster))
    months = {"since": since, "done": 0, "of": queues, "before": before and before.isoformat()}
    starts = {"since": since, "done": 0, "of": len(moments)}
    note(folder, {MONTHS: months, STARTS: starts})


def work_off(folder: Path, is_busy: Callable[[], bool] = lambda: False) -> None:
    """What is left, with what is done noted after each step, until ``is_busy``."""
    cluster = Cluster.objects.earliest("pk")
    for kind, steps in ((MONTHS, _months), (STARTS, _starts)):
        if kind not in progress(folder):
            continue
        found = dict(progress(folder)[kind])
        for done in steps(cluster, folder, found):
            found |= {"asked": True} if done is None else {"begun": True, "done": done}
            note(folder, {**progress(folder), kind: found})
            if kind == MONTHS and is_busy():
                _note_spent(folder)
                return
        note(folder, {name: one for name, one in progress(folder).items() if name != kind})
    (folder / MOMENTS).unlink(missing_ok=True)


def _note_spent(folder: Path) -> None:
    spent_s = time.process_time()
    kinds = progress(folder).items()
    note(folder, {k: {**one, "spent_s": one.get("spent_s", 0.0) + spent_s} for k, one in kinds})


def _months(cluster: Cluster, folder: Path, found: Mapping[str, Any]) -> Iterator[int | None]:
    """The demand that is forecast comes from them, so what was forecast without them goes. People act first,
    and an experiment and studies of the last weeks are asked for (None); the worker makes them."""
    if found["before"] and not found.get("asked"):
        act(cluster)
        experiment.begin()
        study(cluster)
        yield None
    if not found.get("begun"):
        if found["before"]:
            _write_months(cluster, datetime.fromisoformat(found["before"]))
        DemandForecast.objects.filter(queue__cluster=cluster).delete()
        yield 0
    queues = forecast_queues(cluster)[found["done"] :]
    for done, queue in enumerate(queues, found["done"] + 1):
        look_ahead(cluster, [queue])
        yield done


def _write_months(cluster: Cluster, before: datetime) -> None:
    """Anew where an earlier process was ended half-way: nothing else writes of that time."""
    first = floor(before, Resolution.HOUR)
    UsageSample.objects.filter(queue__cluster=cluster, start__lt=first).delete()
    template = snapshots.live(cluster)
    organisation = demand_of(cluster, template, **DEMAND)
    write_older(cluster, organisation, capacity(template), before, SEED)


def _starts(cluster: Cluster, folder: Path, found: Mapping[str, Any]) -> Iterator[int]:
    most_s = MOST_CPU_S - found.get("spent_s", 0.0)
    rows = json.loads((folder / MOMENTS).read_text())
    moments = (Moment(parse(one["snapshot"]), frozenset(one["waiting"])) for one in rows)
    in_time = itertools.takewhile(lambda _: time.process_time() <= most_s, moments)
    yield from tell_past(cluster, in_time)
