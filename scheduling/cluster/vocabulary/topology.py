"""The levels of a cluster's topology: which labels of its nodes name what is close together.

Written as one text, the widest level first: ``block=weir.dev/block,topology.kubernetes.io/zone; rack=…``. Of
several labels the first that a node carries counts; a level of one label alone is called by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from scheduling.cluster.vocabulary import labels
from scheduling.engine.model import MOST_TOPOLOGY_LEVELS, NODE_LEVEL, Segment, Topology

LONGEST = 1000
"""Characters of the text."""
LONGEST_SIZE = 10
"""Digits of a segment's size, and one."""
NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?")
LABEL = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)


@dataclass(frozen=True)
class Levels:
    """``labels``: name of a level -> labels of nodes that may name its domains; the widest level first."""

    labels: Mapping[str, tuple[str, ...]]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.labels)

    @property
    def with_nodes(self) -> tuple[str, ...]:
        """Those that work may ask for."""
        return (*self.labels, NODE_LEVEL)

    @cached_property
    def _by_name(self) -> dict[str, str]:
        """Level by what people may call it: its name, or one of its labels."""
        by_label = {key: name for name, keys in self.labels.items() for key in keys}
        own = {name: name for name in self.with_nodes}
        return {labels.HOSTNAME: NODE_LEVEL} | by_label | own

    def find(self, name: str | None) -> str | None:
        """The level that ``name`` means; None where it means none."""
        return self._by_name.get(name or "")

    def wish(
        self,
        said: Mapping[str, str],
        members: Iterable[int],
        together: Iterable[str] = (),
        *,
        is_unlike: bool = False,
    ) -> Topology:
        """What work of so many ``members``, at least and at most, asks for of the levels that there are.
        Labels by which its pods have to be ``together`` require their levels as well: the narrowest counts.
        Members that are unlike are counted in parts, and keep no segments.
        """
        levels = self.with_nodes
        wanted = filter(None, map(self.find, (said.get("required"), *together)))
        required = max(wanted, key=levels.index, default=None)
        preferred = self.find(said.get("preferred"))
        segment = None if is_unlike else self._segment(said, members)
        if segment is None:
            return Topology(required, preferred)
        # A level narrower than that of a segment says nothing more of the whole gang.
        level = levels.index(segment.required or segment.preferred or NODE_LEVEL)
        if preferred is not None and levels.index(preferred) > level:
            preferred = None
        if required is not None and levels.index(required) > level:
            return Topology(required, preferred)
        return Topology(required, preferred, segment)

    def _segment(self, said: Mapping[str, str], members: Iterable[int]) -> Segment | None:
        size = segment_size(said)
        required, preferred = (
            self.find(said.get(f"segment_{k}")) for k in ("required", "preferred")
        )
        if not size or (required or preferred) is None or any(many % size for many in members):
            return None
        return Segment(size, required, None if required else preferred)

    def domains(self, node_labels: Mapping[str, str]) -> dict[str, str]:
        """Level -> domain of a node with these labels, of the levels that they name."""
        return {
            level: node_labels[key]
            for level, keys in self.labels.items()
            if (key := next((key for key in keys if key in node_labels), None))
        }

    def shared_label(self, name: str | None, nodes: Iterable[Mapping[str, str]]) -> dict[str, str]:
        """The label of the domain of the level that ``name`` means which all ``nodes`` (by their labels)
        carry alike; empty where there is none."""
        there = list(nodes)
        for key in self.labels.get(self.find(name) or "", ()):
            values = {node.get(key) for node in there}
            if len(values) == 1 and None not in values:
                return {key: str(values.pop())}
        return {}


def segment_size(said: Mapping[str, str]) -> int:
    """Members of a segment, as work says it; 0 where it says none, or nonsense."""
    size = said.get("segment_size", "")
    return int(size) if size.isascii() and size.isdecimal() and len(size) < LONGEST_SIZE else 0


NO_LEVELS = Levels({})


@lru_cache(maxsize=64)
def parse(text: str) -> Levels:
    """Raises ValueError with what is wrong with ``text``, in words."""
    if len(text) > LONGEST:
        raise ValueError(f"it has more than {LONGEST:,} characters")
    rows = [_row(part.strip()) for part in re.split(r"[;\n]", text) if part.strip()]
    names = [name for name, _ in rows]
    keys = [key for _, keys in rows for key in keys]
    if len(rows) > MOST_TOPOLOGY_LEVELS:
        raise ValueError(f"it has more than {MOST_TOPOLOGY_LEVELS} levels")
    for found in (names, keys):
        if twice := next((one for one in found if found.count(one) > 1), ""):
            raise ValueError(f"{twice} stands twice")
    return Levels(dict(rows))


def _row(text: str) -> tuple[str, tuple[str, ...]]:
    name, sign, after = (part.strip() for part in text.partition("="))
    keys = tuple(key.strip() for key in (after if sign else name).split(","))
    if not NAME.fullmatch(name) or name == NODE_LEVEL:
        raise ValueError(f"{name[:80]!r} cannot be the name of a level")
    for key in keys:
        if not LABEL.fullmatch(key):
            raise ValueError(f"{key[:80]!r} is no label of a node")
    return name, keys
