"""The doors of adaptation: the switch, a pin, a step, its end. Each is in the audit log.

1. ``switch`` and ``pin`` are for people; either ends the trial that it concerns, and the value stays.
2. ``hear`` ends a trial whose field a person edits elsewhere.
3. ``step``, ``keep``, ``take_back`` and ``leave`` are what the daily look (``looking``) comes to; they change
   the policy by ``set_policy`` alone, and only if it still has the value that was judged.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from scheduling.models import (
    Adaptation,
    AdaptingParameter,
    AdaptingTrial,
    Announcement,
    Cluster,
    TrialState,
)
from scheduling.services.events import announce
from scheduling.services.queues.knobs import set_policy
from scheduling.services.studies.adapting import words
from scheduling.services.studies.adapting.parameters import (
    BY_NAME,
    PARAMETERS,
    Parameter,
    Value,
    parameter_of,
)

OPEN = (TrialState.JUDGING, TrialState.TRYING)


def adaptation_of(cluster: Cluster) -> Adaptation:
    """Unsaved, and off, where nobody has ever switched it."""
    found = Adaptation.objects.filter(cluster=cluster).first()
    return found or Adaptation(cluster=cluster)


def open_trial(cluster: Cluster) -> AdaptingTrial | None:
    rows = AdaptingTrial.objects.filter(cluster=cluster, state__in=OPEN)
    return rows.select_related("cluster", "study").first()


def pinned(cluster: Cluster) -> set[str]:
    rows = AdaptingParameter.objects.filter(cluster=cluster, is_pinned=True)
    return set(rows.values_list("name", flat=True))


@transaction.atomic
def switch(*, cluster: Cluster, is_on: bool, author: AbstractBaseUser | None) -> bool:
    """Whether it was otherwise before. Off: everything stays where it is, and what is on trial ends."""
    _take_turn(cluster)
    row, _ = Adaptation.objects.get_or_create(cluster=cluster)
    mine = Adaptation.objects.filter(pk=row.pk, is_on=not is_on)
    if not mine.update(is_on=is_on, why=""):
        return False
    if not is_on:
        _stop(open_trial(cluster), "Adaptation was switched off")
    announce(
        "adapting.switched", actor=author, cluster=cluster, subject=cluster.name,
        before={"adaptation": _switch(not is_on)}, after={"adaptation": _switch(is_on)},
    )  # fmt: skip
    cluster.touch()
    return True


def _switch(is_on: bool) -> str:
    return "on" if is_on else "off"


@transaction.atomic
def pin(*, cluster: Cluster, name: str, is_pinned: bool, author: AbstractBaseUser | None) -> bool:
    """Whether it was otherwise before. A pinned parameter stays where it is. Raises ServiceError."""
    parameter = parameter_of(name)
    _take_turn(cluster)
    row, _ = AdaptingParameter.objects.get_or_create(cluster=cluster, name=name)
    mine = AdaptingParameter.objects.filter(pk=row.pk, is_pinned=not is_pinned)
    if not mine.update(is_pinned=is_pinned):
        return False
    trial = open_trial(cluster)
    if is_pinned and trial is not None and trial.parameter == name:
        _stop(trial, "It was pinned")
    announce(
        "adapting.pinned", actor=author, cluster=cluster, subject=parameter.title,
        before={"pinned": not is_pinned},
        after={"pinned": is_pinned, "value": parameter.in_words(parameter.value_of(cluster))},
    )  # fmt: skip
    cluster.touch()
    return True


def _take_turn(cluster: Cluster) -> None:
    """The cluster before the trial, as ``step`` locks them, or two could wait for each other."""
    Cluster.objects.select_for_update().get(pk=cluster.pk)


def hear(announcement: Announcement) -> None:
    """A person edits a field: the trial of it ends. What the engine itself sets has no actor."""
    if not announcement.actor or announcement.cluster is None:
        return
    trial = open_trial(announcement.cluster)
    if trial is not None and BY_NAME[trial.parameter].field in (announcement.after or {}):
        _stop(trial, f"{announcement.actor} has set it")


def is_edited(trial: AdaptingTrial) -> bool:
    """Whether the policy has another value than the trial gave it, or began from."""
    parameter = BY_NAME[trial.parameter]
    expected = trial.value_from if trial.state == TrialState.JUDGING else trial.value_to
    return bool(parameter.value_of(Cluster.objects.get(pk=trial.cluster_id)) != expected)


def stop_if_edited(trial: AdaptingTrial) -> bool:
    """Whether it was edited, and so ends."""
    return is_edited(trial) and _stop(trial, "Its value was set elsewhere")


def value_of(trial: AdaptingTrial) -> Value:
    """Of a step that was taken."""
    assert trial.value_to is not None  # noqa: S101 - ``step`` writes it with the state
    value: Value = trial.value_to
    return value


def _stop(trial: AdaptingTrial | None, why: str) -> bool:
    if trial is None:
        return False
    return _end(trial, TrialState.STOPPED, f"{why}; it stays where it is.")


@transaction.atomic
def step(trial: AdaptingTrial, value: Value) -> bool:
    """Put ``value`` into force, with the evidence that ``trial`` holds; whether it was done."""
    parameter = BY_NAME[trial.parameter]
    what = words.change(parameter, trial.value_from, value)
    said = words.sentence(what, words.of_step(parameter, trial.evidence, trial.value_from))
    now = trial.cluster.now()
    mine = AdaptingTrial.objects.filter(pk=trial.pk, state=TrialState.JUDGING)
    if not _has(trial, parameter, trial.value_from) or not mine.update(
        state=TrialState.TRYING, value_to=value, begun_at=now, checked_at=now, study=None,
        evidence=trial.evidence, sentence=said,
    ):  # fmt: skip
        return False
    _set(trial, parameter, trial.value_from, value, said)
    _announce("adapting.stepped", trial, parameter, said, after=value)
    return True


@transaction.atomic
def take_back(trial: AdaptingTrial, why: str) -> bool:
    """The value from before the step is in force again; whether it was done."""
    parameter = BY_NAME[trial.parameter]
    stepped = value_of(trial)
    what = words.change(parameter, stepped, trial.value_from)
    said = words.sentence(f"{what}, taken back", f"{why}; {words.of_check(trial.evidence)}")
    if not _has(trial, parameter, stepped) or not _end(trial, TrialState.TAKEN_BACK, said):
        return False
    _set(trial, parameter, stepped, trial.value_from, said)
    _announce("adapting.taken_back", trial, parameter, said, after=trial.value_from)
    return True


@transaction.atomic
def keep(trial: AdaptingTrial) -> bool:
    """A week agreed: the value stays for good; whether it was on trial still."""
    parameter = BY_NAME[trial.parameter]
    what = words.change(parameter, trial.value_from, value_of(trial))
    said = words.sentence(f"{what}, kept", words.of_check(trial.evidence))
    if not _end(trial, TrialState.KEPT, said):
        return False
    _announce("adapting.kept", trial, parameter, said, after=value_of(trial))
    return True


def leave(trial: AdaptingTrial) -> bool:
    """Nothing is changed, and the evidence says why; whether it was judged still."""
    parameter = BY_NAME[trial.parameter]
    why = words.of_step(parameter, trial.evidence, trial.value_from)
    what = f"{parameter.title} stays at {parameter.in_words(trial.value_from)}"
    return _end(trial, TrialState.NO_BETTER, words.sentence(what, why))


def _end(trial: AdaptingTrial, state: TrialState, said: str) -> bool:
    mine = AdaptingTrial.objects.filter(pk=trial.pk, state__in=OPEN)
    ended = mine.update(
        state=state, ended_at=trial.cluster.now(), study=None, sentence=said,
        evidence=trial.evidence,
    )  # fmt: skip
    return bool(ended)


def _has(trial: AdaptingTrial, parameter: Parameter, value: Value) -> bool:
    """Nobody edits the policy until the transaction ends: what a person has set meanwhile stays theirs."""
    found = Cluster.objects.select_for_update().get(pk=trial.cluster_id)
    return parameter.value_of(found) == value


def _set(
    trial: AdaptingTrial, parameter: Parameter, before: Value, after: Value, said: str
) -> None:
    cluster = trial.cluster
    set_policy(cluster=cluster, values={parameter.field: after}, author=None, reason=said)
    AdaptingParameter.objects.update_or_create(
        cluster=cluster, name=parameter.name,
        defaults={"changed_at": cluster.now(), "changed_from": before, "changed_to": after},
    )  # fmt: skip


def _announce(
    kind: str, trial: AdaptingTrial, parameter: Parameter, said: str, *, after: Value
) -> None:
    evidence: dict[str, Any] = trial.evidence
    latest = evidence["checks"][-1] if evidence.get("checks") else evidence.get("step", {})
    before = trial.value_from if kind == "adapting.stepped" else trial.value_to
    announce(
        kind, cluster=trial.cluster, subject=parameter.title,
        before={parameter.field: before}, after={parameter.field: after, "evidence": latest}, reason=said,
    )  # fmt: skip


def next_parameter(cluster: Cluster) -> Parameter | None:
    """The one after that of the newest trial, as they are declared; None where all are pinned."""
    pins = pinned(cluster)
    newest = AdaptingTrial.objects.filter(cluster=cluster).first()
    names = [one.name for one in PARAMETERS]
    first = names.index(newest.parameter) + 1 if newest and newest.parameter in names else 0
    turn = (*PARAMETERS[first:], *PARAMETERS[:first])
    return next((one for one in turn if one.name not in pins), None)
