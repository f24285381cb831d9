"""Hypothesis strategies: organisations, and worlds in the middle of their work."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from scheduling.engine import (
    GpuClass,
    Members,
    Node,
    NodeSet,
    Phase,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Role,
    Snapshot,
    Topology,
    Workload,
    plan,
)
from scheduling.engine.roles import counted
from tests.scheduling.engine.evolve import apply, let_leave, wait

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
CLASSES = ("a100", "h100")
PRIORITIES = (
    PriorityClass("low", 10),
    PriorityClass("normal", 50),
    PriorityClass("steady", 50, True, 3600),
    PriorityClass("fixed", 70, False),
)


@st.composite
def quotas(draw: st.DrawFn, most: int = 12) -> Quota:
    optional = st.one_of(st.none(), st.integers(0, most).map(lambda n: 1000 * n))
    return Quota(
        nominal=1000 * draw(st.integers(0, most)),
        borrowing_limit=draw(optional),
        lending_limit=draw(optional),
        weight=draw(st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0, 3.0])),
    )


@st.composite
def trees(draw: st.DrawFn, most: int = 7) -> tuple[Queue, ...]:
    """Any tree of up to ``most`` queues; the parent of each stands before it."""
    queues: list[Queue] = []
    for i in range(draw(st.integers(1, most))):
        parent = draw(st.sampled_from([None, *(q.name for q in queues)]))
        kinds = draw(st.sets(st.sampled_from(CLASSES)))
        queues.append(
            Queue(
                name=f"q{i}",
                parent=parent,
                priority=draw(st.sampled_from([0, 0, 0, 1])),
                quotas={kind: draw(quotas()) for kind in sorted(kinds)},
                usage={kind: draw(st.sampled_from([0.0, 0.2, 0.7, 1.0])) for kind in sorted(kinds)},
                eviction_budget_gpus=draw(st.sampled_from([None, None, None, 3000])),
            )
        )
    return tuple(queues)


def leaves(queues: tuple[Queue, ...]) -> list[str]:
    parents = {q.parent for q in queues}
    return [q.name for q in queues if q.name not in parents]


@st.composite
def machines(draw: st.DrawFn) -> tuple[Node, ...]:
    nodes = []
    for i in range(draw(st.integers(1, 5))):
        nodes.append(
            Node(
                name=f"n{i}",
                gpu_class=draw(st.sampled_from(CLASSES)),
                gpus=1000 * draw(st.sampled_from([1, 2, 4, 8, 8])),
                cpus=draw(st.sampled_from([None, None, 8000])),
                topology={"block": "b", "rack": draw(st.sampled_from(["r1", "r2"]))},
                ready=draw(st.sampled_from([True, True, True, False])),
                foreign_gpus=draw(st.sampled_from([0, 0, 1000])),
            )
        )
    return tuple(nodes)


@st.composite
def workloads(draw: st.DrawFn, names: str, queues: list[str], most: int = 10) -> list[Workload]:
    made = []
    for i in range(draw(st.integers(0, most))):
        least = draw(st.sampled_from([1, 1, 1, 2, 3]))
        extra = draw(st.sampled_from([0, 0, 0, 1, 4]))
        made.append(
            Workload(
                name=f"{names}{i}",
                queue=draw(st.sampled_from(queues)),
                priority_class=draw(st.sampled_from(PRIORITIES)).name,
                submitted=NOW - timedelta(seconds=draw(st.integers(0, 5000))),
                gpus=draw(st.sampled_from([1000, 1000, 2000, 4000, 500, 250])),
                cpus=draw(st.sampled_from([0, 0, 1000])),
                user=draw(st.sampled_from(["ann", "bob"])),
                members=Members(least, least + extra),
                elastic=extra > 0,
                gpu_classes=draw(st.sampled_from([("a100",), ("h100",)])),
                topology=Topology(required=draw(st.sampled_from([None, None, None, "rack"]))),
            )
        )
    return made


@st.composite
def organisations(draw: st.DrawFn) -> Snapshot:
    """A snapshot in which all work is pending."""
    queues = draw(trees())
    return Snapshot(
        now=NOW,
        gpu_classes=tuple(
            GpuClass(name, rate) for name, rate in zip(CLASSES, (0.5, 1.0), strict=True)
        ),
        nodes=draw(machines()),
        queues=queues,
        priority_classes=PRIORITIES,
        workloads=tuple(draw(workloads("w", leaves(queues)))),
        policy=Policy(
            history_strength=draw(st.sampled_from([0.0, 0.5, 1.0])),
            preemption_delay_s=draw(st.sampled_from([0, 0, 600])),
            eviction_cap=draw(st.sampled_from([None, None, 1.5])),
            placement=draw(st.sampled_from(["pack", "pack", "spread"])),
            spread_weight=draw(st.sampled_from([0.0, 0.0, 0.3])),
            max_moves=draw(st.sampled_from([0, 3])),
        ),
    )


@st.composite
def contended(draw: st.DrawFn) -> Snapshot:
    """Some queues came first and took all there is; then their owners came."""
    count = draw(st.integers(2, 4))
    top = [Queue(f"d{i}", quotas={"h100": Quota(8000)}) for i in range(2)]
    queues = [
        Queue(
            f"q{i}",
            parent=draw(st.sampled_from([None, "d0", "d1"])),
            quotas={"h100": Quota(1000 * draw(st.integers(1, 6)))},
            eviction_budget_gpus=draw(st.sampled_from([None, None, 4000])),
        )
        for i in range(count)
    ]
    size = draw(st.integers(1, 3))
    start = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(
            Node(f"n{i}", "h100", 8000, topology={"rack": draw(st.sampled_from(["r1", "r2"]))})
            for i in range(size)
        ),
        queues=(*top, *queues),
        priority_classes=PRIORITIES,
        policy=Policy(
            preemption_delay_s=draw(st.sampled_from([0, 0, 0, 600])),
            max_moves=draw(st.sampled_from([0, 3])),
            eviction_cap=draw(st.sampled_from([None, None, 1.5])),
        ),
    )
    early = draw(st.lists(st.sampled_from([q.name for q in queues]), min_size=1, max_size=2))
    for wave, names in (("w", early), ("x", [q.name for q in queues])):
        more = [_for_h100(w, i) for i, w in enumerate(draw(workloads(wave, names, 12)))]
        start = replace(start, workloads=(*start.workloads, *more))
        if wave == "w":
            start = wait(apply(start, plan(start)), draw(st.sampled_from([60, 1000, 9000])))
    return start


@st.composite
def lent(draw: st.DrawFn) -> Snapshot:
    """Full nodes, most of them lent out, and work of the owners: somebody is nearly always taken from."""
    count = draw(st.integers(2, 4))
    nodes = [Node(f"n{i}", "h100", 8000) for i in range(draw(st.integers(1, 3)))]
    queues = [
        Queue(
            f"q{i}",
            parent=draw(st.sampled_from([None, None, "d0", "d1"])),
            quotas={"h100": Quota(8000 * len(nodes) // count)},
            eviction_budget_gpus=draw(st.sampled_from([None, None, None, 4000])),
            min_run_time_s=draw(st.sampled_from([None, None, 0, 3600])),
        )
        for i in range(count)
    ]
    early = draw(st.lists(st.sampled_from([q.name for q in queues]), min_size=1, max_size=2))
    running: list[Workload] = []
    for node in nodes:
        free = 8
        while free:
            running.append(_lent_to(draw, len(running), draw(st.sampled_from(early)), node, free))
            free -= running[-1].gpus // 1000 * running[-1].placement[node.name]
    late = [
        replace(_for_h100(w, i), topology=Topology(), cpus=0)
        for i, w in enumerate(draw(workloads("x", [q.name for q in queues], 6)))
    ]
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(nodes),
        queues=(Queue("d0", quotas={"h100": Quota(8000)}), Queue("d1"), *queues),
        priority_classes=PRIORITIES,
        workloads=(*running, *late),
        policy=Policy(
            eviction_cap=draw(st.sampled_from([None, None, 1.5])),
            fair_share_delay_s=draw(st.sampled_from([0, 0, 600])),
        ),
    )


def _lent_to(draw: st.DrawFn, i: int, queue: str, node: Node, free: int) -> Workload:
    """A gang of members of one or two GPUs on one node, elastic or not."""
    gpus = draw(st.sampled_from([1, 1, 2])) if free > 1 else 1
    members = draw(st.integers(1, free // gpus))
    least = draw(st.integers(1, members))
    elastic = draw(st.booleans())
    return Workload(
        name=f"w{i}",
        queue=queue,
        priority_class=draw(st.sampled_from(["low", "normal", "normal", "steady"])),
        submitted=NOW - timedelta(hours=9),
        started=NOW - timedelta(seconds=draw(st.integers(0, 9000))),
        gpus=1000 * gpus,
        members=Members(least if elastic else members, members),
        elastic=elastic,
        phase=Phase.RUNNING,
        gpu_class="h100",
        gpu_classes=("h100",),
        placement={node.name: members},
    )


@st.composite
def scattered(draw: st.DrawFn) -> Snapshot:
    """Nodes that are partly full, and gangs for which the free GPUs lie in the wrong places."""
    count = draw(st.integers(2, 4))
    nodes = [
        Node(f"n{i}", "h100", 8000, topology={"rack": draw(st.sampled_from(["r1", "r2"]))})
        for i in range(count)
    ]
    running: list[Workload] = []
    for node in nodes:
        free, shared = 8, 0
        while free and draw(st.integers(0, 3)):
            gpus = min(1000 * free, draw(st.sampled_from([300, 600, 1000, 2000, 3000])))
            work = _lent_to(draw, len(running), draw(st.sampled_from(["a", "b"])), node, 1)
            devices = {node.name: (shared,)} if gpus < 1000 else {}
            running.append(replace(work, gpus=gpus, devices=devices))
            free -= max(1, gpus // 1000)
            shared += gpus < 1000
    late = [
        replace(
            _for_h100(work, i),
            gpus=draw(st.sampled_from([500, 1000, 2000, 4000, 6000, 8000])),
            topology=Topology(required=draw(st.sampled_from([None, None, "rack", "node"]))),
            cpus=0,
        )
        for i, work in enumerate(draw(workloads("x", ["a", "b"], 3)))
    ]
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(nodes),
        queues=tuple(
            Queue(
                name,
                quotas={"h100": Quota(4000 * count)},
                eviction_budget_gpus=draw(st.sampled_from([None, None, 3000])),
            )
            for name in ("a", "b")
        ),
        priority_classes=PRIORITIES,
        workloads=(*running, *late),
        policy=Policy(max_moves=3, eviction_cap=draw(st.sampled_from([None, None, 1.0]))),
    )


def _for_h100(work: Workload, i: int) -> Workload:
    """Mostly work that can be preempted."""
    kind = "fixed" if work.priority_class == "fixed" and i % 3 == 0 else "normal"
    return replace(
        work,
        gpu_classes=("h100",),
        priority_class=kind if work.priority_class == "fixed" else work.priority_class,
    )


@st.composite
def choosy(draw: st.DrawFn) -> Snapshot:
    """Nodes of two classes, and work of which most accepts both."""
    nodes = [
        Node(f"{kind}-{i}", kind, 1000 * draw(st.integers(1, 5)))
        for kind in CLASSES
        for i in range(draw(st.integers(1, 2)))
    ]
    queues = [
        Queue(
            f"q{i}",
            parent=draw(st.sampled_from([None, None, "d0", "d1"])),
            quotas={kind: Quota(1000 * draw(st.integers(0, 3))) for kind in CLASSES},
        )
        for i in range(draw(st.integers(2, 4)))
    ]
    names = [q.name for q in queues]
    running: list[Workload] = []
    for node in nodes:
        free = node.gpus // 1000
        while free and draw(st.integers(0, 4)):
            work = _lent_to(draw, len(running), draw(st.sampled_from(names)), node, free)
            kinds = draw(st.sampled_from([(node.gpu_class,), CLASSES, CLASSES[::-1]]))
            running.append(replace(work, gpu_class=node.gpu_class, gpu_classes=kinds))
            free -= work.gpus // 1000 * work.placement[node.name]
    late = [
        replace(
            _for_h100(work, i),
            gpu_classes=draw(st.sampled_from([CLASSES, CLASSES[::-1], ("h100",)])),
            topology=Topology(),
            cpus=0,
        )
        for i, work in enumerate(draw(workloads("x", names, 6)))
    ]
    return Snapshot(
        now=NOW,
        gpu_classes=tuple(GpuClass(kind) for kind in CLASSES),
        nodes=tuple(nodes),
        queues=(
            Queue("d0", quotas={"h100": Quota(2000), "a100": Quota(3000)}),
            Queue("d1"),
            *queues,
        ),
        priority_classes=PRIORITIES,
        workloads=(*running, *late),
        policy=Policy(max_moves=draw(st.sampled_from([0, 0, 3]))),
    )


def worlds() -> st.SearchStrategy[Snapshot]:
    """Snapshots in the middle of their work."""
    return st.one_of(changed(), contended(), lent(), scattered(), choosy())


@st.composite
def changed(draw: st.DrawFn) -> Snapshot:
    """Some work runs, by earlier plans, then more came and quotas were changed."""
    start = draw(organisations())
    for _ in range(draw(st.integers(1, 2))):
        start = let_leave(apply(start, plan(start)))
    start = wait(start, draw(st.sampled_from([0, 100, 4000])))
    queues = tuple(
        replace(q, quotas={kind: draw(quotas()) for kind in q.quotas}) if draw(st.booleans()) else q
        for q in start.queues
    )
    more = draw(workloads("x", leaves(start.queues), 6))
    late = [replace(w, submitted=start.now - timedelta(seconds=i)) for i, w in enumerate(more)]
    return replace(start, queues=queues, workloads=(*start.workloads, *late))


@st.composite
def bounded(draw: st.DrawFn) -> Snapshot:
    """A world in which some may use some nodes only, and a node may be for those alone that name it."""
    world = draw(worlds())
    names = [node.name for node in world.nodes]
    sets = tuple(
        NodeSet(f"s{i}", frozenset(draw(st.sets(st.sampled_from(names))))) for i in range(3)
    )
    of_some = st.sampled_from([None, *(s.name for s in sets)])
    kept = draw(st.sampled_from([None, None, *names]))
    return replace(
        world,
        nodes=tuple(replace(node, dedicated=node.name == kept) for node in world.nodes),
        node_sets=sets,
        workloads=tuple(
            replace(work, node_set=draw(of_some) if work.phase is Phase.PENDING else None)
            for work in world.workloads
        ),
    )


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """A world whose nodes have few of what some of those who wait take beside GPUs, and pods outside the
    queues hold some of it."""
    world = draw(worlds())
    few, one = st.sampled_from([0, 1, 2, 4]), st.sampled_from([0, 0, 1])
    by_name = {
        node.name: ({"card": draw(few), "port": 1}, {"card": draw(one), "port": draw(one)})
        for node in world.nodes
    }
    takes = st.sampled_from([{}, {"card": 1}, {"card": 2}, {"port": 1}, {"card": 1, "port": 1}])
    return replace(
        world,
        nodes=tuple(
            replace(
                node,
                beside=by_name[node.name][0],
                foreign_beside={
                    what: min(held, by_name[node.name][0][what])
                    for what, held in by_name[node.name][1].items()
                },
            )
            for node in world.nodes
        ),
        workloads=tuple(
            replace(work, beside=draw(takes) if work.phase is Phase.PENDING else {})
            for work in world.workloads
        ),
    )


def in_parts(work: Workload) -> Workload:
    """``work`` with roles counted in parts."""
    part, members, placement, leaving = counted(work.roles)
    return replace(
        work, gpus=part, cpus=0, memory_mib=0, beside={}, members=members, placement=placement,
        leaving_members=leaving,
    )  # fmt: skip


ROLES = ((1, 8), (1, 2), (2, 4), (1, 4), (2, 3), (1, 6))
"""Pairs of sizes, in GPUs: those that divide each other and those that do not."""


@st.composite
def of_roles(draw: st.DrawFn) -> Snapshot:
    """A world in the middle of its work in which some gangs have unlike members."""
    start = draw(organisations())
    start = replace(start, workloads=tuple(draw(_unlike(work)) for work in start.workloads))
    start = wait(let_leave(apply(start, plan(start))), draw(st.sampled_from([0, 100, 4000])))
    more = [draw(_unlike(work)) for work in draw(workloads("x", leaves(start.queues), 6))]
    late = [replace(w, submitted=start.now - timedelta(seconds=i)) for i, w in enumerate(more)]
    return replace(start, workloads=(*start.workloads, *late))


@st.composite
def _unlike(draw: st.DrawFn, work: Workload) -> Workload:
    if draw(st.booleans()):
        return work
    small, large = draw(st.sampled_from(ROLES))
    cpus = draw(st.sampled_from([0, 0, 1000]))
    head = Role("head", draw(st.sampled_from([1, 1, 2])), small * 1000, cpus)
    rest = Role("rest", draw(st.sampled_from([1, 1, 2])), large * 1000)
    extra = draw(st.sampled_from([(0, 0), (0, 0), (1, 0), (0, 1), (0, 3)]))
    head, rest = replace(head, extra=extra[0]), replace(rest, extra=extra[1])
    return in_parts(replace(work, elastic=any(extra), roles=(head, rest)))
