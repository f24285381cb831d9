"""What of a demo's past waits until its first page is there: studies, months of demand and start forecasts.

It is worked out by a process of its own at the lowest priority, once, and takes at most ``MOST_CPU_S`` of a
core; one that was ended half-way begins the part again that it was at.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from portal.display.later import MONTHS, STARTS, left, note
from scheduling.engine.document import dump, parse
from scheduling.models import Cluster, DemandForecast, UsageSample
from scheduling.models.ledger import Resolution
from scheduling.services.demand.looking import forecast_queues, look_ahead
from scheduling.services.ledger.rollup import floor
from scheduling.services.snapshot import build as snapshots
from workshop.demo import experiment
from workshop.demo.past.foretold import Moment, tell_past
from workshop.demo.past.live import DEMAND, SEED, capacity, demand_of
from workshop.demo.past.older import write_older
from workshop.demo.studied import study

MOST_CPU_S = 120.0
"""Of its process. Forecasts of starts come last: those that it does not reach are never made."""
MOMENTS = "moments.json"


def put_off(
    cluster: Cluster, folder: Path, moments: Sequence[Moment], *, before: datetime | None
) -> None:
    """Note what is to be worked out: starts at ``moments``, and the months ``before`` the lived past (None:
    of a recording, which says nothing of them)."""
    told = [{"snapshot": dump(m.snapshot), "waiting": sorted(m.waiting)} for m in moments]
    (folder / MOMENTS).write_text(json.dumps(told))
    since = datetime.now(UTC).isoformat()
    queues = len(forecast_queues(cluster))
    months = {"since": since, "done": 0, "of": queues, "before": before and before.isoformat()}
    starts = {"since": since, "done": 0, "of": len(moments)}
    note(folder, {MONTHS: months, STARTS: starts})


def work_off(folder: Path) -> None:
    """All that is left, with what is done noted after each step."""
    cluster = Cluster.objects.earliest("pk")
    for kind, steps in ((MONTHS, _months), (STARTS, _starts)):
        found = left(folder).get(kind)
        if found is None:
            continue
        for done in steps(cluster, folder, found):
            note(folder, {**left(folder), kind: {**found, "done": done}})
        note(folder, {name: one for name, one in left(folder).items() if name != kind})
    (folder / MOMENTS).unlink(missing_ok=True)


def _months(cluster: Cluster, folder: Path, found: Mapping[str, Any]) -> Iterator[int]:
    """The demand that is forecast comes from them, so what was forecast without them goes. Studies of the
    last weeks and an experiment are asked for first; the worker makes them."""
    if found["before"]:
        study(cluster)
        experiment.begin()
        _write_months(cluster, datetime.fromisoformat(found["before"]))
    DemandForecast.objects.filter(queue__cluster=cluster).delete()
    for done, queue in enumerate(forecast_queues(cluster), 1):
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
    told = json.loads((folder / MOMENTS).read_text())
    moments = (Moment(parse(one["snapshot"]), frozenset(one["waiting"])) for one in told)
    yield from tell_past(cluster, itertools.takewhile(lambda _: not _is_over(), moments))


def _is_over() -> bool:
    return time.process_time() > MOST_CPU_S
