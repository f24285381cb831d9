"""What a worker process is made of."""

from __future__ import annotations

import os
import subprocess
import sys


def test_kernels_do_without_linear_algebra_and_others_still_find_it() -> None:
    program = """
import sys
from scheduling.services.workers import _do_without_blas
_do_without_blas()
import numba
assert numba.njit(lambda: sum(range(3)))() == 3
assert "scipy.linalg" not in sys.modules
import scipy.linalg
"""
    settings = {**os.environ, "DJANGO_SETTINGS_MODULE": "portal.config.settings"}
    setup = f"import django\ndjango.setup()\n{program}"
    subprocess.run([sys.executable, "-c", setup], env=settings, check=True, timeout=60)
