"""Snapshots that follow each other as JSON: what waits is written anew only where it is another value."""

from __future__ import annotations

from dataclasses import replace

from scheduling.engine import model as m
from scheduling.engine.document.rows import write, write_one
from scheduling.engine.document.schema import WorkloadDoc


class Writer:
    """Writes the snapshots of one cluster; a snapshot's values are frozen, so the same one reads the same."""

    def __init__(self) -> None:
        self._written: dict[str, tuple[m.Workload, bytes]] = {}
        """By name, of what waits in the last snapshot."""

    def write(self, snapshot: m.Snapshot) -> bytes:
        """JSON of ``dump(snapshot)``."""
        before, self._written = self._written, {}
        # What nodes hold is judged by those who hold it, and by claims.
        others = [work for work in snapshot.workloads if not _only_waits(work)]
        doc = write(replace(snapshot, workloads=tuple(others)))
        texts = iter([_text(one) for one in doc.workloads])
        rows = [
            self._waiting(work, before) if _only_waits(work) else next(texts)
            for work in snapshot.workloads
        ]
        head = doc.model_dump_json(exclude_defaults=True, exclude={"workloads"}).encode()
        return b'%s,"workloads":[%s]}' % (head[:-1], b",".join(rows)) if rows else head

    def _waiting(self, work: m.Workload, before: dict[str, tuple[m.Workload, bytes]]) -> bytes:
        known = before.get(work.name)
        if known is None or known[0] is not work:
            known = work, _text(write_one(work))
        self._written[work.name] = known
        return known[1]


def _only_waits(work: m.Workload) -> bool:
    return work.phase is m.Phase.PENDING and not work.awaits_victims


def _text(doc: WorkloadDoc) -> bytes:
    return doc.model_dump_json(exclude_defaults=True).encode()
