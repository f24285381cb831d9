"""``python -m scheduling.simulation``: compile the loop that lives ahead, before any study waits for it."""

from __future__ import annotations

from datetime import UTC, datetime

from scheduling.engine import GpuClass, Node, PriorityClass, Queue, Snapshot, Workload
from scheduling.engine.model import MILLI, Quota
from scheduling.simulation.loop.lives import live_submissions
from scheduling.simulation.run.jobs import Submission

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    """One workload of one GPU, from its submission to its end."""
    cluster = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("gpu"),),
        priority_classes=(PriorityClass("train"),),
        nodes=(Node("n1", "gpu", MILLI),),
        queues=(Queue("team", quotas={"gpu": Quota(MILLI)}),),
    )
    work = Workload("one", "team", "train", NOW)
    live_submissions(cluster, [Submission(work, 60)])


main()
