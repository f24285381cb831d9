"""What adapts by itself, as its card shows it: bounds drawn, the last change, the evidence."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from portal.audit.reading import may_audit
from portal.display.csv import Table
from portal.display.format import zone
from portal.teams.access import is_admin
from portal.teams.rights import Person
from scheduling.models import Cluster, TrialState
from scheduling.services.studies.adapting.documents import (
    Adapting,
    ParameterState,
    adapting,
    row_document,
)
from scheduling.services.studies.adapting.parameters import Parameter, Value

COLUMNS = (
    "name", "title", "field", "value", "shipped", "least", "most", "step", "is_pinned", "changed_at",
    "changed_from", "changed_to", "state", "asked_at", "begun_at", "ended_at", "evidence",
)  # fmt: skip
BADGES = {
    TrialState.JUDGING: ("info", "Being replayed"),
    TrialState.TRYING: ("info", "On trial"),
    TrialState.KEPT: ("ok", "Kept"),
    TrialState.TAKEN_BACK: ("warn", "Taken back"),
    TrialState.NO_BETTER: ("neutral", "Stays"),
    TrialState.STOPPED: ("neutral", "Stopped"),
}

UNBROKEN = re.compile(r"\d( ± [\d.]+)?( (min|d|h|GPU-hours|points|days?)\b)?")
"""A number, its interval and its unit stay in one line."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Positions in per cent from the least to the most."""

    least: str
    most: str
    at: float
    shipped: float
    words: str


@dataclass(frozen=True, slots=True)
class ParameterRow:
    standing: ParameterState
    now: str
    scale: Scale
    changed: str
    """'7 → 8 d, 16 Nov'; "" where the engine never changed it."""
    badge: tuple[str, str] | None
    evidence: str

    @property
    def parameter(self) -> Parameter:
        return self.standing.parameter


def context(cluster: Cluster, person: Person) -> dict[str, Any]:
    """Everything that ``web/lab/_adapting.html`` reads. People who edit the policy may switch and pin."""
    found = adapting(cluster)
    return {
        "cluster": cluster,
        "adapting": found,
        "adapting_rows": [_row(cluster, one) for one in found.standings],
        "adapting_is_due": found.due_at is not None and found.due_at <= cluster.now(),
        "may_adapt": is_admin(person),
        "may_audit": may_audit(person),
    }


def _row(cluster: Cluster, one: ParameterState) -> ParameterRow:
    parameter, trial = one.parameter, one.trial
    return ParameterRow(
        standing=one,
        now=parameter.in_words(one.value),
        scale=_scale(parameter, one.value),
        changed=_changed(one, cluster.display_time_zone),
        badge=BADGES[TrialState(trial.state)] if trial else None,
        evidence=UNBROKEN.sub(
            lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), one.evidence
        ),
    )


def _scale(parameter: Parameter, value: Value) -> Scale:
    low, high = _bare(parameter, parameter.least), _bare(parameter, parameter.most)
    now, shipped = parameter.in_words(value), parameter.in_words(parameter.shipped)
    said = f"{now} between {low} and {parameter.in_words(parameter.most)}; as shipped {shipped}"
    return Scale(low, high, _place(parameter, value), _place(parameter, parameter.shipped), said)


def _bare(parameter: Parameter, value: Value) -> str:
    """Without the unit, which stands in the column before."""
    return parameter.in_words(value).removesuffix(f" {parameter.unit}")


def _place(parameter: Parameter, value: Value) -> float:
    """What a person has set out of bounds stands at the bound."""
    share = (float(value) - parameter.least) / (parameter.most - parameter.least)
    return round(100 * min(1.0, max(0.0, share)), 2)


def _changed(one: ParameterState, zone_name: str) -> str:
    row, parameter = one.changed, one.parameter
    if row is None or row.changed_at is None or row.changed_from is None or row.changed_to is None:
        return ""
    old = _bare(parameter, row.changed_from)
    return f"{old} → {parameter.in_words(row.changed_to)}, {_day(row.changed_at, zone_name)}"


def _day(at: datetime, zone_name: str) -> str:
    local = at.astimezone(zone(zone_name))
    return f"{local.day} {local:%b}"


def table(found: Adapting) -> Table:
    """A row a parameter, values in the unit of the policy's field."""
    rows = [row_document(one) for one in found.standings]
    return Table(
        "adapting",
        "What adapts by itself",
        COLUMNS,
        [[row[key] for key in COLUMNS] for row in rows],
    )
