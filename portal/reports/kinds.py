"""Which reports there are, by the name that stands in their address."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from portal.accounts.models import User
from portal.display.csv import Table
from portal.reports import words
from portal.reports.fairness import fairness
from portal.reports.filters import ReportFilters
from portal.reports.forecast import forecast
from portal.reports.fragmentation import fragmentation
from portal.reports.longest import longest
from portal.reports.preemptions import preemptions
from portal.reports.showback import showback
from portal.reports.use import use
from portal.reports.utilization import utilization
from portal.reports.waits import waits
from portal.reports.words import Finding
from scheduling.models import Cluster


class Report(Protocol):
    """What every report has: its tables, of which the first is the main one, and all of it as JSON."""

    @property
    def is_empty(self) -> bool: ...
    def tables(self) -> tuple[Table, ...]: ...
    def as_dict(self) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Kind:
    """``compute`` raises Http404 for who has no queue in the cluster, ValidationError at a faulty filter;
    ``finding`` is the sentence above a report that is not empty."""

    name: str
    title: str
    compute: Callable[[Cluster, ReportFilters, User], Any]
    finding: Callable[[Any], Finding]


KINDS = {
    kind.name: kind
    for kind in (
        Kind("utilization", "Utilization", utilization, words.utilization_finding),
        Kind("use", "Real use", use, words.use_finding),
        Kind("waits", "Queue waits", waits, words.waits_finding),
        Kind("longest", "Longest waits", longest, words.longest_finding),
        Kind("preemptions", "Preemptions", preemptions, words.preemptions_finding),
        Kind("fairness", "Fairness", fairness, words.fairness_finding),
        Kind("fragmentation", "Fragmentation", fragmentation, words.fragmentation_finding),
        Kind("showback", "Showback", showback, words.showback_finding),
        Kind("forecast", "Forecast", forecast, words.forecast_finding),
    )
}
"""In the order of their tabs."""
