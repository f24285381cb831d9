"""What each way to give out GPUs above nominal would have meant for the last weeks of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from scheduling.models import Cluster, Sharing, Study, StudyKind
from scheduling.models.studies import OPEN
from scheduling.services.errors import ServiceError
from scheduling.services.queues.sharing import name_of
from scheduling.services.studies.experiments.asking import Question, ask
from scheduling.services.studies.experiments.periods import known_since
from scheduling.services.studies.experiments.results import FigureRow, results

NAME = "What is above nominal, each way"
REPLAYS = 5
"""The fewest of which a difference is judged."""
JUDGED, WARM_UP = timedelta(days=14), timedelta(days=3)
KEYS = ("avg_wait_s", "p90_wait_s", "unfair_pct", "evictions")
"""The figures that tell the ways apart."""


@dataclass(frozen=True, slots=True)
class WaysComparison:
    """What was lived of each way so far; the one in force when it was asked is the experiment's A."""

    study: Study
    rows: Mapping[Sharing, FigureRow]

    @property
    def is_open(self) -> bool:
        return self.study.state in OPEN


def ask_of_sharing(cluster: Cluster, author: str) -> Study:
    """The last weeks lived again in each way, in today's world. Raises ServiceError."""
    ways = [way for way in Sharing if way.value != cluster.sharing]
    variants = [{"name": name_of(way), "changes": [_change_to(way)]} for way in ways]
    end, first = cluster.now(), known_since(cluster)
    if first is None:
        raise ServiceError(
            "no_past", "The ledger is empty: there are no weeks to live again.", "Ask again in some days."
        )  # fmt: skip
    begin = max(first, end - JUDGED)
    warm_up = min(WARM_UP, begin - first)
    question = Question(NAME, begin, end, warm_up, REPLAYS, variants=variants, of_today=True)
    return ask(cluster=cluster, author=author, question=question)


def _change_to(way: Sharing) -> dict[str, str]:
    return {"kind": "policy", "setting": "sharing", "value": way.value}


def newest_comparison(cluster: Cluster) -> WaysComparison | None:
    """The newest such experiment; None where nobody asked for one."""
    studies = Study.objects.filter(cluster=cluster, kind=StudyKind.EXPERIMENT, name=NAME)
    study = studies.defer("world", "work").first()
    if study is None:
        return None
    found = results(study)
    rows = {_way_of(row): row for row in found.rows if row.variant.changes}
    before = next(way for way in Sharing if way not in rows)
    return WaysComparison(study, {before: found.base, **rows})


def _way_of(row: FigureRow) -> Sharing:
    return Sharing(row.variant.changes[0]["value"])
