"""`python -m workshop.benches.worker.prediction_cost RUNS LIVE FILE`: what learning and predicting take.

In a process of its own with a database of its own: what is measured is its memory too. ``bench foreseen``
starts it and reads what it wrote into FILE.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from workshop.benches.engine.outcomes import Outcome, Progress

from .managers import program

if TYPE_CHECKING:
    from scheduling.models import Cluster, Queue, Workload

RUNS = LIVE = 20_000
SEED = 7
USERS, NAMES, QUEUES = 200, 400, 20
DAYS = 60
RUNNING_PART = 0.2
ENDS_PART = 0.01
"""Of what lives, so much ends between two passes."""
CLASSES = ("quick", "slow")


def bench_foreseen(_traces: Path, progress: Progress) -> Outcome:
    """One learning pass over as many runs as are ever learned from, and predictions of as many live workloads
    as are ever predicted: all for the first time, again with nothing new, and after a hundredth has ended."""
    progress(f"{RUNS} ended runs and {LIVE} live workloads")
    return Outcome(
        measured=measured(RUNS, LIVE),
        seeds=[SEED],
        notes=[
            "cpu_s: of one core, the database (SQLite in a file) included; peak_mib of a process that does"
            " nothing else",
            "a tenth of the live may run on either of two classes and waits: each is predicted on both",
        ],
    )


def measured(runs: int, live: int) -> dict[str, float]:
    """The figures of so many runs and live workloads."""
    with tempfile.TemporaryDirectory(prefix="weir-foreseen-") as folder:
        found = Path(folder) / "found.json"
        environment = {**os.environ, "DATABASE_URL": f"sqlite:///{folder}/weir.sqlite3"}
        command = program("prediction_cost", str(runs), str(live), found)
        subprocess.run(command, env=environment, check=True)  # noqa: S603 - ourselves
        figures: dict[str, float] = json.loads(found.read_text())
        return figures


def main(runs: int, live: int, found: Path) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.config.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    found.write_text(json.dumps(_figures(runs, live)))


def _figures(runs: int, live: int) -> dict[str, float]:
    from scheduling.models import Predictor, State, Workload
    from scheduling.services import run_times

    cluster = _filled(runs, live)
    figures = {"runs": float(runs), "live": float(live)}
    figures["learn_cpu_s"] = _cpu_s(lambda: run_times.learn(cluster=cluster))
    figures["model_mib"] = round(len(bytes(Predictor.objects.get().state)) / 2**20, 2)
    figures["predict_first_cpu_s"] = _cpu_s(lambda: _predict(cluster))
    figures["predict_again_cpu_s"] = _cpu_s(lambda: _predict(cluster))
    over = Workload.objects.filter(state=State.RUNNING).values_list("pk", flat=True)
    now = cluster.now()
    Workload.objects.filter(pk__in=list(over[: int(ENDS_PART * live)])).update(
        state=State.FINISHED, finished_at=now, outcome="succeeded"
    )
    figures["predict_after_ends_cpu_s"] = _cpu_s(lambda: _predict(cluster))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {**figures, "peak_mib": round(peak / 1024, 1)}


def _predict(cluster: Cluster) -> None:
    from scheduling.services import run_times

    run_times.predict(cluster=cluster)


def _cpu_s(call: Callable[[], Any]) -> float:
    began = time.process_time()
    call()
    return round(time.process_time() - began, 2)


def _filled(runs: int, live: int) -> Cluster:
    """A cluster of two classes with so many ended runs and so much work that has not ended."""
    from scheduling.models import Cluster, GpuClass, Queue, Workload

    cluster = Cluster.objects.create(name="bench")
    for name in CLASSES:
        GpuClass.objects.create(cluster=cluster, name=name)
    root = Queue.objects.create(cluster=cluster, name="root")
    queues = [
        Queue.objects.create(cluster=cluster, name=f"q{i}", parent=root) for i in range(QUEUES)
    ]
    rows = list(_rows(cluster, queues, runs, live))
    Workload.objects.bulk_create(rows, batch_size=1000)
    return cluster


def _rows(cluster: Cluster, queues: list[Queue], runs: int, live: int) -> Iterator[Workload]:
    from scheduling.models import MILLI, State, Workload

    dice, now = np.random.default_rng(SEED), cluster.now().timestamp()
    classes = list(cluster.gpu_classes.order_by("name"))
    for number in range(runs + live):
        name, ended = int(dice.integers(NAMES)), number < runs
        ran_s = float(dice.lognormal(7 + name % 5, 0.8))
        ago_s = float(dice.uniform(0.0, DAYS * 86400.0)) + ran_s if ended else ran_s
        runs_now = not ended and dice.random() < RUNNING_PART
        state = State.FINISHED if ended else State.RUNNING if runs_now else State.PENDING
        on = classes[int(dice.integers(2))]
        may = CLASSES if dice.random() < 0.1 else (on.name,)
        started = _at(now - ago_s) if ended or runs_now else None
        yield Workload(
            cluster=cluster,
            uid=f"w-{number}",
            namespace="default",
            name=f"name{name}-{number}",
            queue=queues[name % QUEUES],
            queue_label=f"q{name % QUEUES}",
            user=f"u{dice.integers(USERS)}",
            image=f"registry.example.org/image{name}:1",
            gpus=MILLI * int(dice.choice([1, 2, 4, 8])),
            gpu_classes=list(may),
            gpu_class=on if ended or runs_now else None,
            run_time_limit_s=7 * 86400,
            state=state,
            outcome="succeeded" if ended else "",
            submitted_at=_at(now - ago_s - 60.0),
            started_at=started,
            finished_at=_at(now - ago_s + ran_s) if ended else None,
        )


def _at(seconds: float) -> Any:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
