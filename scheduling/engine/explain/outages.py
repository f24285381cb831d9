"""Nodes that are installed and take no work: how many of a class, why, and what could start but for them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from scheduling.engine import model as m
from scheduling.engine.reasons.wording import plural

WORDS: Mapping[m.Outage, tuple[str, str]] = {
    m.Outage.CORDONED: ("is cordoned", "are cordoned"),
    m.Outage.NOT_READY: ("is not ready", "are not ready"),
    m.Outage.TAINTED: ("is closed by a taint", "are closed by taints"),
    m.Outage.NO_GPUS: ("hands out no GPUs", "hand out no GPUs"),
}
DRAINING = ("is being drained", "are being drained")
"""Of a cordoned node while work holds GPUs there."""
MOST_NAMES = 3


class Outages:
    """What a snapshot says of them; words and answers are made once each."""

    def __init__(self, snapshot: m.Snapshot) -> None:
        self.installed: dict[str, list[m.Node]] = {}
        for node in snapshot.nodes:
            if node.ready or node.outage is not m.Outage.GONE:
                self.installed.setdefault(node.gpu_class, []).append(node)
        self.workloads = snapshot.workloads
        self._busy: set[str] | None = None
        self.sets = {one.name: one.nodes for one in snapshot.node_sets}
        self._words: dict[str, str] = {}
        self._fits: dict[tuple[object, ...], bool] = {}

    def said_of(self, gpu_class: str) -> str:
        """A sentence, as "2 of 8 h100 nodes are cordoned: n1, n2."; empty where all of the class are up."""
        if gpu_class not in self._words:
            nodes = self.installed.get(gpu_class, [])
            down = [node for node in nodes if not node.ready]
            self._words[gpu_class] = self._said(gpu_class, down, len(nodes)) if down else ""
        return self._words[gpu_class]

    def _said(self, gpu_class: str, down: list[m.Node], installed: int) -> str:
        by_words: dict[tuple[str, str], list[str]] = {}
        for node in sorted(down, key=lambda node: node.outage or m.Outage.NOT_READY):
            by_words.setdefault(self._words_of(node), []).append(node.name)
        parts = [
            f"{len(names)} of {plural(installed, f'{gpu_class} node')} {words[len(names) > 1]}:"
            f" {_names(names)}"
            for words, names in by_words.items()
        ]
        return "; ".join(parts) + "."

    def _words_of(self, node: m.Node) -> tuple[str, str]:
        outage = node.outage or m.Outage.NOT_READY
        is_draining = outage is m.Outage.CORDONED and self._holds_work(node.name)
        return DRAINING if is_draining else WORDS[outage]

    def _holds_work(self, node: str) -> bool:
        if self._busy is None:
            self._busy = {name for work in self.workloads for name in work.placement}
        return node in self._busy

    def would_fit(self, work: m.Workload) -> bool:
        """Whether ``work`` fits the empty nodes of a class of its wish that are installed, and some of these
        are down."""
        wish = work.gpu_classes or tuple(self.installed)
        return any(self.said_of(name) and self._would_fit_on(work, name) for name in wish)

    def _would_fit_on(self, work: m.Workload, gpu_class: str) -> bool:
        level = work.topology.required or ""
        key = (
            gpu_class, work.gpus, work.cpus, work.memory_mib, work.members.min, work.topology,
            work.node_set,
        )  # fmt: skip
        if key not in self._fits:
            nodes = [n for n in self.installed[gpu_class] if self._may_use(work, n)]
            largest = max((n.gpus for n in self.installed[gpu_class]), default=0)
            size, fine = _segment(work, level)
            slots: Counter[tuple[str, str]] = Counter()
            for node in nodes:
                gpus = max(0, node.gpus - node.foreign_gpus) if node.gpus else largest
                slots[_domain(node, level), _domain(node, fine)] += _slots(work, node, gpus)
            inside: Counter[str] = Counter()
            for (domain, _), many in slots.items():
                inside[domain] += many // size * size
            self._fits[key] = max(inside.values(), default=0) >= work.members.min
        return self._fits[key]

    def _may_use(self, work: m.Workload, node: m.Node) -> bool:
        if work.node_set is None:
            return not node.dedicated
        return node.name in self.sets.get(work.node_set, ())


def _names(names: Iterable[str]) -> str:
    several = sorted(names)
    more = len(several) - MOST_NAMES
    return ", ".join(several[:MOST_NAMES]) + (f" and {more} more" if more > 0 else "")


def _slots(work: m.Workload, node: m.Node, gpus: int) -> int:
    """Members that the empty node takes."""
    each = work.gpus
    slots = gpus // m.MILLI * (m.MILLI // each) if 0 < each < m.MILLI else gpus // max(1, each)
    # What a node that hands out no GPUs has beside them is not known.
    for need, has in ((work.cpus, node.cpus), (work.memory_mib, node.memory_mib)):
        if need and has is not None and node.gpus:
            slots = min(slots, has // need)
    return slots


def _segment(work: m.Workload, level: str) -> tuple[int, str]:
    """The size of its segments and their level; a member, of ``level``, where it keeps none."""
    one = work.topology.segment
    return (one.members, one.required) if one and one.required else (1, level)


def _domain(node: m.Node, level: str) -> str:
    if level == "node":
        return node.name
    return node.topology.get(level, node.name) if level else ""
