"""What would become of work before it is submitted: the cluster as it is, planned with it in line.

Nothing is calculated here. The engine that runs the cluster plans the snapshot at hand once more for each
question, and says what it would say of the work if it had just arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from scheduling.cluster.adapters import Sighting, key_of
from scheduling.engine import Outline
from scheduling.engine import model as m
from scheduling.engine import plan as engine_plan
from scheduling.models import Cluster, Queue, State, Workload
from scheduling.services import run_times
from scheduling.services.clusters.consolidation import ConsolidationEffect
from scheduling.services.clusters.consolidation import freed as engine_freed
from scheduling.services.errors import ServiceError
from scheduling.services.explain.reading import Reading, planned, reading_of
from scheduling.services.snapshot import build as snapshots
from scheduling.services.starts.refresh import OWN_CHANGE
from scheduling.services.words.sentences import Sentence, sealed_of

ASKED = "(asked)"
"""Its name in the snapshot. No object of a cluster is called so."""
AUTHORED = (
    "priority_class", "gpus", "cpus", "memory_mib", "members", "gpu_classes", "topology", "elastic",
)  # fmt: skip
"""What a change of waiting work may set of the engine's value; its place in line stays its own."""
NEVER = (m.Reason.NEVER_FITS, m.Reason.NO_SUCH_CLASS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the plan decides on the work, on the classes it accepts or on ``gpu_class`` alone."""

    gpu_class: str
    """Empty: all that it accepts, in its order."""
    decision: m.Decision
    share: m.Share | None
    """Of its queue in the class that was decided on, with the work in it."""
    ahead: tuple[str, ...]
    """Engine names of those who wait in its queue and go before it."""
    leaving: tuple[str, ...]
    """Engine names of those who would leave for it."""

    @property
    def never(self) -> bool:
        return self.decision.reason in NEVER

    @property
    def starts(self) -> bool:
        return self.decision.action is m.Action.ADMIT

    @property
    def waits(self) -> bool:
        """Whether it may start in time, with nothing else changed."""
        waits = self.decision.action in (m.Action.WAIT, m.Action.RESERVE)
        return waits and self.decision.reason.value not in OWN_CHANGE


@dataclass(frozen=True, slots=True)
class Case:
    """``work`` in the snapshot that is planned for a question about it."""

    snapshot: m.Snapshot
    work: m.Workload


def rows_of(cluster: Cluster, names: Sequence[str]) -> list[Workload]:
    """The workloads of these engine names, in that order; without those that have no row yet."""
    wanted = {name.rsplit("/", 1)[-1] for name in names}
    live = Workload.objects.filter(cluster=cluster, name__in=wanted).exclude(state=State.FINISHED)
    found = {name_in_plan(work): work for work in live.select_related("queue")}
    return [found[name] for name in names if name in found]


def name_in_plan(work: Workload) -> str:
    """What the engine calls it."""
    return key_of(work.kind, work.namespace, work.name)


@dataclass(frozen=True, slots=True)
class DraftWork:
    """Work that nobody has submitted yet, in the queue that it would wait in."""

    cluster: Cluster
    queue: Queue
    observed: Sighting

    def on(self, gpu_class: str) -> Sighting:
        """The same, asking for one class alone."""
        return replace(self.observed, gpu_classes=(gpu_class,), names_classes=True)

    def said(self, decision: m.Decision) -> Sentence:
        """What the plan says of it, to be told to a reader."""
        return _sentence_of(decision, self.queue, self.observed.user)


def said_of(work: Workload, decision: m.Decision) -> Sentence:
    """What a plan says of ``work``, which stands in a queue, to be told to a reader."""
    assert work.queue is not None  # noqa: S101 - what no queue takes is in no plan
    return _sentence_of(decision, work.queue, work.user)


def _sentence_of(decision: m.Decision, queue: Queue, user: str) -> Sentence:
    return Sentence(
        cluster_id=queue.cluster_id,
        queue=queue.path,
        user=user,
        reason=decision.reason.value,
        sentence=decision.sentence,
        sealed=sealed_of(decision),
        numbers=dict(decision.numbers),
    )


def as_work_of(observed: Sighting, user: str, cluster: Cluster, queue: Queue) -> DraftWork:
    """``observed`` as ``user`` would submit it to ``queue``, in whose namespace it is made."""
    at_home = replace(observed, user=user, namespace=queue.namespace or "default")
    return DraftWork(cluster, queue, at_home)


def ask(draft: DraftWork, gpu_classes: Sequence[str] = (), *, asker: str = "") -> list[Answer]:
    """What would become of it now: as it is, then on each of ``gpu_classes`` alone. ``asker``: whose next
    question replaces this one, if anybody's.

    Raises ServiceError when the cluster does not answer, too many ask at once, or it is replaced.
    """
    with reading_of(draft.cluster, asker=asker) as reading:
        whole = draft_in(reading, draft.observed)
        plans: dict[tuple[str, ...], Outline] = {}
        answers = []
        for name in ("", *gpu_classes):
            case = _on_class(whole, name)
            wish = tuple(case.work.gpu_classes)
            # What accepts one class alone is planned once for both.
            plans[wish] = plans.get(wish) or reading.plan(case.snapshot)
            answers.append(_answer(reading, case.work, plans[wish], name))
        return answers


def compare(
    work: Workload, changed: Sighting, *, on_hold: bool, asker: str = ""
) -> tuple[Answer, Answer]:
    """What becomes of ``work``, which waits, as it is and as ``changed`` would have it, in one picture;
    ``on_hold``: it says itself that it is not to start yet.

    Raises ServiceError as ``ask`` does, and when the cluster does not show it.
    """
    with reading_of(work.cluster, showing=name_in_plan(work), asker=asker) as reading:
        before, after = change_in(reading, name_in_plan(work), changed, on_hold=on_hold)
        first, then = (
            _answer(reading, case.work, reading.plan(case.snapshot)) for case in (before, after)
        )
        return first, then


def run_time_question(draft: DraftWork, gpu_classes: Sequence[str]) -> dict[str, object] | None:
    """The question how long it would run on each of ``gpu_classes``; None before anything was learned."""
    one = draft.observed
    work = Workload(
        cluster=draft.cluster, queue=draft.queue, name=one.name, user=one.user, image=one.image,
        gpus=one.gpus, memory_mib=one.memory_mib, min_members=one.min_members,
        run_time_limit_s=one.run_time_limit_s, gpu_classes=list(one.gpu_classes),
    )  # fmt: skip
    return run_times.question_of(cluster=draft.cluster, work=work, gpu_classes=gpu_classes)


def can_never_start(draft: DraftWork) -> m.Decision | None:
    """The engine's word that it fits no class even on empty nodes, None if it may start one day.

    Raises ServiceError as ``ask`` does.
    """
    with reading_of(draft.cluster) as reading:
        return _never(reading, draft.observed)


def drained(queue: Queue) -> list[m.Decision]:
    """Work that would be evicted, and what each would lose, if ``queue`` were drained now.

    Raises ServiceError as ``ask`` does.
    """
    with reading_of(queue.cluster) as reading:
        return _drained(reading, queue.name)


def freed(cluster: Cluster, gpu_class: str, nodes: int) -> ConsolidationEffect:
    """What moving work together would do for ``nodes`` more whole nodes of ``gpu_class``, now.

    Raises ServiceError as ``ask`` does.
    """
    with reading_of(cluster) as reading:
        return planned(lambda it: engine_freed(it, gpu_class, nodes), reading.snapshot)


def draft_in(reading: Reading, observed: Sighting, gpu_class: str = "") -> Case:
    """Work that arrives after everybody, on ``gpu_class`` alone unless that is empty."""
    snapshot = reading.with_draft(observed, ASKED)
    return _on_class(Case(snapshot, snapshot.workloads[-1]), gpu_class)


def _on_class(case: Case, gpu_class: str) -> Case:
    """Of a draft, which is the last of its snapshot; empty: as it is."""
    if not gpu_class:
        return case
    work = replace(case.work, gpu_classes=(gpu_class,))
    return Case(replace(case.snapshot, workloads=(*case.snapshot.workloads[:-1], work)), work)


def change_in(
    reading: Reading, name: str, changed: Sighting, *, on_hold: bool
) -> tuple[Case, Case]:
    """The workload ``name`` as it waits, and as it would be ``changed``; ``held``: it says itself that it is
    not to start yet. Raises ServiceError for what does not wait."""
    works = reading.snapshot.workloads
    work = next((one for one in works if one.name == name), None)
    if work is None or work.phase is not m.Phase.PENDING:
        raise ServiceError(
            "not_waiting", f"{name} does not wait in the cluster.", "Reload the page."
        )
    made = snapshots.newcomer(changed, reading.rows, reading.snapshot.now)
    other = replace(work, held=on_hold, **{part: getattr(made, part) for part in AUTHORED})
    instead = tuple(other if one is work else one for one in works)
    return Case(reading.snapshot, work), Case(replace(reading.snapshot, workloads=instead), other)


def _answer(reading: Reading, work: m.Workload, plan: Outline, gpu_class: str = "") -> Answer:
    decision, ahead = _found(reading, plan, work)
    name = decision.gpu_class or gpu_class
    return Answer(
        gpu_class=gpu_class,
        decision=decision,
        share=plan.fair_share.get(work.queue, {}).get(name),
        ahead=ahead,
        leaving=tuple(
            act.workload
            for act in plan.acts
            if act.for_workload == work.name and act.action in (m.Action.EVICT, m.Action.SHRINK)
        ),
    )


def _never(reading: Reading, observed: Sighting) -> m.Decision | None:
    """Others are left out: what never fits does not fit an empty cluster either."""
    case = draft_in(reading, observed)
    alone = replace(case.snapshot, workloads=(case.work,))
    [decision, *_] = planned(engine_plan, alone).decisions
    return decision if decision.reason in NEVER else None


def _drained(reading: Reading, name: str) -> list[m.Decision]:
    stopped = (
        replace(queue, stop=m.Stop.DRAIN) if queue.name == name else queue
        for queue in reading.snapshot.queues
    )
    plan = reading.plan(replace(reading.snapshot, queues=tuple(stopped)))
    return [act for act in plan.acts if act.reason is m.Reason.DRAINED]


def _found(reading: Reading, plan: Outline, work: m.Workload) -> tuple[m.Decision, tuple[str, ...]]:
    """The decision on it, and who goes before it where it waits."""
    for act in plan.acts:
        if act.workload == work.name:
            return act, ()
    waits = plan.waits
    at = list(waits.names).index(work.name)
    place = waits.positions[at]
    ahead = [
        (position, name)
        for name, position in zip(waits.names, waits.positions, strict=True)
        if 0 < position < place and reading.queue_of.get(name) == work.queue
    ]
    [decision] = waits.spell([at])
    return decision, tuple(name for _, name in sorted(ahead))
