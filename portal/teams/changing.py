"""Changing work that waits: judged as it would be by the judge of all work, then planned or written.

Pages and API go through here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

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
from scheduling.services.workloads.change import WorkloadChange, WorkloadDraft

FIELDS = {
    "run_time_limit_s": "run_time_limit",
    "pods_min": "gpus_per_pod",
    "pods_max": "gpus_per_pod",
    "at_once": "array",
}
"""Part of a change -> the field that judges name, where that is another."""
SIZES = {"gpus_per_pod", "gpu_classes", "priority_class"}


@dataclass(frozen=True, slots=True)
class ChangeOutlook:
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
    def waits(self) -> bool:
        """Whether it starts in time, with nothing else changed."""
        return self.answer.waits and not self.keeps_back


@dataclass(frozen=True, slots=True)
class Comparison:
    draft: WorkloadDraft
    before: ChangeOutlook
    after: ChangeOutlook


def preview(user: User, work: Workload, change: WorkloadChange, *, asker: str = "") -> Comparison:
    """What ``change`` would do to ``work``, by the next plan; ``asker`` as for ``asking.ask``. Raises
    SubmissionError with every fault at its field, or the service's ServiceError."""
    draft, later = drafted(user, work, change)
    now = turns.kept_back(work.cluster, draft.before)
    before, after = asking.compare(work, draft.after, on_hold=later is not None, asker=asker)
    return Comparison(
        draft, _foreseen(user, work, before, now), _foreseen(user, work, after, later)
    )


def drafted(
    user: User, work: Workload, change: WorkloadChange
) -> tuple[WorkloadDraft, tuple[Reason, str] | None]:
    """``work`` as it is and as it would be, and what it would say itself then to wait for. Raises as
    ``preview`` does."""
    draft = _judged(user, work, change)
    return draft, turns.kept_back(work.cluster, draft.after)


def change(user: User, work: Workload, wanted: WorkloadChange) -> None:
    """Write it, if nothing forbids it. Raises as ``preview`` does."""
    _judged(user, work, wanted)
    changes.apply(work, wanted, user=user.get_username())


def _judged(user: User, work: Workload, wanted: WorkloadChange) -> WorkloadDraft:
    _refuse_unknown(work, wanted)
    draft = changes.draft(work, wanted)
    if found := list(_faults(user, work, wanted, draft)):
        raise submission.SubmissionError(found)
    return draft


def _refuse_unknown(work: Workload, wanted: WorkloadChange) -> None:
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


def _faults(
    user: User, work: Workload, wanted: WorkloadChange, drafted: WorkloadDraft
) -> Iterator[ServiceError]:
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
) -> ChangeOutlook:
    if kept_back is not None:
        reason, sentence = kept_back
        return ChangeOutlook(answer, reason.value, sentence, keeps_back=True)
    decision = answer.decision
    if decision.reason is Reason.HELD and work.reason:
        # What a cycle found of it, which no plan knows: what its persona allows, a start that failed.
        return ChangeOutlook(answer, work.reason, sentences.readable(work, Reading(user)).sentence)
    case = asking.said_of(work, decision)
    return ChangeOutlook(
        answer, decision.reason.value, sentences.tell(case, Reading(user)).sentence
    )
