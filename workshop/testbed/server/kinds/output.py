"""What the container of a simulated pod has written: a log of its kind of work, worked out when it is read.

Nothing is kept: the same pod at the same moment always has the same log, and its end is made from the
last lines backwards, so that a week of training costs as much as a minute.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from .clock import parse_stamp
from .resources import Json

Line = tuple[float, str]
"""Epoch second and text."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work: what it says when it starts, at each step, and when it is done."""

    names: tuple[str, ...]
    """How names of such work begin."""
    every_s: float
    opening: tuple[str, ...]
    step: Callable[[int, float], str]
    """Of the number of a step and a fraction that is the pod's own."""
    done: str
    fault: tuple[str, ...]


def _training(at: int, dice: float) -> str:
    loss = 1.6 + 7.0 / (1 + at / 40) ** 0.5 + 0.05 * dice
    rate, speed = 3e-4 / (1 + at / 500), 11_800 + dice * 900
    return f"step {at * 20} | loss {loss:.3f} | lr {rate:.2e} | {speed:.0f} tokens/s"


def _evaluating(at: int, dice: float) -> str:
    return f"batch {at} | accuracy {0.61 + 0.04 * dice:.3f} | {38 + dice * 6:.1f} samples/s"


def _serving(at: int, dice: float) -> str:
    p50, p99 = 84 + dice * 20, 310 + dice * 160
    return (
        f"{412 + int(dice * 90)} requests in the last minute | P50 {p50:.0f} ms | P99 {p99:.0f} ms"
    )


def _testing(at: int, dice: float) -> str:
    return f"tests/gpu/test_kernels_{at % 17:02d}.py::test_case_{at} PASSED [{0.2 + dice:.2f} s]"


def _labelling(at: int, dice: float) -> str:
    return f"shard {at:05d} written | {2048} rows | {610 + dice * 80:.0f} rows/s"


def _working(at: int, dice: float) -> str:
    return f"[I] kernel idle check {at}: last cell took {dice * 40:.1f} s"


_OUT_OF_MEMORY = (
    "Traceback (most recent call last):",
    '  File "/workspace/train.py", line 214, in <module>',
    "    main()",
    '  File "/workspace/train.py", line 171, in main',
    "    loss = model(batch.tokens, labels=batch.labels).loss",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.25 GiB. GPU 0 has a total capacity of"
    " 39.39 GiB of which 1.12 GiB is free.",
)
_DATA = (
    "Traceback (most recent call last):",
    '  File "/workspace/run.py", line 88, in <module>',
    "    rows = load(shard)",
    "FileNotFoundError: [Errno 2] No such file or directory: '/data/shards/00412.parquet'",
)
_ASSERTION = (
    "tests/gpu/test_kernels_03.py::test_attention_backward FAILED",
    "E   AssertionError: Tensor-likes are not close! Mismatched elements: 3 / 4096 (0.1%)",
    "1 failed, 214 passed",
)
_LOAD = ("loading the model …", "distributed: backend nccl, rendezvous done")

TRAINING = Kind(
    (), 12.0, _LOAD, _training, "training done; the checkpoint is written", _OUT_OF_MEMORY
)
KINDS = (
    Kind(
        ("eval", "bench", "mmlu", "score", "export"), 5.0, ("loading the checkpoint …",),
        _evaluating, "results are written to results.json", _DATA,
    ),
    Kind(("serve",), 60.0, ("server listens on :8000",), _serving, "shut down", _OUT_OF_MEMORY),
    Kind(("ci-",), 3.0, ("collected 215 items",), _testing, "215 passed", _ASSERTION),
    Kind(
        ("embed", "label", "caption"), 20.0, ("reading the manifest of shards …",),
        _labelling, "all shards are written", _DATA,
    ),
    Kind(("notebook",), 300.0, ("[I] Jupyter Server is running",), _working, "[I] Shut down", _DATA),
)  # fmt: skip


def lines(pod: Json, container: str, now: float, most: int) -> list[Line]:
    """The last ``most`` lines of ``container`` by epoch second ``now``; none before it has started."""
    span = _span(pod, container, now)
    if span is None:
        return []
    began, until, code = span
    return list(islice(_backwards(pod, container, began, until, code), most))[::-1]


def _span(pod: Json, container: str, now: float) -> tuple[float, float, int | None] | None:
    """When it began, until when it wrote, and its exit code once it has ended."""
    for status in pod.get("status", {}).get("containerStatuses") or ():
        if status["name"] != container:
            continue
        state = status["state"]
        if ended := state.get("terminated"):
            began, until = parse_stamp(ended["startedAt"]), parse_stamp(ended["finishedAt"])
            return began, until, int(ended["exitCode"])
        if running := state.get("running"):
            return parse_stamp(running["startedAt"]), now, None
    return None


def _backwards(
    pod: Json, container: str, began: float, until: float, code: int | None
) -> Iterator[Line]:
    """The newest line first."""
    kind, who = _kind(pod), pod["metadata"]["uid"] + container
    if code == 0:
        yield until, kind.done
    elif code is not None:
        said = (
            (*kind.fault, f"exit code {code}")
            if code < 128
            else (f"killed by signal {code - 128}",)
        )
        yield from ((until, text) for text in reversed(said))
    for at in range(int((until - began) // kind.every_s), 0, -1):
        yield began + at * kind.every_s, kind.step(at, _dice(who, at))
    yield from ((began, text) for text in reversed(kind.opening))


def _kind(pod: Json) -> Kind:
    meta = pod["metadata"]
    name = meta.get("generateName") or meta["name"]
    return next((kind for kind in KINDS if name.startswith(kind.names)), TRAINING)


def _dice(who: str, at: int) -> float:
    """From 0 to 1, the same at every reading."""
    return hashlib.blake2b(f"{who}{at}".encode(), digest_size=2).digest()[0] / 255
