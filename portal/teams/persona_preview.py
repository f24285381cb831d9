"""What an edit of a persona would do, before it is saved: whom it touches, what they lose and gain, and which
of their work it would not admit any more.

The edit is made by its own door and undone, so what is told is what would be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.utils import timezone

from portal.accounts.capabilities import MEANINGS, Capability, Reach
from portal.accounts.models import Persona, User
from portal.teams.models import Membership
from portal.teams.personas import PersonaValues, as_json, save_persona
from scheduling.models import Cluster, State, Workload
from scheduling.models.workloads import HOLDING
from scheduling.services.queues.judge import Rules, judge_kept
from scheduling.services.words import span

NONE = "may not"
LIMITS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    "approves_gpus": ("Approves up to", lambda most: f"{most:g} GPUs"),
    "max_gpus_per_workload": ("GPUs a workload", "{:g}".format),
    "max_gpus_at_once": ("GPUs at once", "{:g}".format),
    "max_run_time_s": ("Run-time limit", span),
}
"""Column -> its name, and how a value reads."""
CLASSES = {"priority_classes": "Priority classes", "gpu_classes": "GPU classes"}
FLAGS = {
    "preemptible_only": ("Only preemptible work", True),
    "interactive": ("Interactive work", False),
}
"""Column -> its name, and the value that takes something away."""


@dataclass(frozen=True, slots=True)
class ChangedRight:
    """One thing that changes; ``loses`` is None where it neither takes nor gives."""

    name: str
    before: str
    after: str
    loses: bool | None


@dataclass(frozen=True, slots=True)
class Hit:
    """Work that the edited persona would not admit, and why."""

    workload: Workload
    sentence: str

    @property
    def holds(self) -> bool:
        """It holds GPUs now."""
        return self.workload.state in HOLDING


@dataclass(frozen=True, slots=True)
class Preview:
    """``people`` are (user name, names of the teams) of whoever holds it now."""

    people: Sequence[tuple[str, Sequence[str]]]
    lines: Sequence[ChangedRight]
    waiting: Sequence[Hit]
    running: Sequence[Hit]
    fingerprint: str
    """Of this edit to the persona as it was: what is confirmed is what was shown."""

    @property
    def loses(self) -> Sequence[ChangedRight]:
        return [line for line in self.lines if line.loses]

    @property
    def gains(self) -> Sequence[ChangedRight]:
        return [line for line in self.lines if line.loses is False]


def preview(*, by: User, persona: Persona, values: PersonaValues) -> Preview:
    """Raises what saving would raise: ServiceError at a field."""
    holders = _holders(persona)
    work = _live_work([name for name, _ in holders])
    before = as_json(persona)
    admitted = {one.pk for one in work if not _faults(one, _rules(work))}
    with transaction.atomic():
        edited = Persona.objects.get(pk=persona.pk)
        after = as_json(save_persona(by=by, values=values, persona=edited))
        rules = _rules(work)
        hits = [
            Hit(one, fault) for one in work if one.pk in admitted and (fault := _faults(one, rules))
        ]
        transaction.set_rollback(True)
    return Preview(
        people=holders,
        lines=list(_lines(before, after)),
        waiting=[hit for hit in hits if not hit.holds],
        running=[hit for hit in hits if hit.holds],
        fingerprint=_fingerprint(persona, before, after),
    )


def _holders(persona: Persona) -> list[tuple[str, list[str]]]:
    rows = Membership.objects.in_force(timezone.now()).filter(persona=persona)
    found: dict[str, list[str]] = {}
    ordered = rows.order_by("user__username", "team__name")
    for name, team in ordered.values_list("user__username", "team__name"):
        found.setdefault(name, []).append(team)
    return list(found.items())


def _live_work(names: Sequence[str]) -> list[Workload]:
    live = Workload.objects.filter(user__in=names).exclude(state=State.FINISHED).exclude(queue=None)
    return list(live.select_related("queue", "cluster", "priority_class").order_by("name"))


def _rules(work: Sequence[Workload]) -> Mapping[int, Rules]:
    """Cluster -> who may have what run there now."""
    clusters = Cluster.objects.filter(pk__in={one.cluster_id for one in work})
    return {one.pk: Rules.of(one) for one in clusters}


def _faults(work: Workload, rules: Mapping[int, Rules]) -> str:
    """The first reason why it would not be admitted; empty where it would."""
    faults = judge_kept(work, rules[work.cluster_id]).faults
    return faults[0].sentence if faults else ""


def _lines(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[ChangedRight]:
    if before["name"] != after["name"]:
        yield ChangedRight("Name", before["name"], after["name"], None)
    for capability in Capability:
        yield from _reach(capability, before.get(capability), after.get(capability))
    for column, (name, said) in LIMITS.items():
        yield from _limit(name, said, before[column], after[column])
    for column, name in CLASSES.items():
        yield from _classes(name, before[column], after[column])
    for column, (name, taking) in FLAGS.items():
        if before[column] != after[column]:
            words = {True: "yes", False: "no"}
            yield ChangedRight(
                name, words[before[column]], words[after[column]], after[column] == taking
            )


def _reach(capability: Capability, was: str | None, now: str | None) -> Iterator[ChangedRight]:
    if was == now:
        return
    rank = [-1 if reach is None else Reach(reach).rank for reach in (was, now)]
    yield ChangedRight(MEANINGS[capability].name, was or NONE, now or NONE, rank[1] < rank[0])


def _limit(
    name: str, words: Callable[[float], str], was: float | None, now: float | None
) -> Iterator[ChangedRight]:
    if was == now:
        return
    before, after = ("no limit" if one is None else words(one) for one in (was, now))
    yield ChangedRight(name, before, after, was is None or (now is not None and now < was))


def _classes(name: str, was: Sequence[str], now: Sequence[str]) -> Iterator[ChangedRight]:
    """None named is every one."""
    if was == now:
        return
    before, after = (", ".join(one) or "every one" for one in (was, now))
    yield ChangedRight(name, before, after, bool(now) and (not was or bool(set(was) - set(now))))


def _fingerprint(persona: Persona, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    text = json.dumps([persona.pk, before, after], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
