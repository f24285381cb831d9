"""`python -m workshop.benches.worker.live_eta HOURS SEED FILE`: what a cluster tells of starts in a life.

The life is that of ``bench live-loop``, through whole cycles. Its passes of forecasts are the worker's own:
from the ledger alone, which is empty when it begins, corrected by what came of earlier ones. ``bench
live-eta`` starts it, in a process and with a database of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workshop.benches.engine.outcomes import Outcome, Progress

from .live_life import CYCLE_S, drawn, pct
from .managers import program

if TYPE_CHECKING:
    from scheduling.models import Cluster

HOURS, SEED = 48.0, 1
EVERY_S = 5 * CYCLE_S
"""A pass begins so long after the one before."""
LEARNS_H = 12.0
"""What is told before is not judged: a correction needs 50 outcomes."""
OPEN_H = 6.0
"""Neither is what is told so shortly before the end, as too much of it waits then."""
LARGE_GPUS = 8
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class ToldForecast(NamedTuple):
    """One forecast; ``start_s`` is None where it waits still at the end. Seconds after it was told."""

    at_submit: bool
    gpus: float
    p50_s: float
    p90_s: float
    start_s: float | None


def bench_live_eta(_traces: Path, progress: Progress) -> Outcome:
    """Bands of starts that a live cluster tells, held against when they came."""
    hours = float(os.environ.get("WEIR_LIVE_ETA_HOURS", HOURS))
    progress(f"{hours:g} h on an embedded cluster, a pass of forecasts every {EVERY_S} s")
    return Outcome(
        measured=figures(_lived_apart(hours)),
        seeds=[SEED],
        notes=[
            f"the life of live-loop, from an empty ledger; told from hour {LEARNS_H:g} to {hours - OPEN_H:g}",
            "what waits still at the end counts as after both quantiles",
        ],
    )


def figures(forecasts: Iterable[ToldForecast]) -> dict[str, float]:
    """Shares of all, of small and large gangs, and of what was told first."""
    known = list(forecasts)
    groups = {
        "": known,
        "small_": [one for one in known if one.gpus < LARGE_GPUS],
        "large_": [one for one in known if one.gpus >= LARGE_GPUS],
        "submit_": [one for one in known if one.at_submit],
    }
    found: dict[str, float] = {}
    for name, some in groups.items():
        starts = [float("inf") if one.start_s is None else one.start_s for one in some]
        before = [s <= one.p50_s for one, s in zip(some, starts, strict=True)]
        in_time = [s <= one.p90_s for one, s in zip(some, starts, strict=True)]
        found |= {
            f"{name}before_p50_pct": pct(sum(before), len(some)),
            f"{name}before_p90_pct": pct(sum(in_time), len(some)),
            f"{name}band_p50_p90_pct": pct(sum(in_time) - sum(before), len(some)),
            f"{name}forecasts": float(len(some)),
        }
    return found


def _lived_apart(hours: float) -> list[ToldForecast]:
    with tempfile.TemporaryDirectory(prefix="weir-live-eta-") as folder:
        found = Path(folder) / "found.json"
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
            "WEIR_BROKER_URL": "memory://",
        }
        command = program("live_eta", str(hours), str(SEED), found)
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
        return [ToldForecast(*one) for one in json.loads(found.read_text())]


def main(hours: float, seed: int, found: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    from .live_loop import lived

    call_command("migrate", verbosity=0)
    lived(drawn(hours, seed), hours, tell)
    found.write_text(json.dumps(_forecasts(hours)))


def tell(cluster: Cluster) -> None:
    """A pass, if one is due by the cluster's clock; that of a pass counts the machine's."""
    from scheduling.models import ForecastRun
    from scheduling.services.starts.refresh import refresh

    cluster.refresh_from_db()
    last = ForecastRun.objects.filter(cluster=cluster)
    if last.filter(at__gt=cluster.now() - timedelta(seconds=EVERY_S - 1)).exists():
        return
    last.update(began_at=LONG_AGO)
    refresh(cluster)


def _forecasts(hours: float) -> list[ToldForecast]:
    """What the ledger has of it."""
    from scheduling.models import MILLI, ForecastOutcome
    from scheduling.services.starts.accuracy import WAS_TOLD

    from .live_simulation import ORIGIN

    since, until = (ORIGIN + timedelta(hours=h) for h in (LEARNS_H, hours - OPEN_H))
    rows = ForecastOutcome.objects.filter(WAS_TOLD, told_at__gte=since, told_at__lt=until)
    return [
        ToldForecast(one.at_submission, one.gpus / MILLI, one.p50_s, one.p90_s, one.came_s)
        for one in rows
    ]


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
