"""Snapshot to frame: names become numbers, sorted, so that the order of rows decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import compress, count
from operator import attrgetter

import numpy as np

from scheduling.engine import codes
from scheduling.engine import model as m
from scheduling.engine.compile.structs import Flags, Floats, Ints
from scheduling.engine.model import UNLIMITED
from scheduling.engine.snapshot.describing import set_roles
from scheduling.engine.snapshot.frame import Frame
from scheduling.engine.snapshot.seats import seat_all
from scheduling.engine.snapshot.workload_columns import (
    Columns,
    Numbers,
    Roster,
    beside_of,
    seconds,
    shapes_of,
)
from scheduling.engine.state.input import Nodes, Quotas, Ranks, Rules, SharingRules, Tree
from scheduling.engine.state.units import ANYWHERE, CPUS, GPUS, MEMORY, RUNNING, SPREADS
from scheduling.engine.validate import check

MANY = UNLIMITED
ROLES = attrgetter("roles")


def encode(snapshot: m.Snapshot, roster: Roster | None = None) -> Frame:
    """The frame of ``snapshot``; ``roster`` holds workloads of an earlier one. Raises SnapshotError if the
    snapshot contradicts itself: the roster may be half changed then.
    """
    roster = roster or Roster()
    roster.settle(snapshot)
    check(snapshot, known=roster.known)
    classes = sorted(snapshot.gpu_classes, key=lambda c: c.name)
    names = [c.name for c in classes]
    queues = _parents_first(snapshot.queues)
    nodes = sorted(snapshot.nodes, key=lambda n: (n.name, n.gpu_class))
    priorities = sorted(snapshot.priority_classes, key=lambda p: p.name)
    tree = _tree(queues, snapshot.policy)
    node_sets = sorted(snapshot.node_sets, key=lambda s: s.name)
    allowed, where = _allowed(node_sets, nodes)
    roster.follow(
        snapshot.workloads, _numbers(tree, queues, classes, priorities, node_sets, snapshot.levels)
    )
    frame = Frame(
        now=snapshot.now.timestamp(),
        rules=_rules(snapshot.policy, snapshot.now.timestamp()),
        names={
            "classes": names,
            "queues": ["", *(q.name for q in queues)],
            "nodes": [n.name for n in nodes],
            "priorities": [p.name for p in priorities],
            "levels": list(snapshot.levels),
        },
        tree=tree,
        quotas=_quotas(queues, names),
        former=_quotas(queues, names, lowered=True),
        nodes=_nodes(
            nodes, names, [c.exchange_rate for c in classes], allowed, snapshot.topology_levels
        ),
        ranks=Ranks(
            np.array([p.value for p in priorities] or [0], np.int64),
            np.array([p.preemptible for p in priorities] or [False]),
            np.array([p.min_run_time_s for p in priorities] or [0], np.float64),
            np.array([_or_endless(p.max_wait_s) for p in priorities] or [np.inf]),
            np.array([p.type is m.WorkloadType.INFERENCE for p in priorities] or [False]),
        ),
        slots=len(snapshot.workloads) + 1,
    )
    for i, queue in enumerate(queues, 1):
        for user, gpus in sorted(queue.user_usage.items()):
            frame.note_usage(i, user, gpus)
    frame.open_to_all = int(where[-1])
    frame.backfill_quantile = snapshot.policy.backfill_quantile
    by_rank = snapshot.policy.order == "rank"
    _add_workloads(frame, _ordered(roster.columns, by_rank), roster, nodes, where)
    frame.source = snapshot
    return frame


def _parents_first(queues: tuple[m.Queue, ...]) -> list[m.Queue]:
    """Queues level by level, in each level by parent, then name."""
    kids: dict[str | None, list[m.Queue]] = {}
    for queue in sorted(queues, key=lambda q: q.name):
        kids.setdefault(queue.parent, []).append(queue)
    ordered = list(kids.get(None, ()))
    for queue in ordered:
        ordered.extend(kids.get(queue.name, ()))
    return ordered


def _tree(queues: list[m.Queue], policy: m.Policy) -> Tree:
    number = {q.name: i + 1 for i, q in enumerate(queues)}
    parent = np.array([-1, *(number[q.parent] if q.parent else 0 for q in queues)], np.int64)
    size = parent.size
    depth, stop = np.zeros(size, np.int64), np.zeros(size, np.int64)
    for i, queue in enumerate(queues, 1):
        depth[i] = depth[parent[i]] + 1
        stop[i] = max(stop[parent[i]], codes.STOPS.index(queue.stop))
    kids = np.argsort(parent[1:], kind="stable") + 1
    start = np.searchsorted(parent[kids], np.arange(size + 1))
    tier = np.array([0, *(q.priority for q in queues)], np.int64)
    return Tree(
        parent, depth, start.astype(np.int64), kids, tier, stop,
        _bounds([q.eviction_budget_gpus for q in queues]), _bounds([q.max_running for q in queues]),
        _bounds([q.max_running_per_user for q in queues]),
        _bounds([q.max_gpus_per_user for q in queues]),
        np.array([0.0, *(seconds(q.eviction_budget_until, 0.0) for q in queues)]),
        _min_run(queues, parent), _sharing(queues, parent, policy),
    )  # fmt: skip


def _sharing(queues: list[m.Queue], parent: Ints, policy: m.Policy) -> SharingRules:
    """Below a queue that gives out by merit everybody does, as it does."""
    rule, top = np.zeros(parent.size, np.int64), np.full(parent.size, -1, np.int64)
    for i, stated in enumerate((policy.sharing, *(q.sharing for q in queues))):
        above = int(parent[i])
        if above >= 0 and (top[above] >= 0 or stated is None):
            rule[i], top[i] = rule[above], top[above]
        else:
            rule[i] = codes.SHARINGS.index(stated or policy.sharing)
            top[i] = -1 if rule[i] == codes.FAIR else i
    left = [_or_endless(policy.evictions_left), *(_or_endless(q.evictions_left) for q in queues)]
    played = [False, *(q.played_along for q in queues)]
    return SharingRules(rule, top, np.array(left), np.array(played, np.bool_))


def _min_run(queues: list[m.Queue], parent: Ints) -> Floats:
    """Each queue's own time or that of the nearest queue above, -1 where none states one."""
    times = np.full(parent.size, -1.0)
    for i, queue in enumerate(queues, 1):
        own = queue.min_run_time_s
        times[i] = times[parent[i]] if own is None else own
    return times


def _bounds(values: Iterable[int | None]) -> Ints:
    """A bound by queue; the root has none."""
    return np.array([MANY, *(MANY if v is None else v for v in values)], np.int64)


def _quotas(queues: list[m.Queue], names: list[str], lowered: bool = False) -> Quotas:
    """The quotas in force, or with ``lowered`` those that were in force before they were lowered."""
    shape = (len(names), len(queues) + 1)
    nominal, weight, usage = np.zeros(shape, np.int64), np.zeros(shape), np.zeros(shape)
    limit, lending = np.full(shape, MANY, np.int64), np.full(shape, MANY, np.int64)
    budget, used = np.full(shape, np.inf), np.zeros(shape)
    ends, grace = np.zeros(shape), np.full(shape, -np.inf)
    for i, queue in enumerate(queues, 1):
        for c, name in enumerate(names):
            quota = queue.quotas.get(name, m.Quota())
            stated = quota.lowered if lowered and quota.lowered else quota
            nominal[c, i], weight[c, i] = stated.nominal, stated.weight
            if stated.borrowing_limit is not None:
                limit[c, i] = stated.nominal + stated.borrowing_limit
            if stated.lending_limit is not None:
                lending[c, i] = stated.lending_limit
            usage[c, i] = queue.usage.get(name, 0.0)
            if quota.budget_gpu_hours is not None:
                budget[c, i], used[c, i] = quota.budget_gpu_hours, quota.used_gpu_hours
                ends[c, i] = seconds(quota.period_ends, 0.0)
            if quota.lowered:
                grace[c, i] = quota.lowered.until.timestamp()
    cap = np.where(weight > 0, limit, np.minimum(limit, nominal))
    cap[:, 0] = MANY
    return Quotas(nominal, limit, cap, lending, weight, usage, budget, used, ends, grace)


def _allowed(sets: list[m.NodeSet], nodes: list[m.Node]) -> tuple[Flags, Ints]:
    """Which work may use which nodes: a row for each choice of nodes; and the row of each set, last that of
    work without one, -1 where it may use all.
    """
    names = [n.name for n in nodes]
    choices = [np.array([*map(s.nodes.__contains__, names)], np.bool_) for s in sets]
    choices.append(np.array([not n.dedicated for n in nodes], np.bool_))
    rows = {choice.tobytes(): choice for choice in choices if not choice.all()}
    number = {key: i for i, key in enumerate(rows)}
    allowed = np.array([*rows.values()] or [choices[-1]])
    where = [number.get(choice.tobytes(), ANYWHERE) for choice in choices]
    return allowed, np.array(where, np.int64)


def _nodes(
    nodes: list[m.Node],
    names: list[str],
    rates: list[float],
    allowed: Flags,
    levels: tuple[str, ...],
) -> Nodes:
    gpu_class = np.array([names.index(n.gpu_class) for n in nodes], np.int64)
    others = beside_of(nodes)
    size = np.zeros((3 + len(others), len(nodes)), np.int64)
    foreign = np.zeros_like(size)
    for i, node in enumerate(nodes):
        if node.ready:
            size[GPUS, i] = max(0, node.gpus - node.foreign_gpus)
            size[CPUS, i] = MANY if node.cpus is None else node.cpus
            size[MEMORY, i] = MANY if node.memory_mib is None else node.memory_mib
            size[MEMORY + 1 :, i] = [node.beside.get(name, 0) for name in others]
            foreign[MEMORY + 1 :, i] = [node.foreign_beside.get(name, 0) for name in others]
    domain = [_numbered([_domain(n, levels, at) for n in nodes]) for at in range(len(levels))]
    domain.append(_numbered([(n.name,) for n in nodes]))
    of_class = np.argsort(gpu_class, kind="stable")
    start = np.searchsorted(gpu_class[of_class], np.arange(len(names) + 1))
    capacity = np.array([size[GPUS, gpu_class == c].sum() for c in range(len(names))], np.int64)
    return Nodes(
        gpu_class, size, foreign, np.array(domain, np.int64), start.astype(np.int64),
        of_class.astype(np.int64),
        np.array(rates, np.float64), capacity, allowed, _columns(allowed),
    )  # fmt: skip


def _domain(node: m.Node, levels: tuple[str, ...], at: int) -> tuple[str, ...]:
    """What tells apart the domains of level ``at``: the names of it and of those around it. A node that names
    none stands for what it does name below, else for itself."""
    named = [node.topology.get(level, "") for level in levels]
    is_known = False
    for below in range(at, len(levels)):
        if is_known:
            named[below] = ""
        is_known |= levels[below] in node.topology
    return (*named, "" if is_known else node.name)


def _columns(table: Flags) -> Ints:
    """Of each column a number that it shares with those that are like it."""
    if table.all():
        return np.zeros(table.shape[1], np.int64)
    return np.unique(table, axis=1, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _numbered(labels: list[tuple[str, ...]]) -> list[int]:
    number = {label: i for i, label in enumerate(sorted(set(labels)))}
    return [number[label] for label in labels]


def _or_endless(bound: float | None) -> float:
    return np.inf if bound is None else float(bound)


def _rules(policy: m.Policy, now: float) -> Rules:
    return Rules(
        now=now,
        history=float(policy.history_strength),
        delay=float(policy.preemption_delay_s),
        eviction_cap=_or_endless(policy.eviction_cap),
        spread_weight=SPREADS if policy.placement == "spread" else float(policy.spread_weight),
        grace=float(policy.stale_gang_grace_s),
        user_history=float(policy.user_history_strength),
        half_life=float(policy.usage_half_life_s),
        charge=float(policy.charge_s),
        reserve_after=float(policy.reserve_after_s),
        cooldown=float(policy.cooldown_s),
        fair_delay=float(policy.fair_share_delay_s),
        max_evictions=_or_endless(policy.max_evictions),
        max_moves=policy.max_moves,
        claim_hold=float(policy.claim_hold_s),
        shortest=policy.order != "arrival",
    )


def _ordered(columns: Columns, by_rank: bool) -> Columns:
    """With what a leaf goes by in the place of the predicted run time."""
    if not by_rank:
        return columns
    gpus = np.maximum(1, columns["need"][GPUS] * columns["least"])
    return {**columns, "predicted": columns["rank"] * gpus}


def _add_workloads(
    frame: Frame, columns: Columns, roster: Roster, nodes: list[m.Node], where: Ints
) -> None:
    """All workloads at once, by name: their slots are 0, 1, 2 …"""
    columns = {**columns, "where": where[columns["where"]]}
    phase = columns.pop("phase")
    frame.load(roster.names, columns, list(roster.holders))
    _add_roles(frame, roster, columns["where"])
    seat_all(frame, roster, phase == RUNNING, columns["claims"], nodes)


def _add_roles(frame: Frame, roster: Roster, where: Ints) -> None:
    for slot in compress(count(), map(ROLES, roster.works)):
        wish = frame.work.wish[:, slot]
        roles = shapes_of(roster.works[slot], roster.beside)
        shapes = frame.shapes_of(roles, int(where[slot]), wish[wish >= 0].tolist())
        set_roles(frame.work, slot, roles, shapes)


def _numbers(
    tree: Tree,
    queues: list[m.Queue],
    classes: list[m.GpuClass],
    priorities: list[m.PriorityClass],
    node_sets: list[m.NodeSet],
    levels: tuple[str, ...],
) -> Numbers:
    rates = [c.exchange_rate for c in classes]
    start = tree.kid_start
    return Numbers(
        classes={c.name: i for i, c in enumerate(classes)},
        cheapest_first=sorted(range(len(classes)), key=lambda c: (rates[c], c)),
        priorities={p.name: i for i, p in enumerate(priorities)},
        # Only leaves take workloads.
        leaves={q.name: i for i, q in enumerate(queues, 1) if start[i] == start[i + 1]},
        node_sets={s.name: i for i, s in enumerate(node_sets)},
        levels={level: i for i, level in enumerate(levels)} | {None: ANYWHERE},
    )
