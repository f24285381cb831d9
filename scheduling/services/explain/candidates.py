"""Who else could have left in a cycle, asked of its kept snapshot."""

from __future__ import annotations

from typing import Any

from scheduling.engine import document
from scheduling.engine.whatif.alternatives import (
    Candidate,
    Verdict,
    VictimSearch,
    victim_searches,
)

__all__ = ["Candidate", "Verdict", "VictimSearch", "searches_of"]


def searches_of(kept: dict[str, Any]) -> list[VictimSearch]:
    """Those of a cycle's kept snapshot (``records.unpacked``)."""
    return victim_searches(document.parse(kept))
