"""Array plan to plan: numbers become names, figures become sentences."""

from __future__ import annotations

from scheduling.engine import codes, reasons
from scheduling.engine import model as m
from scheduling.engine.array_plan import ArrayPlan
from scheduling.engine.frame import Frame
from scheduling.engine.sentences import Facts
from scheduling.engine.shares import read_shares

Told = tuple[Facts, str, dict[str, reasons.Number]]
"""Facts, and the sentence and numbers that follow from them."""

SEATED = (m.Action.ADMIT, m.Action.GROW, m.Action.SHRINK, m.Action.MOVE)


def decode(frame: Frame, plan: ArrayPlan, *, brief: bool = False) -> m.Plan:
    """The plan in names. Acts come first, in the order they are carried out, then the waits.

    ``brief``: the acts alone, without shares and waits, for who plans a simulated past.
    """
    reader = _Reader(frame, plan)
    order, action = plan.order.tolist(), plan.action.tolist()
    acts = [slot for slot in order if action[slot] != codes.WAIT]
    if brief:
        return m.Plan({}, tuple(reader.decision(slot) for slot in acts))
    waits = [slot for slot in order if action[slot] == codes.WAIT]
    return m.Plan(read_shares(frame), tuple(reader.decision(slot) for slot in acts + waits))


class _Reader:
    """Reads decisions of one array plan. Thousands wait for the same reason with the same figures: what
    is said of it is put into words once."""

    def __init__(self, frame: Frame, plan: ArrayPlan) -> None:
        assert frame.source is not None  # noqa: S101 - decode is for frames made by encode
        self.frame, self.plan = frame, plan
        self.work = {w.name: w for w in frame.source.workloads}
        self.now = frame.source.now
        self.action, self.members = plan.action.tolist(), plan.members.tolist()
        self.position = self._positions()
        self.paths: dict[int, str] = {}
        work = frame.work
        self.rows = list(
            zip(
                plan.reason.tolist(), plan.blame.tolist(), plan.rival.tolist(),
                plan.gpu_class.tolist(), plan.until.tolist(), plan.lost.tolist(),
                map(tuple, plan.figures.tolist()), work.queue.tolist(), work.members.tolist(),
                strict=False,
            )
        )  # fmt: skip
        """By slot, all that is said of it but what the workload itself states."""
        self.told: dict[tuple[object, ...], Told] = {}

    def decision(self, slot: int) -> m.Decision:
        work = self.work[self.frame.slot_names[slot]]
        facts, sentence, numbers = self._told(slot, work)
        action, reason = codes.ACTIONS[self.action[slot]], facts.reason
        seated = action in SEATED or reason is m.Reason.AWAITS_VICTIMS
        placement, devices = self._seats(slot, work) if seated else ({}, {})
        return m.Decision(
            workload=work.name,
            action=action,
            reason=reason,
            sentence=sentence,
            numbers=numbers,
            queue=work.queue,
            gpu_class=facts.gpu_class or None,
            members=self.members[slot],
            placement=placement,
            devices=devices,
            for_workload=facts.rival or None,
            until=facts.until,
            position=self.position.get(slot),
            lost_gpu_s=facts.lost_gpu_s,
        )

    def _told(self, slot: int, work: m.Workload) -> Told:
        """What is said of ``slot``, made anew only for what was not said of another one."""
        row = self.rows[slot]
        reason = codes.REASONS[row[0]]
        asked = (work.queue, work.gpus, work.members.min, work.held, _wanted(work, reason))
        key = (*row, *asked)
        told = self.told.get(key)
        if told is None:
            facts = self._facts(slot, work, reason)
            told = self.told[key] = (facts, reasons.sentence(facts), reasons.numbers(facts))
        return told

    def _facts(self, slot: int, work: m.Workload, reason: m.Reason) -> Facts:
        plan, frame = self.plan, self.frame
        rival = frame.slot_names[int(plan.rival[slot])] if plan.rival[slot] >= 0 else ""
        c = int(plan.gpu_class[slot])
        until = float(plan.until[slot])
        return Facts(
            reason=reason,
            queue=self.path(int(frame.work.queue[slot])) or work.queue,
            blame=self.path(int(plan.blame[slot])),
            gpu_class=frame.class_names[c] if c >= 0 else "",
            figures=tuple(plan.figures[slot].tolist()),
            gpus=work.gpus,
            least=work.members.min,
            members=int(frame.work.members[slot]),
            rival=rival,
            rival_queue=self.path(int(frame.work.queue[plan.rival[slot]])) if rival else "",
            until=reasons.since(self.now, until) if until > 0 else None,
            lost_gpu_s=float(plan.lost[slot]),
            wanted=_wanted(work, reason),
            held_by_user=work.held,
        )

    def _seats(
        self, slot: int, work: m.Workload
    ) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        placement: dict[str, int] = {}
        devices: dict[str, tuple[int, ...]] = {}
        for node, device in sorted(zip(*self.plan.seats(slot), strict=True)):
            name = self.frame.node_names[node]
            placement[name] = placement.get(name, 0) + 1
            if device >= 0:
                devices[name] = (*devices.get(name, ()), device)
        return placement, devices

    def path(self, queue: int) -> str:
        """Names from below the root; empty for the root and for none."""
        if queue <= 0:
            return ""
        if queue not in self.paths:
            above = self.path(int(self.frame.tree.parent[queue]))
            name = self.frame.queue_names[queue]
            self.paths[queue] = f"{above}/{name}" if above else name
        return self.paths[queue]

    def _positions(self) -> dict[int, int]:
        """1-based place of each workload that does not start, among those of its queue."""
        count: dict[int, int] = {}
        position = {}
        queue_of = self.frame.work.queue.tolist()
        for slot in self.plan.order.tolist():
            if self.action[slot] not in (codes.WAIT, codes.RESERVE):
                continue
            queue = queue_of[slot]
            count[queue] = position[slot] = count.get(queue, 0) + 1
        return position


def _wanted(work: m.Workload, reason: m.Reason) -> str:
    if reason is m.Reason.MISROUTED:
        return work.queue
    if reason is m.Reason.NO_SUCH_CLASS:
        return ", ".join(work.gpu_classes)
    return work.topology.required or ""
