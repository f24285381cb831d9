"""How a GPU class is counted for people: MIG profiles are slices of a GPU."""

from __future__ import annotations

import re
from fractions import Fraction

from scheduling.models import GpuClass

SLICES = 7
"""Compute slices of a GPU that can be partitioned (A100, H100 and their successors)."""
_PROFILE = re.compile(r"/mig-(\d+)g\.")


def unit(gpu_class: GpuClass) -> str:
    """'slices' or 'GPUs'."""
    return "slices" if _PROFILE.search(gpu_class.resource_name) else "GPUs"


def gpus_each(gpu_class: GpuClass) -> Fraction:
    """Physical GPUs in one of the class: 1, or n/7 for the profile 'mig-ng'.

    Sums over classes use it: 128 + 88 + 56 slices of 1/7 + 88 are 312 GPUs.
    """
    return gpus_of(gpu_class.resource_name)


def gpus_of(resource_name: str) -> Fraction:
    """The same by the name under which pods ask for it."""
    profile = _PROFILE.search(resource_name)
    return Fraction(int(profile[1]), SLICES) if profile else Fraction(1)
