"""The ways to give out what is above nominal, each with what it would have meant for the last weeks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from portal.web.studies.comparison import as_text
from scheduling.models import Cluster
from scheduling.services.queues.sharing import SAID, name_of
from scheduling.services.studies.experiments.results import FigureRow
from scheduling.services.studies.experiments.sharing import JUDGED, KEYS, newest_comparison

HEADS: Mapping[str, str] = dict(
    zip(KEYS, ("Average wait", "P90 wait", "Later than on own quota", "Evictions"), strict=True)
)
"""Of the figures by which the ways are told apart."""


@dataclass(frozen=True, slots=True)
class SharingWay:
    """One of them; ``figures`` are heads and figures by ``HEADS``, none where nobody lived it."""

    value: str
    name: str
    said: str
    is_in_force: bool
    figures: list[tuple[str, str]]

    @property
    def meant(self) -> str:
        """The figures in a sentence; empty where there are none."""
        figures = ", ".join(f"{head.lower()} {figure}" for head, figure in self.figures)
        return f"The last {JUDGED.days} days in it: {figures}." if figures else ""


def each_way(cluster: Cluster) -> dict[str, Any]:
    """Names for a page: each way, and the experiment from which its figures are, if anybody asked for one."""
    newest = newest_comparison(cluster)
    ways = [
        SharingWay(
            way.value,
            name_of(way),
            said,
            way.value == cluster.sharing,
            _figures(newest.rows[way]) if newest else [],
        )
        for way, said in SAID.items()
    ]
    return {"ways": ways, "meant": newest, "days": JUDGED.days, "heads": HEADS.values()}


def sentences(*, of: Cluster | None) -> list[SharingWay]:
    """Each way for where one is chosen, with what it would have meant for the whole cluster; without ``of``
    for whoever does not see that."""
    if of is not None:
        return list(each_way(of)["ways"])
    return [SharingWay(way.value, name_of(way), said, False, []) for way, said in SAID.items()]


def _figures(row: FigureRow) -> list[tuple[str, str]]:
    cells = [(head, row.cell(key)) for key, head in HEADS.items()]
    return [(head, as_text(one.figure, one.mean)) for head, one in cells if one.mean is not None]
