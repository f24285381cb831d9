"""A realistic, seeded stream of workloads for an organisation: its past and its live demand."""

from .model import Kind, Organisation, Rhythm, RunTime, Size, Source
from .stream import generate, stream

__all__ = [
    "Kind",
    "Organisation",
    "Rhythm",
    "RunTime",
    "Size",
    "Source",
    "generate",
    "stream",
]
