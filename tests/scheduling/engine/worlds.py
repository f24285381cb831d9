"""Organisations, and worlds in the middle of their work, as dice fall."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random

from scheduling.engine import (
    GpuClass,
    Members,
    Node,
    Phase,
    Policy,
    PriorityClass,
    Queue,
    Quota,
    Snapshot,
    Topology,
    Workload,
    plan,
)
from tests.scheduling.engine.dice import drawn, flag, some
from tests.scheduling.engine.evolve import apply, let_leave, wait

NOW = datetime(2026, 1, 5, 10, tzinfo=UTC)
CLASSES = ("a100", "h100")
PRIORITIES = (
    PriorityClass("low", 10),
    PriorityClass("normal", 50),
    PriorityClass("steady", 50, True, 3600),
    PriorityClass("fixed", 70, False),
)


def _optional(dice: Random, most: int) -> int | None:
    return dice.choice((None, 1000 * dice.randint(0, most)))


def quotas(dice: Random, most: int = 12) -> Quota:
    return Quota(
        nominal=1000 * dice.randint(0, most),
        borrowing_limit=_optional(dice, most),
        lending_limit=_optional(dice, most),
        weight=dice.choice([0.0, 0.5, 1.0, 1.0, 2.0, 3.0]),
    )


def trees(dice: Random, most: int = 7) -> tuple[Queue, ...]:
    """Any tree of up to ``most`` queues; the parent of each stands before it."""
    queues: list[Queue] = []
    for i in range(dice.randint(1, most)):
        parent = dice.choice([None, *(q.name for q in queues)])
        kinds = some(dice, CLASSES)
        queues.append(
            Queue(
                name=f"q{i}",
                parent=parent,
                priority=dice.choice([0, 0, 0, 1]),
                quotas={kind: quotas(dice) for kind in kinds},
                usage={kind: dice.choice([0.0, 0.2, 0.7, 1.0]) for kind in kinds},
                eviction_budget_gpus=dice.choice([None, None, None, 3000]),
            )
        )
    return tuple(queues)


def leaves(queues: tuple[Queue, ...]) -> list[str]:
    parents = {q.parent for q in queues}
    return [q.name for q in queues if q.name not in parents]


def machines(dice: Random) -> tuple[Node, ...]:
    nodes = []
    for i in range(dice.randint(1, 5)):
        nodes.append(
            Node(
                name=f"n{i}",
                gpu_class=dice.choice(CLASSES),
                gpus=1000 * dice.choice([1, 2, 4, 8, 8]),
                cpus=dice.choice([None, None, 8000]),
                topology={"block": "b", "rack": dice.choice(["r1", "r2"])},
                ready=dice.choice([True, True, True, False]),
                foreign_gpus=dice.choice([0, 0, 1000]),
            )
        )
    return tuple(nodes)


@drawn
def workloads(dice: Random, names: str, queues: list[str], most: int = 10) -> list[Workload]:
    made = []
    for i in range(dice.randint(0, most)):
        least = dice.choice([1, 1, 1, 2, 3])
        extra = dice.choice([0, 0, 0, 1, 4])
        made.append(
            Workload(
                name=f"{names}{i}",
                queue=dice.choice(queues),
                priority_class=dice.choice(PRIORITIES).name,
                submitted=NOW - timedelta(seconds=dice.randint(0, 5000)),
                gpus=dice.choice([1000, 1000, 2000, 4000, 500, 250]),
                cpus=dice.choice([0, 0, 1000]),
                user=dice.choice(["ann", "bob"]),
                members=Members(least, least + extra),
                elastic=extra > 0,
                gpu_classes=dice.choice([("a100",), ("h100",)]),
                topology=Topology(required=dice.choice([None, None, None, "rack"])),
            )
        )
    return made


@drawn
def organisations(dice: Random) -> Snapshot:
    """A snapshot in which all work is pending."""
    queues = trees(dice)
    return Snapshot(
        now=NOW,
        gpu_classes=tuple(
            GpuClass(name, rate) for name, rate in zip(CLASSES, (0.5, 1.0), strict=True)
        ),
        nodes=machines(dice),
        queues=queues,
        priority_classes=PRIORITIES,
        workloads=tuple(workloads.by(dice, "w", leaves(queues))),
        policy=Policy(
            history_strength=dice.choice([0.0, 0.5, 1.0]),
            preemption_delay_s=dice.choice([0, 0, 600]),
            eviction_cap=dice.choice([None, None, 1.5]),
            placement=dice.choice(["pack", "pack", "spread"]),
            spread_weight=dice.choice([0.0, 0.0, 0.3]),
            max_moves=dice.choice([0, 3]),
        ),
    )


@drawn
def contended(dice: Random) -> Snapshot:
    """Some queues came first and took all there is; then their owners came."""
    count = dice.randint(2, 4)
    top = [Queue(f"d{i}", quotas={"h100": Quota(8000)}) for i in range(2)]
    queues = [
        Queue(
            f"q{i}",
            parent=dice.choice([None, "d0", "d1"]),
            quotas={"h100": Quota(1000 * dice.randint(1, 6))},
            eviction_budget_gpus=dice.choice([None, None, 4000]),
        )
        for i in range(count)
    ]
    size = dice.randint(1, 3)
    start = Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(
            Node(f"n{i}", "h100", 8000, topology={"rack": dice.choice(["r1", "r2"])})
            for i in range(size)
        ),
        queues=(*top, *queues),
        priority_classes=PRIORITIES,
        policy=Policy(
            preemption_delay_s=dice.choice([0, 0, 0, 600]),
            max_moves=dice.choice([0, 3]),
            eviction_cap=dice.choice([None, None, 1.5]),
        ),
    )
    early = dice.choices([q.name for q in queues], k=dice.randint(1, 2))
    for wave, names in (("w", early), ("x", [q.name for q in queues])):
        more = [_for_h100(w, i) for i, w in enumerate(workloads.by(dice, wave, names, 12))]
        start = replace(start, workloads=(*start.workloads, *more))
        if wave == "w":
            start = wait(apply(start, plan(start)), dice.choice([60, 1000, 9000]))
    return start


@drawn
def lent(dice: Random) -> Snapshot:
    """Full nodes, most of them lent out, and work of the owners: somebody is nearly always taken from."""
    count = dice.randint(2, 4)
    nodes = [Node(f"n{i}", "h100", 8000) for i in range(dice.randint(1, 3))]
    queues = [
        Queue(
            f"q{i}",
            parent=dice.choice([None, None, "d0", "d1"]),
            quotas={"h100": Quota(8000 * len(nodes) // count)},
            eviction_budget_gpus=dice.choice([None, None, None, 4000]),
            min_run_time_s=dice.choice([None, None, 0, 3600]),
        )
        for i in range(count)
    ]
    early = dice.choices([q.name for q in queues], k=dice.randint(1, 2))
    running: list[Workload] = []
    for node in nodes:
        free = 8
        while free:
            running.append(_lent_to(dice, len(running), dice.choice(early), node, free))
            free -= running[-1].gpus // 1000 * running[-1].placement[node.name]
    late = [
        replace(_for_h100(w, i), topology=Topology(), cpus=0)
        for i, w in enumerate(workloads.by(dice, "x", [q.name for q in queues], 6))
    ]
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(nodes),
        queues=(Queue("d0", quotas={"h100": Quota(8000)}), Queue("d1"), *queues),
        priority_classes=PRIORITIES,
        workloads=(*running, *late),
        policy=Policy(
            eviction_cap=dice.choice([None, None, 1.5]), fair_share_delay_s=dice.choice([0, 0, 600])
        ),
    )


def _lent_to(dice: Random, i: int, queue: str, node: Node, free: int) -> Workload:
    """A gang of members of one or two GPUs on one node, elastic or not."""
    gpus = dice.choice([1, 1, 2]) if free > 1 else 1
    members = dice.randint(1, free // gpus)
    least = dice.randint(1, members)
    elastic = flag(dice)
    return Workload(
        name=f"w{i}",
        queue=queue,
        priority_class=dice.choice(["low", "normal", "normal", "steady"]),
        submitted=NOW - timedelta(hours=9),
        started=NOW - timedelta(seconds=dice.randint(0, 9000)),
        gpus=1000 * gpus,
        members=Members(least if elastic else members, members),
        elastic=elastic,
        phase=Phase.RUNNING,
        gpu_class="h100",
        gpu_classes=("h100",),
        placement={node.name: members},
    )


@drawn
def scattered(dice: Random) -> Snapshot:
    """Nodes that are partly full, and gangs for which the free GPUs lie in the wrong places."""
    count = dice.randint(2, 4)
    nodes = [
        Node(f"n{i}", "h100", 8000, topology={"rack": dice.choice(["r1", "r2"])})
        for i in range(count)
    ]
    running: list[Workload] = []
    for node in nodes:
        free, shared = 8, 0
        while free and dice.randint(0, 3):
            gpus = min(1000 * free, dice.choice([300, 600, 1000, 2000, 3000]))
            work = _lent_to(dice, len(running), dice.choice(["a", "b"]), node, 1)
            devices = {node.name: (shared,)} if gpus < 1000 else {}
            running.append(replace(work, gpus=gpus, devices=devices))
            free -= max(1, gpus // 1000)
            shared += gpus < 1000
    late = [
        replace(
            _for_h100(work, i),
            gpus=dice.choice([500, 1000, 2000, 4000, 6000, 8000]),
            topology=Topology(required=dice.choice([None, None, "rack", "node"])),
            cpus=0,
        )
        for i, work in enumerate(workloads.by(dice, "x", ["a", "b"], 3))
    ]
    return Snapshot(
        now=NOW,
        gpu_classes=(GpuClass("h100"),),
        nodes=tuple(nodes),
        queues=tuple(
            Queue(
                name,
                quotas={"h100": Quota(4000 * count)},
                eviction_budget_gpus=dice.choice([None, None, 3000]),
            )
            for name in ("a", "b")
        ),
        priority_classes=PRIORITIES,
        workloads=(*running, *late),
        policy=Policy(max_moves=3, eviction_cap=dice.choice([None, None, 1.0])),
    )


def _for_h100(work: Workload, i: int) -> Workload:
    """Mostly work that can be preempted."""
    kind = "fixed" if work.priority_class == "fixed" and i % 3 == 0 else "normal"
    return replace(
        work,
        gpu_classes=("h100",),
        priority_class=kind if work.priority_class == "fixed" else work.priority_class,
    )


@drawn
def choosy(dice: Random) -> Snapshot:
    """Nodes of two classes, and work of which most accepts both."""
    nodes = [
        Node(f"{kind}-{i}", kind, 1000 * dice.randint(1, 5))
        for kind in CLASSES
        for i in range(dice.randint(1, 2))
    ]
    queues = [
        Queue(
            f"q{i}",
            parent=dice.choice([None, None, "d0", "d1"]),
            quotas={kind: Quota(1000 * dice.randint(0, 3)) for kind in CLASSES},
        )
        for i in range(dice.randint(2, 4))
    ]
    names = [q.name for q in queues]
    running: list[Workload] = []
    for node in nodes:
        free = node.gpus // 1000
        while free and dice.randint(0, 4):
            work = _lent_to(dice, len(running), dice.choice(names), node, free)
            kinds = dice.choice([(node.gpu_class,), CLASSES, CLASSES[::-1]])
            running.append(replace(work, gpu_class=node.gpu_class, gpu_classes=kinds))
            free -= work.gpus // 1000 * work.placement[node.name]
    late = [
        replace(
            _for_h100(work, i),
            gpu_classes=dice.choice([CLASSES, CLASSES[::-1], ("h100",)]),
            topology=Topology(),
            cpus=0,
        )
        for i, work in enumerate(workloads.by(dice, "x", names, 6))
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
        policy=Policy(max_moves=dice.choice([0, 0, 3])),
    )


@drawn
def worlds(dice: Random) -> Snapshot:
    """Snapshots in the middle of their work."""
    return dice.choice((changed, contended, lent, scattered, choosy)).by(dice)


@drawn
def changed(dice: Random) -> Snapshot:
    """Some work runs, by earlier plans, then more came and quotas were changed."""
    start = organisations.by(dice)
    for _ in range(dice.randint(1, 2)):
        start = let_leave(apply(start, plan(start)))
    start = wait(start, dice.choice([0, 100, 4000]))
    queues = tuple(
        replace(q, quotas={kind: quotas(dice) for kind in q.quotas}) if flag(dice) else q
        for q in start.queues
    )
    more = workloads.by(dice, "x", leaves(start.queues), 6)
    late = [replace(w, submitted=start.now - timedelta(seconds=i)) for i, w in enumerate(more)]
    return replace(start, queues=queues, workloads=(*start.workloads, *late))
