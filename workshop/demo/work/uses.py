"""What the example organisation's work does with the GPUs that it holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from scheduling.models import Workload
from workshop.demo.work import kinds
from workshop.testbed.server.kinds.use import Use, drawn

MEMORY_MIB = {"h100-80gb": 81_559, "a100-40gb": 40_960, "a100-mig-1g.5gb": 4_864, "l4": 23_034}
"""Of one GPU or slice."""


@dataclass(frozen=True, slots=True)
class Habit:
    """Mean SM activity while it runs, the share of time in which anything does, and that of memory taken."""

    mean: float
    busy: float
    memory: float


HABITS = {
    kinds.PRETRAIN.name: Habit(0.84, 1.0, 0.9),
    kinds.FINETUNE.name: Habit(0.68, 0.99, 0.7),
    kinds.SWEEP.name: Habit(0.6, 0.99, 0.4),
    kinds.EVAL.name: Habit(0.45, 0.99, 0.3),
    kinds.NOTEBOOK.name: Habit(0.25, 0.55, 0.1),
    kinds.CI.name: Habit(0.35, 0.98, 0.2),
    kinds.SERVICE.name: Habit(0.38, 0.95, 0.6),
    kinds.BATCH_INFERENCE.name: Habit(0.4, 0.99, 0.25),
}
OTHERS = Habit(0.7, 1.0, 0.5)
STEMS = {
    stem: HABITS[kind.name]
    for kind in (
        kinds.PRETRAIN, kinds.FINETUNE, kinds.SWEEP, kinds.EVAL, kinds.NOTEBOOK, kinds.CI,
        kinds.SERVICE, kinds.BATCH_INFERENCE,
    )
    for stem in kind.names
}  # fmt: skip


def habit_of(name: str) -> Habit:
    """By what the work is called."""
    return next((habit for stem, habit in STEMS.items() if name.startswith(stem)), OTHERS)


def use_of(name: str) -> Use:
    """The same for all of one name, which differs from that of its kind a little."""
    habit = habit_of(name)
    return min(0.97, habit.mean * (0.8 + 0.35 * drawn(name, 7))), habit.busy


def notes_of(name: str) -> Iterator[tuple[str, str]]:
    """Annotations by which the embedded cluster simulates it."""
    mean, busy = use_of(name)
    yield "weir.dev/simulated-use", f"{mean:.3f}:{busy:g}"
    yield "weir.dev/simulated-memory", f"{habit_of(name).memory:g}"


def memory_of(work: Workload, gpu_class: str) -> tuple[float, float]:
    """MiB that it takes of one GPU of the class, and that there are."""
    total = MEMORY_MIB.get(gpu_class, 81_559)
    return habit_of(work.name).memory * total, total
