"""The door to compiling: ``inner`` functions go into the ``kernel`` that calls them, which is on disk once.

With ``NUMBA_DISABLE_JIT=1`` everything runs as plain Python: slow, but a change can be tried and
debugged on small snapshots without waiting for the compiler, and a small plan is there sooner.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from scheduling.engine.compile import mode

PLAIN: bool = mode.PLAIN


def _plan_plainly(plan: Any, world: Any, now: float, acts: bool) -> None:
    plan(world, now, acts)


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only kernels call, once for all values of its arguments."""
    return function if PLAIN else machine.inner(function)


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function that Python calls, with its machine code cached beside the source."""
    return function if PLAIN else machine.kernel(function)


def address_of(compiled: Any, world: Any) -> Any:
    """Where the machine code of a kernel that plans ``world`` lies, for ``plan_at``.

    It must have run on such a world before.
    """
    return compiled if PLAIN else machine.address_of(compiled, world)


if not PLAIN:
    # In this order: the second loads all of Numba.
    from scheduling.engine.compile import (
        blas,  # noqa: F401
        machine,
    )

plan_at: Any = _plan_plainly if PLAIN else machine.plan_at
"""``plan_at(address, world, now, acts)`` runs the planner at ``address`` inside another kernel. Called by
its name it would be compiled once more, into that kernel.
"""
