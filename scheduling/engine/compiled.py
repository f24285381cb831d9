"""How kernels are compiled: ``inner`` functions into the ``kernel`` that calls them, on disk once.

Numba keeps a kernel's machine code until the file of the kernel changes, also when a function it
calls has changed in another file. Here the whole package is the stamp.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import types


def _stamp() -> tuple[float, int]:
    files = [path.stat() for path in Path(__file__).parent.glob("*.py")]
    return max(file.st_mtime for file in files), sum(file.st_size for file in files)


STAMP = _stamp()


def inner(function: Callable[..., Any]) -> Any:
    """Compiles a function that only kernels call, once for all values of its arguments.

    Numba would compile it again for every constant that a caller passes.
    """
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
    compiled = njit(cache=True)(function)
    compiled._cache._cache_file._source_stamp = STAMP
    return compiled
