"""A realistic, seeded stream of workloads for an organisation: its past and its live demand."""

from .model import Kind, Organisation, Rhythm, RunTime, Service, Size, Source
from .stream import generate, stream

__all__ = [
    "Kind",
    "Organisation",
    "Rhythm",
    "RunTime",
    "Service",
    "Size",
    "Source",
    "generate",
    "stream",
]
