"""Numba without linear algebra: to be imported before what loads Numba's arithmetic of arrays."""

from __future__ import annotations

import importlib
import sys


def _do_without() -> None:
    """Numba loads SciPy's linear algebra, 12 MB and a third of a second, in case a kernel multiplies
    matrices; none of the engine's does. It takes one that is not there for a reason to do without."""
    if "scipy.linalg" in sys.modules:
        return
    sys.modules["scipy.linalg"] = None  # type: ignore[assignment] # how Python notes what cannot be imported
    try:
        importlib.import_module("numba.np.arraymath")
    finally:
        del sys.modules["scipy.linalg"]


_do_without()
