"""Equal parts of many objects held once: thousands of Jobs of one template differ in little else."""

from __future__ import annotations

from typing import Any

import orjson

Json = dict[str, Any]

MOST = 2000
"""Different parts remembered; a cluster with more of them begins anew."""


class SharedParts:
    """Safe to use from many threads. What comes out is read by many: treat it as read-only."""

    def __init__(self) -> None:
        self._known: dict[bytes, Json] = {}

    def one(self, part: Json) -> Json:
        """``part``, or an equal one that came before."""
        if len(self._known) >= MOST:
            self._known = {}
        return self._known.setdefault(orjson.dumps(part), part)
