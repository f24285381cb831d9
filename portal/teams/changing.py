"""Changing work that waits: judged as it would be by the judge of all work, then planned or written.

Pages and API go through here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime

from portal.accounts.models import User
from portal.teams import submission
from portal.teams.reading import Reading
from scheduling.models import PriorityClass, Reason, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.explain import asking
from scheduling.services.explain.asking import Answer, DraftWork
from scheduling.services.queues import judge
from scheduling.services.words import sentences
from scheduling.services.workloads import change as changes
from scheduling.services.workloads import turns
from scheduling.services.workloads.change import Change, Draft

FIELDS = {
    "run_time_limit_s": "run_time_limit",
    "pods_min": "gpus_per_pod",
    "pods_max": "gpus_per_pod",
    "at_once": "array",
}
"""Part of a change -> the field that judges name, where that is another."""
SIZES = {"gpus_per_pod", "gpu_classes", "priority_class"}


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What becomes of it, as it is or as it would be; a ``sentence`` in the reader's words."""

    answer: Answer
    reason: str
    sentence: str
    keeps_back: bool = False
    """It says itself that it is not to start yet."""

    @property
    def starts(self) -> bool:
        return self.answer.starts and not self.keeps_back

    @property
    def p50_at(self) -> datetime | None:
        return None if self.keeps_back or not self.answer.start else self.answer.start[0]

    @property
    def p90_at(self) -> datetime | None:
        return None if self.keeps_back or not self.answer.start else self.answer.start[1]


@dataclass(frozen=True, slots=True)
class Compared:
    draft: Draft
    before: Foreseen
    after: Foreseen


def preview(user: User, work: Workload, change: Change) -> Compared:
    """What ``change`` would do to ``work``, by the next plan. Raises SubmissionError with every fault at its
    field, or the service's ServiceError."""
    drafted = _judged(user, work, change)
    now, later = (turns.kept_back(work.cluster, o) for o in (drafted.before, drafted.after))
    before, after = asking.compare(work, drafted.after, held=later is not None)
    return Compared(
        drafted, _foreseen(user, work, before, now), _foreseen(user, work, after, later)
    )


def change(user: User, work: Workload, wanted: Change) -> None:
    """Write it, if nothing forbids it. Raises as ``preview`` does."""
    _judged(user, work, wanted)
    changes.apply(work, wanted, user=user.get_username())


def _judged(user: User, work: Workload, wanted: Change) -> Draft:
    _refuse_unknown(work, wanted)
    drafted = changes.draft(work, wanted)
    if found := list(_faults(user, work, wanted, drafted)):
        raise submission.SubmissionError(found)
    return drafted


def _refuse_unknown(work: Workload, wanted: Change) -> None:
    here = list(work.cluster.gpu_classes.values_list("name", flat=True))
    if wrong := next((name for name in wanted.gpu_classes or () if name not in here), None):
        raise ServiceError(
            "unknown_gpu_class",
            f"There is no GPU class {wrong} in {work.cluster}.",
            f"Use {judge.any_of(here)}.",
            field="gpu_classes",
        )
    name = wanted.priority_class
    if name is not None and not PriorityClass.objects.filter(name=name).exists():
        raise ServiceError(
            "unknown_priority_class",
            f"There is no priority class {name!r}.",
            "Choose one of the list.",
            field="priority_class",
        )


def _faults(user: User, work: Workload, wanted: Change, drafted: Draft) -> Iterator[ServiceError]:
    """What forbids it to be so: what is new, and what it says of the very parts that are changed."""
    queue, cluster = work.queue, work.cluster
    if queue is None:
        return
    rules = judge.Rules.of(cluster)
    before, after = (replace(one, user=work.user) for one in (drafted.before, drafted.after))
    had = {fault.code for fault in judge.judge(before, queue.path, rules).faults}
    touched = {FIELDS.get(name, name) for name in wanted.fields}
    found = [
        fault
        for fault in judge.judge(after, queue.path, rules).faults
        if fault.field in touched or fault.code not in had
    ]
    if wanted.priority_class is not None:
        mine = judge.priority_fault(user.get_username(), queue.path, wanted.priority_class, rules)
        found += [mine] if mine and not found else []
    found += turns.faults(cluster, after, submission.seen_by(user), before=before.turn)
    if not found and touched & SIZES:
        found += submission.never_faults(user, DraftWork(cluster, queue, after))
    yield from found


def _foreseen(
    user: User, work: Workload, answer: Answer, kept_back: tuple[Reason, str] | None
) -> Foreseen:
    if kept_back is not None:
        reason, sentence = kept_back
        return Foreseen(answer, reason.value, sentence, keeps_back=True)
    decision = answer.decision
    if decision.reason is Reason.HELD and work.reason:
        # What a cycle found of it, which no plan knows: what its persona allows, a start that failed.
        return Foreseen(answer, work.reason, sentences.readable(work, Reading(user)).sentence)
    asked = asking.said_of(work, decision)
    return Foreseen(answer, decision.reason.value, sentences.tell(asked, Reading(user)).sentence)
