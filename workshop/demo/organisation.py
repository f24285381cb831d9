"""The example organisation: 312 GPUs in four classes, 16 queues, and who submits to them.

Only data. Numbers of GPUs; ``None`` is unlimited. Nominal quotas of siblings sum to their parent's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

H100, A100, MIG, L4 = "h100-80gb", "a100-40gb", "a100-mig-1g.5gb", "l4"


@dataclass(frozen=True, slots=True)
class ClassSpec:
    name: str
    resource_name: str
    product: str
    exchange_rate: Decimal
    price: Decimal


@dataclass(frozen=True, slots=True)
class PoolSpec:
    """``nodes`` machines with ``gpus`` each, dealt over ``racks`` of one block in order."""

    name: str
    gpu_class: str
    block: str
    racks: tuple[str, ...]
    nodes: int
    gpus: int
    cpus: int
    memory_gib: int
    speed: float = 1.0
    """How many times sooner work ends there than it says."""
    down: tuple[int, ...] = ()
    """1-based numbers of the nodes that are not ready."""


@dataclass(frozen=True, slots=True)
class QueueSpec:
    """``quotas``: class -> (nominal, borrowing limit, lending limit, weight)."""

    name: str
    parent: str | None
    quotas: Mapping[str, tuple[int, int | None, int | None, int]]
    sharing: str = ""
    """How what is above nominal is given out below it; empty is as the queue above says."""


CLASSES = (
    ClassSpec(H100, "nvidia.com/gpu", "NVIDIA-H100-80GB-HBM3", Decimal(1), Decimal("2.10")),
    ClassSpec(A100, "nvidia.com/gpu", "NVIDIA-A100-SXM4-40GB", Decimal("0.5"), Decimal("1.20")),
    ClassSpec(MIG, "nvidia.com/mig-1g.5gb", "NVIDIA-A100-MIG", Decimal("0.0714"), Decimal("0.20")),
    ClassSpec(L4, "nvidia.com/gpu", "NVIDIA-L4", Decimal("0.2"), Decimal("0.45")),
)

POOLS = (
    PoolSpec("h100", H100, "b1", ("a1", "a2", "a3", "a4"), 16, 8, 192, 2048, speed=1.3, down=(16,)),
    PoolSpec("a100", A100, "b2", ("b1", "b2", "b3"), 11, 8, 128, 1024),
    PoolSpec("mig", MIG, "b2", ("b4",), 1, 56, 512, 4096),
    PoolSpec("l4", L4, "b3", ("c1", "c2"), 22, 4, 64, 256, down=(22,)),
)


def _quotas(
    h100: tuple[int, ...], a100: tuple[int, ...], mig: tuple[int, ...], l4: tuple[int, ...]
) -> dict[str, tuple[int, int | None, int | None, int]]:
    """Each tuple is (nominal, borrowing limit, weight[, lending limit])."""
    rows = zip((H100, A100, MIG, L4), (h100, a100, mig, l4), strict=True)
    return {name: (q[0], q[1], q[3] if len(q) > 3 else None, q[2]) for name, q in rows}


QUEUES = (
    QueueSpec("research", None, _quotas((64, 32, 2), (48, 24, 2), (24, 12, 1), (20, 20, 1))),
    QueueSpec("language", "research", _quotas((36, 28, 2), (4, 20, 1), (6, 8, 1), (4, 12, 1))),
    QueueSpec("pretraining", "language", _quotas((24, 40, 3), (2, 18, 1), (2, 4, 1), (2, 6, 1))),
    QueueSpec("alignment", "language", _quotas((12, 12, 1), (2, 10, 1), (4, 8, 1), (2, 6, 1))),
    QueueSpec("vision", "research", _quotas((16, 16, 1), (36, 20, 2), (8, 12, 1), (6, 12, 1))),
    QueueSpec("speech", "research", _quotas((8, 8, 1), (4, 8, 1), (6, 8, 1), (4, 8, 1))),
    QueueSpec("robotics", "research", _quotas((4, 4, 1), (4, 4, 1), (4, 8, 1), (6, 6, 1))),
    QueueSpec("platform", None, _quotas((24, 8, 1), (16, 8, 1), (24, 16, 1), (40, 24, 2))),
    QueueSpec("inference", "platform", _quotas((16, 8, 2, 2), (8, 4, 1), (4, 8, 1), (28, 16, 2))),
    QueueSpec("ci", "platform", _quotas((8, 0, 1), (4, 4, 1), (8, 8, 1), (6, 6, 1))),
    QueueSpec("notebooks", "platform", _quotas((0, 4, 1), (4, 4, 1), (12, 16, 1), (6, 6, 1))),
    QueueSpec(
        "products", None, _quotas((32, 24, 1), (24, 24, 1), (8, 12, 1), (28, 20, 1)), "promise"
    ),
    QueueSpec("search", "products", _quotas((12, 12, 1), (8, 8, 1), (2, 4, 1), (10, 8, 1))),
    QueueSpec("recommend", "products", _quotas((12, 8, 1), (12, 24, 2), (2, 4, 1), (8, 8, 1))),
    QueueSpec("translate", "products", _quotas((4, 4, 1), (2, 4, 1), (2, 4, 1), (4, 4, 1))),
    QueueSpec("assistant", "products", _quotas((4, 12, 1), (2, 4, 1), (2, 4, 1), (6, 8, 1))),
)

USERS: Mapping[str, tuple[str, ...]] = {
    "pretraining": ("m.okafor", "researcher", "j.lind", "w.zhao"),
    "alignment": ("s.marchetti", "researcher", "d.okoye"),
    "vision": ("a.novak", "h.lindqvist", "y.tanaka", "r.silva"),
    "speech": ("e.virtanen", "k.mensah"),
    "robotics": ("b.costa", "n.petrov"),
    "inference": ("svc-inference", "t.weber"),
    "ci": ("svc-ci",),
    "notebooks": ("imani.k", "lena.v", "o.haas"),
    "search": ("p.rossi", "c.dubois"),
    "recommend": ("f.yilmaz", "g.moreau", "u.berg"),
    "translate": ("v.horvat",),
    "assistant": ("q.nguyen", "z.ali"),
}
"""The people who submit to each leaf."""

PRIORITY_CLASSES = (
    # name, value, preemptible, min run time in seconds, type, default
    ("inference", 100, False, 0, "inference", False),
    ("interactive", 80, True, 600, "interactive", False),
    ("research-high", 60, True, 7200, "training", False),
    ("research-normal", 50, True, 7200, "training", True),
    ("best-effort", 10, True, 1800, "training", False),
)

WORK: Mapping[str, Mapping[str, float]] = {
    "pretraining": {"pretrain": 6, "finetune": 2, "eval": 1},
    "alignment": {"finetune": 6, "pretrain": 1, "eval": 2},
    "vision": {"finetune": 4, "sweep": 3, "eval": 1},
    "speech": {"finetune": 3, "sweep": 1, "eval": 1},
    "robotics": {"sweep": 2, "finetune": 1, "eval": 1},
    "inference": {"service": 8, "batch-inference": 1},
    "ci": {"ci": 1},
    "notebooks": {"notebook": 1},
    "search": {"finetune": 2, "batch-inference": 2, "service": 1, "eval": 1},
    "recommend": {"finetune": 4, "sweep": 2, "eval": 1},
    "translate": {"finetune": 1, "eval": 1, "service": 1},
    "assistant": {"finetune": 3, "service": 1, "eval": 1},
}
"""Leaf -> kinds of work it submits, weighed by GPU time."""

FALLBACKS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "vision": {A100: (H100,)},
    "recommend": {H100: (A100,), A100: (H100,)},
}
"""Leaf -> class -> further classes that its work may use as well."""

LOAD = 0.8
"""Mean GPUs asked for over capacity: queues form on working days and drain at night."""
