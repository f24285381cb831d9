"""How kernels are compiled: ``inner`` functions into the ``kernel`` that calls them, on disk once.

Numba keeps a kernel's machine code until the file of the kernel changes, also when a function it
calls has changed in another file. Here the whole package is the stamp.

With ``NUMBA_DISABLE_JIT=1`` everything runs as plain Python: slow, but a change can be tried and
debugged on small snapshots without waiting for the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import config, njit
from numba.core import types


def _stamp() -> str:
    """Of the text of the package, so a copy or a fresh checkout finds the same machine code valid."""
    digest = sha256()
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


STAMP = _stamp()
# Loops of scalars gain nothing from vectors and the last level of optimisation, and compile in a third
# of the time without.
config.OPT = type(config.OPT)(2)
config.LOOP_VECTORIZE = config.SLP_VECTORIZE = 0
PLAIN: bool = config.DISABLE_JIT


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only kernels call, once for all values of its arguments.

    Numba would compile it again for every constant that a caller passes.
    """
    if PLAIN:
        return function
    compiled = njit(no_cpython_wrapper=True, no_cfunc_wrapper=True)(function)
    template = compiled.get_call_template

    def of_types(args: Any, kws: Any) -> Any:
        plain: Any = types  # numba's stubs leave ``unliteral`` out
        return template(tuple(plain.unliteral(arg) for arg in args), kws)

    compiled.get_call_template = of_types
    return compiled


once: Callable[..., Any] = njit(inline="always")
"""For a function with one caller, or of one line: it becomes part of its caller. A chain of separate
functions is optimised again at each link, which made a first start take minutes.
"""


def kernel(function: Callable[..., Any]) -> Any:
    """Compiles a function that Python calls, with its machine code cached beside the source."""
    if PLAIN:
        return function
    compiled = njit(cache=True)(function)
    compiled._cache._cache_file._source_stamp = STAMP
    return compiled
