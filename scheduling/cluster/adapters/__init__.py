"""Kinds of objects that hold work. Another kind is another module here and one more line below."""

from scheduling.cluster.adapters import notes
from scheduling.cluster.adapters.base import (
    Adapter,
    Admission,
    ClassSpec,
    Observed,
    Target,
    key_of,
)
from scheduling.cluster.adapters.job import JobAdapter

ADAPTERS: tuple[Adapter, ...] = (JobAdapter(),)

__all__ = [
    "ADAPTERS",
    "Adapter",
    "Admission",
    "ClassSpec",
    "JobAdapter",
    "Observed",
    "Target",
    "key_of",
    "notes",
]
