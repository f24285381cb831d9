"""What adapts, as page, API and files tell it: each parameter with value, bounds, last change, evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from scheduling.models import AdaptingParameter, AdaptingTrial, Cluster, TrialState
from scheduling.services.studies.adapting import steps, trials, words
from scheduling.services.studies.adapting.parameters import PARAMETERS, Parameter, Value

Json = dict[str, Any]
LISTED = 200
"""Trials among which the newest of each parameter is looked for."""


@dataclass(frozen=True, slots=True)
class ParameterState:
    """A parameter of a cluster. ``trial`` is the newest; ``evidence`` says what came of it."""

    parameter: Parameter
    value: Value
    is_pinned: bool
    changed: AdaptingParameter | None
    """None where the engine never changed it."""
    trial: AdaptingTrial | None
    evidence: str

    @property
    def is_open(self) -> bool:
        return self.trial is not None and self.trial.state in trials.OPEN


@dataclass(frozen=True, slots=True)
class Adapting:
    """``due_at`` is when the next parameter is chosen at the earliest; None while it is off, and while a
    trial is open, which ends first."""

    is_on: bool
    due_at: datetime | None
    why: str
    standings: tuple[ParameterState, ...]

    @property
    def open(self) -> ParameterState | None:
        return next((one for one in self.standings if one.is_open), None)


def adapting(cluster: Cluster) -> Adapting:
    """Three queries."""
    row = trials.adaptation_of(cluster)
    rows = {one.name: one for one in AdaptingParameter.objects.filter(cluster=cluster)}
    newest: dict[str, AdaptingTrial] = {}
    for trial in AdaptingTrial.objects.filter(cluster=cluster)[:LISTED]:
        newest.setdefault(trial.parameter, trial)
    standings = tuple(
        _standing(cluster, one, rows.get(one.name), newest.get(one.name)) for one in PARAMETERS
    )
    is_busy = any(one.state in trials.OPEN for one in newest.values())
    due_at = None if is_busy else steps.due_at(cluster, row)
    return Adapting(row.is_on, due_at, row.why if row.is_on else "", standings)


def _standing(
    cluster: Cluster,
    parameter: Parameter,
    row: AdaptingParameter | None,
    trial: AdaptingTrial | None,
) -> ParameterState:
    changed = row if row is not None and row.changed_at is not None else None
    is_pinned = row is not None and row.is_pinned
    return ParameterState(
        parameter, parameter.value_of(cluster), is_pinned, changed, trial, _evidence(parameter, trial)
    )  # fmt: skip


def _evidence(parameter: Parameter, trial: AdaptingTrial | None) -> str:
    if trial is None:
        return "not judged yet"
    if trial.state == TrialState.JUDGING:
        both = " and ".join(parameter.in_words(one) for one in parameter.beside(trial.value_from))
        return f"the last week is replayed with {both}"
    if trial.state == TrialState.STOPPED:
        return trial.sentence.rstrip(".")
    step = words.of_step(parameter, trial.evidence, trial.value_from)
    check = words.of_check(trial.evidence)
    return f"{check} (before: {step})" if check else step


def document(cluster: Cluster) -> Json:
    """As the API tells it: values in the unit of the policy's field, times in UTC."""
    found = adapting(cluster)
    return {
        "is_on": found.is_on,
        "due_at": found.due_at,
        "why": found.why,
        "parameters": [row_document(one) for one in found.standings],
    }


def row_document(one: ParameterState) -> Json:
    parameter, trial, changed = one.parameter, one.trial, one.changed
    return {
        "name": parameter.name,
        "title": parameter.title,
        "meaning": parameter.meaning,
        "field": parameter.field,
        "value": one.value,
        "shipped": parameter.shipped,
        "unit": parameter.knob.unit,
        "least": parameter.least,
        "most": parameter.most,
        "step": parameter.step,
        "is_pinned": one.is_pinned,
        "changed_at": changed.changed_at if changed else None,
        "changed_from": changed.changed_from if changed else None,
        "changed_to": changed.changed_to if changed else None,
        "state": trial.state if trial else "",
        "asked_at": trial.asked_at if trial else None,
        "begun_at": trial.begun_at if trial else None,
        "ended_at": trial.ended_at if trial else None,
        "evidence": one.evidence,
        "figures": _figures(trial),
    }


def _figures(trial: AdaptingTrial | None) -> Sequence[Mapping[str, Any]]:
    """Of the replays that were judged last: one entry a value, waits in seconds."""
    if trial is None:
        return ()
    checks = trial.evidence.get("checks", ())
    last: Mapping[str, Any] = checks[-1] if checks else trial.evidence.get("step", {})
    values: Sequence[Mapping[str, Any]] = last.get("values", ())
    return values
