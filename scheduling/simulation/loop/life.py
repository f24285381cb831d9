"""The tables of a simulated life: jobs, clock and ledger. Seconds count from the simulation's origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numba.core.extending import overload

from scheduling.engine.compile import mode
from scheduling.engine.compile.structs import Floats, Ints, declare

NEVER = 1 << 40


@declare
class Jobs(NamedTuple):
    """Jobs in order of submission: what only the simulation knows of them, and how they fare.

    Work is counted in member-seconds: half the members take twice as long.
    """

    submit: Ints
    duration: Ints  # useful run time with all members
    checkpoint: Ints  # useful seconds from one to the next, 0: none
    restart: Ints  # seconds, at each start but the first
    left: Ints  # member-seconds
    slot: Ints  # in the frame, -1 before arrival and after the end
    first: Ints  # first start, -1 before
    since: Ints  # start of the run
    warm: Ints  # when the run's useful time begins
    saves: Ints  # its next checkpoint
    free_at: Ints  # when the run ends, or its GPUs are free after an eviction
    end: Ints  # -1 before
    evictions: Ints
    gpu_s: Ints  # milli-GPU-seconds of runs that ended


@declare
class Clock(NamedTuple):
    """Where the simulation stands. ``plan_at``: the next plan; ``ends`` heap entries are in ``Life.ends``."""

    origin: float
    cycle: int
    leave: int
    patient: bool  # a plan is needless while nobody waits
    now: int
    arrived: int
    waiting: int
    ends: int
    planned: int
    plan_at: int
    at_once: int  # plans in this second
    plans: int


@declare
class Entries(NamedTuple):
    """The ledger: acts in order, ``used[0]`` of them. ``gpus`` are milli-GPU, ``lost`` GPU-seconds."""

    at: Ints
    job: Ints
    action: Ints
    reason: Ints
    gpus: Ints
    lost: Floats
    used: Ints


def new_jobs(
    submit_s: Ints, duration_s: Ints, checkpoint_s: Ints, restart_s: Ints, most: Ints
) -> Jobs:
    """Jobs that have not arrived; ``most`` members do the work in ``duration_s``."""
    count = submit_s.size
    slot, first, since, warm, saves, free_at, end = (np.full(count, -1, np.int64) for _ in range(7))
    evictions, usage = np.zeros(count, np.int64), np.zeros(count, np.int64)
    return Jobs(
        submit_s, duration_s, checkpoint_s, restart_s, duration_s * most,
        slot, first, since, warm, saves, free_at, end, evictions, usage,
    )  # fmt: skip


def empty_entries(size: int) -> Entries:
    at, job, action, reason, gpus = (np.zeros(size, np.int64) for _ in range(5))
    return Entries(at, job, action, reason, gpus, np.zeros(size), np.zeros(1, np.int64))


def copy_entries(page: Entries) -> Entries:
    """What is written, apart from the tables that go on being written."""
    used = int(page.used[0])
    return Entries(
        page.at[:used].copy(), page.job[:used].copy(), page.action[:used].copy(),
        page.reason[:used].copy(), page.gpus[:used].copy(), page.lost[:used].copy(),
        page.used.copy(),
    )  # fmt: skip


def joined(pages: Sequence[Entries]) -> Entries:
    """The pages as one."""
    at, job, action, reason, gpus, lost, used = (
        np.concatenate(column) for column in zip(*pages, strict=True)
    )
    return Entries(at, job, action, reason, gpus, lost, used.sum(keepdims=True))


def copy_row(source: Any, i: int, target: Any, k: int) -> None:
    """Put entry ``i`` of every table of ``source`` into entry ``k`` of the same tables of ``target``.

    Entries are the last axis. Both are structs of one kind; tables of ``target`` may have more rows.
    """
    if not mode.PLAIN:
        raise NotImplementedError("copy_row runs in compiled code only")
    for name, table in vars(source).items():
        if table.ndim > 1:
            getattr(target, name)[: len(table), k] = table[:, i]
        else:
            getattr(target, name)[k] = table[i]


@overload(copy_row, strict=False)
def _copy_row(source: Any, i: Any, target: Any, k: Any) -> Any:
    lines = ["def copy(source, i, target, k):"]
    for name, kind in source.fields.items():
        if kind.ndim == 1:
            lines.append(f"    target.{name}[k] = source.{name}[i]")
        else:
            lines.append(f"    for r in range(source.{name}.shape[0]):")
            lines.append(f"        target.{name}[r, k] = source.{name}[r, i]")
    scope: dict[str, Any] = {}
    exec("\n".join(lines), scope)  # noqa: S102 - names are our own fields
    return scope["copy"]
