"""The figures of an experiment as a table that a spreadsheet reads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from portal.display.csv import Cell, Table
from scheduling.models import Study
from scheduling.services.studies.experiments.results import document, results

COLUMNS = (
    "queue",
    "variant",
    "replays",
    "figure",
    "mean",
    "difference",
    "half_of_interval",
    "verdict",
)
OF_QUEUE = (
    "avg_wait_s",
    "p90_wait_s",
    "unfair_pct",
    "evictions",
    "lost_gpu_hours",
    "held_gpu_hours",
    "cost",
)


def table(study: Study) -> Table:
    """One row for each variant and figure, first over all (no queue), then by queue."""
    told = document(study, results(study))
    return Table("experiment", study.name, COLUMNS, [*_over_all(told), *_by_queue(told)])


def _over_all(told: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    for one in told["variants"]:
        for key, cell in one["figures"].items():
            yield (
                "", one["letter"], one["done"], key, cell["mean"], cell["difference"], cell["half"],
                cell["verdict"],
            )  # fmt: skip


def _by_queue(told: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    done = {one["letter"]: one["done"] for one in told["variants"]}
    for row in told["queues"]:
        for cell in row["variants"]:
            for key in OF_QUEUE:
                verdict = cell["verdict"] if key == "p90_wait_s" else ""
                letter = cell["letter"]
                yield row["queue"], letter, done[letter], key, cell[key], None, None, verdict
