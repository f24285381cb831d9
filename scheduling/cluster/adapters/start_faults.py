"""Why a start failed for a cause outside Weir's plan, as it is noted on the object.

kube-scheduler finds none of the planned nodes fit, for something that no plan reads: other extended
resources, volumes, ports, rules between pods. Or the API server refuses the pods themselves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from scheduling.cluster.vocabulary.quantities import instant, rfc3339

LONGEST = 500
"""Characters of others' words that are kept."""
UNPLACED = "kube-scheduler places its pods nowhere: {}"
UNMADE = "The API server refuses its pods: {}"


@dataclass(frozen=True, slots=True)
class StartFault:
    """``said`` is a sentence with the words of who refused; ``barred`` maps nodes to until when they are left
    out for this work."""

    said: str = ""
    barred: Mapping[str, datetime] = field(default_factory=dict)

    def barred_at(self, now: datetime) -> frozenset[str]:
        return frozenset(node for node, until in self.barred.items() if now < until)

    def dump(self) -> str:
        nodes = {node: rfc3339(until) for node, until in sorted(self.barred.items())}
        return json.dumps({"said": self.said, "nodes": nodes})


NO_FAULT = StartFault()


def worded(frame: str, words: str) -> str:
    """``words`` of somebody else in the sentence ``frame``."""
    return frame.format(" ".join(words.replace("\0", "").split())[:LONGEST].rstrip(".")) + "."


def read(text: str) -> StartFault:
    """What an annotation says; nonsense says nothing."""
    if not text:
        return NO_FAULT
    try:
        said = json.loads(text)
        words, nodes = str(said["said"])[: 2 * LONGEST], _times(said["nodes"])
    except (ValueError, AttributeError, TypeError, KeyError):
        return NO_FAULT
    return StartFault(words.replace("\0", ""), nodes)


def _times(nodes: Any) -> dict[str, datetime]:
    found = {str(node): instant(str(until)) for node, until in nodes.items()}
    return {node: until for node, until in found.items() if until is not None}
