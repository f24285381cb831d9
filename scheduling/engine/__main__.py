"""``python -m scheduling.engine``: compile the kernels now, so that no first plan waits for it."""

from datetime import UTC, datetime

from scheduling.engine import GpuClass, Snapshot, plan

plan(Snapshot(now=datetime(2026, 1, 1, tzinfo=UTC), gpu_classes=(GpuClass("gpu"),)))
