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
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from workshop.benches.engine.outcomes import Outcome, Progress

from .live_life import CYCLE_S, drawn, pct
from .managers import program

if TYPE_CHECKING:
    from scheduling.models import Cluster
    from scheduling.services.starts.accuracy import Share

HOURS, LIVES = 48.0, 1
"""Of lives the first is of seed 1, the next of seed 2; ``WEIR_LIVE_ETA_LIVES`` asks for more."""
EVERY_S = 5 * CYCLE_S
"""A pass begins so long after the one before."""
LEARNS_H = 12.0
"""What is told before is not judged: a correction needs 50 outcomes."""
LARGE_GPUS = 8
LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


class ToldForecast(NamedTuple):
    """One forecast, in seconds after it was told; ``start_s`` is None where it waits still at the end, which
    comes ``left_s`` after."""

    at_submit: bool
    gpus: float
    p50_s: float
    p90_s: float
    start_s: float | None
    left_s: float


def bench_live_eta(_traces: Path, progress: Progress) -> Outcome:
    """Bands of starts that a live cluster tells, held against when they came."""
    hours = float(os.environ.get("WEIR_LIVE_ETA_HOURS", HOURS))
    seeds = list(range(1, 1 + int(os.environ.get("WEIR_LIVE_ETA_LIVES", LIVES))))
    forecasts: list[ToldForecast] = []
    for seed in seeds:
        progress(f"seed {seed}: {hours:g} h on an embedded cluster, a pass every {EVERY_S} s")
        forecasts += _lived_apart(hours, seed)
    return Outcome(
        measured=figures(forecasts),
        seeds=seeds,
        notes=[
            f"the life of live-loop, from an empty ledger; told from hour {LEARNS_H:g} on",
            "open, and not judged: whose P90 lies beyond the end, as of those only the early ones are known",
            "low and high: Wilson's interval at 95 %, as if each forecast stood or fell alone",
        ],
    )


def figures(forecasts: Sequence[ToldForecast]) -> dict[str, float]:
    """Shares of all, of small and large gangs, and of what was told first; with the bounds of each."""
    from scheduling.services.starts.accuracy import Share

    known = [one for one in forecasts if one.p90_s <= one.left_s]
    groups = {
        "": known,
        "small_": [one for one in known if one.gpus < LARGE_GPUS],
        "large_": [one for one in known if one.gpus >= LARGE_GPUS],
        "submit_": [one for one in known if one.at_submit],
    }
    found = {"open": float(len(forecasts) - len(known))}
    for name, some in groups.items():
        starts = [float("inf") if one.start_s is None else one.start_s for one in some]
        before = sum(s <= one.p50_s for one, s in zip(some, starts, strict=True))
        in_time = sum(s <= one.p90_s for one, s in zip(some, starts, strict=True))
        for figure, count in (
            ("before_p50", before), ("before_p90", in_time), ("band_p50_p90", in_time - before)
        ):  # fmt: skip
            found |= _share(f"{name}{figure}", Share(count, len(some)))
        found[f"{name}forecasts"] = float(len(some))
    return found


def _share(name: str, share: Share) -> dict[str, float]:
    low, high = share.bounds
    return {
        f"{name}_pct": pct(share.count, share.of),
        f"{name}_low_pct": round(low, 2),
        f"{name}_high_pct": round(high, 2),
    }


def _lived_apart(hours: float, seed: int) -> list[ToldForecast]:
    with tempfile.TemporaryDirectory(prefix="weir-live-eta-") as folder:
        found = Path(folder) / "found.json"
        environment = {
            **os.environ,
            "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3",
            "WEIR_BROKER_URL": "memory://",
        }
        command = program("live_eta", str(hours), str(seed), found)
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

    since, end = (ORIGIN + timedelta(hours=h) for h in (LEARNS_H, hours))
    rows = ForecastOutcome.objects.filter(WAS_TOLD, told_at__gte=since)
    return [
        ToldForecast(
            one.at_submission, one.gpus / MILLI, one.p50_s, one.p90_s, one.came_s,
            (end - one.told_at).total_seconds(),
        )
        for one in rows
    ]  # fmt: skip


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
