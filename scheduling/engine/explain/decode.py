"""Array plan to plan: numbers become names, figures become sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from scheduling.engine import codes
from scheduling.engine import model as m
from scheduling.engine.compile.structs import Ints
from scheduling.engine.explain.outages import Outages
from scheduling.engine.explain.outline import Outline, Waits
from scheduling.engine.explain.shares import read_shares
from scheduling.engine.reasons import catalogue as reasons
from scheduling.engine.reasons import figures as of
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.wording import amount, gib
from scheduling.engine.roles import ordered
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.snapshot.workload_columns import beside_of
from scheduling.engine.state.array_plan import ArrayPlan
from scheduling.engine.state.roles import FIRST_ROLE
from scheduling.engine.state.units import MEMORY

Row = tuple[Any, ...]
"""All that is said of a slot but what the workload itself states."""
Told = tuple[Facts, str, str, dict[str, reasons.Number]]
"""Facts, and the sentence, the sealed one and the numbers that follow from them."""

Starts = Mapping[str, datetime]
"""When workloads that wait are expected to start, by name, as a forecast says."""
UNKNOWN: Starts = {}

SEATED = (m.Action.ADMIT, m.Action.GROW, m.Action.SHRINK, m.Action.MOVE)

NO_PLACE = (codes.NEVER_FITS, codes.MISROUTED, codes.NO_SUCH_CLASS)
"""Work that can never start as things are stands in no line."""
FIRST_STARTS = {
    m.Reason.WAITS_FOR_TURN: of.TURN.turn_in_s,
    m.Reason.RESERVED_FOR_OTHER: of.FOR_OTHER.starts_in_s,
}
"""By reason, the figure that says when who goes first starts."""


def decode(frame: Frame, plan: ArrayPlan, *, brief: bool = False) -> m.Plan:
    """The plan in names. Claims that lapse come first, then acts in the order they are carried out, then
    the waits.

    ``brief``: what is carried out alone, without shares, waits and places in line, for plans of a simulated
    past.
    """
    reader = _Reader(frame, plan, brief=brief)
    if brief:
        return m.Plan({}, (*reader.lapses(), *reader.decisions(plan.carried_out())))
    acts = plan.order[plan.action[plan.order] != codes.WAIT]
    waits = plan.order[plan.action[plan.order] == codes.WAIT]
    lines = (*reader.lapses(), *reader.decisions(np.append(acts, waits)))
    return m.Plan(read_shares(frame), lines)


def outline(frame: Frame, plan: ArrayPlan, starts: Starts = UNKNOWN) -> Outline:
    """The same plan, of which the waits are put into words when they are asked for.

    A reservation rests on when running work is expected to end; ``starts`` also know who arrives and what
    goes wrong. Of both times the later one is told. The waits hold on to the frame, which must not be planned
    again meanwhile.
    """
    reader = _Reader(frame, plan, starts)
    order, action = plan.order, plan.action[plan.order]
    starts_not = (action == codes.WAIT) | (action == codes.RESERVE)
    slots = np.append(order[action == codes.RESERVE], order[action == codes.WAIT])
    waits = Waits(
        names=list(map(frame.slot_names.__getitem__, slots.tolist())),
        reasons=list(map(codes.REASONS.__getitem__, reader.reason[slots].tolist())),
        positions=reader.in_line(slots),
        spell=lambda places: reader.decisions(slots[np.array(places, np.int64)]),
    )
    acts = (*reader.lapses(), *reader.decisions(order[~starts_not]))
    return Outline(read_shares(frame), acts, waits)


class _Reader:
    """Reads decisions of one array plan. Thousands wait for the same reason with the same figures: what
    is said of it is put into words once."""

    def __init__(
        self, frame: Frame, plan: ArrayPlan, starts: Starts = UNKNOWN, *, brief: bool = False
    ) -> None:
        assert frame.source is not None  # noqa: S101 - decode is for frames made by encode
        self.frame, self.plan, self.starts, self.brief = frame, plan, starts, brief
        self.work = {w.name: w for w in frame.source.workloads}
        self.now = frame.source.now
        self.constraints = {one.name: one.constraints for one in frame.source.node_sets}
        self.others = beside_of(frame.source.nodes)
        self.outages = Outages(frame.source)
        self.reason = self._reasons()
        self.paths: dict[int, str] = {}
        self.statements: dict[Row, Told] = {}
        self.positions: Ints | None = None
        self.leave_for: dict[int, list[str]] = {}
        """By slot those who leave, shrink or move for it in this plan."""
        for slot in plan.order[plan.rule[plan.order] >= 0].tolist():
            self.leave_for.setdefault(int(plan.rival[slot]), []).append(frame.slot_names[slot])

    def _reasons(self) -> Ints:
        """Of each slot; only what is too much for all that is installed never fits. In brief nobody describes
        who waits, nor reads why.
        """
        plan, found = self.plan, self.plan.reason.copy()
        never = (found[plan.order] == codes.NEVER_FITS) & (plan.blame[plan.order] < 0)
        for slot in plan.order[never].tolist():
            work = self.work.get(self.frame.slot_names[slot])
            if work is not None and self.outages.would_fit(work):
                found[slot] = codes.NODES_OUT
        return found

    def lapses(self) -> list[m.Decision]:
        """A line for each claim that ends without a start, by name."""
        plan = self.plan
        slots = np.flatnonzero((plan.lapsed >= 0) & (plan.action != codes.ADMIT)).tolist()
        return [self._lapse(self.work[self.frame.slot_names[s]], s) for s in slots]

    def _lapse(self, work: m.Workload, slot: int) -> m.Decision:
        members = sum(work.placement.values())
        facts = Facts(
            reason=m.Reason.CLAIM_LAPSED,
            queue=self.path(int(self.frame.work.queue[slot])) or work.queue,
            blame="",
            gpu_class=work.gpu_class or "",
            figures=of.ClaimEnd(members * work.gpus, len(work.victims)),
            rule=codes.LAPSES[int(self.plan.lapsed[slot])],
            until=work.room_due,
        )
        return m.Decision(
            workload=work.name,
            action=m.Action.LAPSE,
            reason=facts.reason,
            sentence=reasons.sentence(facts),
            numbers=reasons.numbers(facts),
            queue=work.queue,
            gpu_class=work.gpu_class,
            members=members,
            placement=work.placement,
            devices=work.devices,
            rule=facts.rule,
            victims=work.victims,
        )

    def decisions(self, slots: Ints) -> list[m.Decision]:
        """Those of ``slots``, in that order."""
        plan, work = self.plan, self.frame.work
        rows = zip(
            self.reason[slots].tolist(), plan.blame[slots].tolist(), plan.rival[slots].tolist(),
            plan.gpu_class[slots].tolist(), plan.rule[slots].tolist(), plan.until[slots].tolist(),
            plan.lost[slots].tolist(),
            map(tuple, plan.figures[slots].tolist()), plan.searches[slots].tolist(),
            work.queue[slots].tolist(), work.members[slots].tolist(),
            strict=True,
        )  # fmt: skip
        lines = zip(
            slots.tolist(), plan.action[slots].tolist(), plan.members[slots].tolist(),
            self.in_line(slots), rows,
            strict=True,
        )  # fmt: skip
        return [self._decision(*line) for line in lines]

    def in_line(self, slots: Ints) -> list[int]:
        """Positions of ``slots``. Nobody counts a line in which none of them stands."""
        action = self.plan.action[slots]
        if self.brief or not ((action == codes.WAIT) | (action == codes.RESERVE)).any():
            return [0] * slots.size
        if self.positions is None:
            self.positions = _positions(self.frame, self.plan)
        found: list[int] = self.positions[slots].tolist()
        return found

    def _decision(
        self, slot: int, number: int, members: int, position: int, row: Row
    ) -> m.Decision:
        work = self.work[self.frame.slot_names[slot]]
        facts, sentence, sealed, numbers = self._statement(slot, work, row)
        action, reason = codes.ACTIONS[number], facts.reason
        seated = action in SEATED or reason is m.Reason.AWAITS_VICTIMS
        placement, devices = self._seats(slot, work) if seated else ({}, {})
        return m.Decision(
            workload=work.name,
            action=action,
            reason=reason,
            sentence=sentence,
            sealed=sealed,
            numbers=numbers,
            queue=work.queue,
            gpu_class=facts.gpu_class or None,
            members=members,
            placement=placement,
            roles=self._by_role(slot, work) if seated and work.roles else {},
            devices=devices,
            for_workload=facts.rival or None,
            rule=facts.rule,
            victims=self._victims(slot, work) if reason is m.Reason.AWAITS_VICTIMS else (),
            until=facts.until,
            position=position or None,
            lost_gpu_s=facts.lost_gpu_s,
        )

    def _victims(self, slot: int, work: m.Workload) -> tuple[str, ...]:
        """Of a claim: its victims of earlier plans, then those of this one."""
        before = work.victims if work.awaits_victims and self.plan.lapsed[slot] < 0 else ()
        return (*before, *self.leave_for.get(slot, ()))

    def _statement(self, slot: int, work: m.Workload, row: Row) -> Told:
        """What is said of ``slot``, made anew only for what was not said of another one."""
        reason = codes.REASONS[row[0]]
        request = (
            work.queue,
            work.gpus,
            work.members.min,
            _roles(work),
            work.members.max,
            work.held,
            self._wanted(slot, work, reason),
            _segment(work),
            self.constraints.get(work.node_set or "", ""),
            _beside(work, reason),
            work.gpu_classes if reason is m.Reason.NODES_OUT else (),
            self.starts.get(work.name) if reason is m.Reason.RESERVED else None,
            self._first_starts_in(slot, work, reason) if reason in FIRST_STARTS else None,
        )
        key = (*row, *request)
        answer = self.statements.get(key)
        if answer is None:
            facts = self._facts(slot, work, reason)
            answer = self.statements[key] = (
                facts, reasons.sentence(facts), reasons.sealed_sentence(facts), reasons.numbers(facts)
            )  # fmt: skip
        return answer

    def _facts(self, slot: int, work: m.Workload, reason: m.Reason) -> Facts:
        plan, frame = self.plan, self.frame
        rival = frame.slot_names[int(plan.rival[slot])] if plan.rival[slot] >= 0 else ""
        c = int(plan.gpu_class[slot])
        stopped = reason is m.Reason.HELD and not work.held
        return Facts(
            reason=reason,
            queue=self.path(int(frame.work.queue[slot])) or work.queue,
            blame=self.path(self._stopped(slot) if stopped else int(plan.blame[slot])),
            gpu_class=frame.class_names[c] if c >= 0 else "",
            figures=self._figures(slot, work, reason),
            searches=int(plan.searches[slot]),
            gpus=work.gpus,
            least=work.members.min,
            roles=_roles(work),
            members=_changing(work, int(frame.work.members[slot])),
            elastic_gpus=next((one.gpus for one in work.roles if one.extra), 0),
            rival=rival,
            rival_queue=self.path(int(frame.work.queue[plan.rival[slot]])) if rival else "",
            rule=codes.RULES[int(plan.rule[slot])] if plan.rule[slot] >= 0 else "",
            until=self._until(slot, work, reason),
            lost_gpu_s=float(plan.lost[slot]),
            wanted=self._wanted(slot, work, reason),
            segment=_segment(work),
            constraints=self.constraints.get(work.node_set or "", ""),
            beside=_beside(work, reason),
            held_by_user=work.held,
            draining=bool(stopped and frame.tree.stop[frame.work.queue[slot]] == codes.DRAINS),
            outages=self._said_of_outages(work, frame.class_names[c] if c >= 0 else "", reason),
        )

    def _wanted(self, slot: int, work: m.Workload, reason: m.Reason) -> str:
        """What it asks for by name."""
        if reason is m.Reason.NO_FREE_OTHER:
            return self.others[int(self.plan.figures[slot, of.NO_OTHER.other]) - MEMORY - 1]
        return _wanted(work, reason)

    def _figures(self, slot: int, work: m.Workload, reason: m.Reason) -> Any:
        figures = reasons.figures_of(reason, self.plan.figures[slot].tolist())
        if isinstance(figures, of.FreeForOther):
            return figures._replace(starts_in_s=self._first_starts_in(slot, work, reason))
        if isinstance(figures, of.Turn):
            return figures._replace(turn_in_s=self._first_starts_in(slot, work, reason))
        return figures

    def _first_starts_in(self, slot: int, work: m.Workload, reason: m.Reason) -> float:
        """Seconds until who goes first starts: the later where any start of it is known. 0, which says
        nothing, where ``work`` itself is known to start before that."""
        seconds = float(self.plan.figures[slot, FIRST_STARTS[reason]])
        if not seconds:
            return 0.0
        first, own = self.plan.rival[slot], self.starts.get(work.name)
        rival = self.frame.slot_names[int(first)] if first >= 0 else ""
        if (start := self.starts.get(rival)) is not None:
            seconds = max(seconds, (start - self.now).total_seconds())
        comes_before = own is not None and own < self.now + timedelta(seconds=seconds)
        return 0.0 if comes_before else seconds

    def _until(self, slot: int, work: m.Workload, reason: m.Reason) -> datetime | None:
        known_s = float(self.plan.until[slot])
        known = reasons.since(self.now, known_s) if known_s > 0 else None
        start = self.starts.get(work.name) if reason is m.Reason.RESERVED else None
        return max(filter(None, (known, start)), default=None)

    def _said_of_outages(self, work: m.Workload, gpu_class: str, reason: m.Reason) -> str:
        """Of its class; of those of its wish where all it waits for is nodes."""
        if reason is not m.Reason.NODES_OUT:
            return self.outages.said_of(gpu_class)
        said = map(self.outages.said_of, work.gpu_classes or (gpu_class,))
        return " ".join(filter(None, said))

    def _stopped(self, slot: int) -> int:
        """The topmost queue whose hold or drain stops ``slot``."""
        tree, q = self.frame.tree, int(self.frame.work.queue[slot])
        while tree.parent[q] > 0 and tree.stop[tree.parent[q]] == tree.stop[q]:
            q = int(tree.parent[q])
        return q

    def _seats(
        self, slot: int, work: m.Workload
    ) -> tuple[dict[str, int], dict[str, tuple[int, ...]]]:
        placement: dict[str, int] = {}
        devices: dict[str, tuple[int, ...]] = {}
        for node, device in sorted(self.plan.seats(slot)):
            name = self.frame.node_names[node]
            placement[name] = placement.get(name, 0) + 1
            if device >= 0:
                devices[name] = (*devices.get(name, ()), device)
        return placement, devices

    def _by_role(self, slot: int, work: m.Workload) -> dict[str, dict[str, int]]:
        """Members by role and node."""
        names = [one.name for one in ordered(work.roles)]
        found: dict[str, dict[str, int]] = {name: {} for name in names}
        for node, device in sorted(self.plan.seats(slot)):
            if device <= FIRST_ROLE:
                at, name = found[names[FIRST_ROLE - device]], self.frame.node_names[node]
                at[name] = at.get(name, 0) + 1
        return found

    def path(self, queue: int) -> str:
        """Names from below the root; empty for the root and for none."""
        if queue <= 0:
            return ""
        if queue not in self.paths:
            above = self.path(int(self.frame.tree.parent[queue]))
            name = self.frame.queue_names[queue]
            self.paths[queue] = f"{above}/{name}" if above else name
        return self.paths[queue]


def _positions(frame: Frame, plan: ArrayPlan) -> Ints:
    """By slot the 1-based place of each workload that waits to start, among those of its queue; else 0."""
    action, reason = plan.action[plan.order], plan.reason[plan.order]
    in_line = ((action == codes.WAIT) | (action == codes.RESERVE)) & ~np.isin(reason, NO_PLACE)
    slots = plan.order[in_line]
    queue = frame.work.queue[slots]
    by_queue = np.argsort(queue, kind="stable")
    first = np.searchsorted(queue[by_queue], queue[by_queue])
    positions = np.zeros(frame.work.queue.size, np.int64)
    positions[slots[by_queue]] = np.arange(slots.size) - first + 1
    return positions


def _wanted(work: m.Workload, reason: m.Reason) -> str:
    if reason is m.Reason.MISROUTED:
        return work.queue
    if reason is m.Reason.NO_SUCH_CLASS:
        return ", ".join(work.gpu_classes)
    return work.topology.required or ""


def _segment(work: m.Workload) -> tuple[int, str]:
    one = work.topology.segment
    return (one.members, one.required) if one and one.required else (0, "")


def _changing(work: m.Workload, seats: int) -> int:
    """Its members, of unlike ones those of the role that may have more."""
    role = next((one for one in work.roles if one.extra), None)
    if role is None:
        return seats
    return role.members + (seats - work.members.min) * work.gpus // role.gpus


def _roles(work: m.Workload) -> tuple[tuple[int, int], ...]:
    """Least members and milli-GPU of one, by role, the largest first."""
    return tuple((one.members, one.gpus) for one in ordered(work.roles) if one.members)


def _beside(work: m.Workload, reason: m.Reason) -> str:
    """What a member needs beside its GPUs, where it may be what no node has."""
    if reason not in (m.Reason.NEVER_FITS, m.Reason.NODES_OUT):
        return ""
    cpus = f"{amount(work.cpus)} CPU{'s' * (work.cpus != m.MILLI)}" if work.cpus else ""
    memory = f"{gib(work.memory_mib)} of memory" if work.memory_mib else ""
    parts = [part for part in (cpus, memory) if part]
    parts += [f"{each} × {name}" for name, each in work.beside.items() if each]
    return " and ".join(parts)
