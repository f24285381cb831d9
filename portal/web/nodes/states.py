"""How a node stands, in a word with a mark, and why, in a sentence with what to do about it.

The texts of the cluster (messages, names of taints) may name teams: they are for operators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils.dateparse import parse_datetime

from portal.display import format as show
from scheduling.models import Node
from scheduling.services.words.vendors import TOOLS

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeState:
    """``glyph`` and ``tone`` are those of its badge."""

    key: str
    word: str
    glyph: str
    tone: str
    means: str


STATES = {
    state.key: state
    for state in (
        NodeState("open", "Open", "finished", "ok", "takes work"),
        NodeState("impaired", "Impaired", "clock", "warn", "takes work, but something is wrong with it"),
        NodeState("draining", "Draining", "evicted", "warn", "cordoned: takes no new work, some still runs"),
        NodeState("drained", "Drained", "hold", "info", "cordoned and without work of a queue"),
        NodeState("closed", "Closed", "close", "neutral", "a taint keeps work away"),
        NodeState("down", "Down", "error", "err", "not ready, without a usable GPU, or gone"),
    )
}  # fmt: skip
"""In the order of the filter."""


@dataclass(frozen=True, slots=True)
class Words:
    """Of a trouble: two or three words, a sentence, and its remedy (``{node}`` is filled in)."""

    short: str
    sentence: str
    remedy: str


WORDS = {
    "not_ready": Words(
        "not ready",
        "Its kubelet says that it cannot run pods.",
        "Read the kubelet's log on the machine (journalctl -u kubelet); the container runtime and the"
        " network plugin are the usual causes.",
    ),
    "silent": Words(
        "kubelet silent",
        "Its kubelet has stopped reporting, so nobody knows what runs there.",
        "Check that the machine is up and reaches the API server, then restart its kubelet.",
    ),
    "no_gpus": Words(
        "no GPU offered",
        "It offers none of its GPUs any more: its device plugin has stopped, or finds none.",
        "Look at the pod of the device plugin on this node (kubectl get pods --all-namespaces"
        f" --field-selector spec.nodeName={{node}}), then whether the driver sees the GPUs ({TOOLS}).",
    ),
    "disk_pressure": Words(
        "disk full",
        "Its disk is almost full, so the kubelet evicts pods and lets no new ones in.",
        "Free space on the node: old images and logs first (crictl rmi --prune).",
    ),
    "memory_pressure": Words(
        "memory short",
        "Its memory is almost used up, so the kubelet evicts pods.",
        "Find what takes it (kubectl top pod --all-namespaces) and give that a memory limit.",
    ),
    "pid_pressure": Words(
        "processes short",
        "It has almost no process ids left, so the kubelet evicts pods.",
        "Find what forks without end, or raise the limit of process ids.",
    ),
    "network_unavailable": Words(
        "no network",
        "Its network is not set up.",
        "Look at the pod of the network plugin on this node.",
    ),
    "cordoned": Words(
        "cordoned",
        "Somebody cordoned it, so it takes no new work; what runs there may finish.",
        "When its maintenance is over: kubectl uncordon {node}",
    ),
    "tainted": Words(
        "tainted",
        "A taint that no work in a queue tolerates keeps all of it away.",
        "Remove the taint once it is not needed: kubectl taint nodes {node} KEY-",
    ),
    "reserved": Words(
        "reserved",
        "A taint keeps it for the work that tolerates it.",
        "Nothing is wrong with it. To open it to all: kubectl taint nodes {node} KEY-",
    ),
    "unhealthy_gpus": Words(
        "GPU unhealthy",
        "It announces more GPUs than it hands out: its device plugin calls the others unhealthy.",
        f"Look for errors of the driver (dmesg, {TOOLS}), then reset or replace the GPU.",
    ),
    "gone": Words(
        "gone",
        "The cluster has it no more, or not in this class; work that was sent there still counts.",
        "Nothing, if it was removed: its work is evicted and waits anew.",
    ),
}
NO_WORD = Words(
    "not ready", "The cluster calls it not ready.", "kubectl describe node {node} says why."
)
DOWN = ("not_ready", "silent", "no_gpus", "gone")
ORDER = list(WORDS)


@dataclass(frozen=True, slots=True)
class NodeTrouble:
    """One trouble as a reader may have it. ``detail`` is the cluster's own text, empty but for operators."""

    code: str
    short: str
    sentence: str
    remedy: str
    detail: str
    since: datetime | None
    since_says: str


def state_of(node: Node) -> NodeState:
    """How it stands, by its row of one class."""
    codes = {trouble["code"] for trouble in node.troubles}
    if node.ready:
        return STATES["impaired" if codes - {"reserved"} else "open"]
    if codes & set(DOWN):
        return STATES["down"]
    if "cordoned" in codes:
        return STATES["draining" if node.allocated_gpus else "drained"]
    return STATES["closed" if "tainted" in codes else "down"]


def short_of(node: Node) -> str:
    """Two or three words on why, for its tile; empty where nothing is wrong."""
    found = causes([node], tells_all=False)
    if node.ready:
        found = [cause for cause in found if cause.code != "reserved"]
    if not found:
        return ""
    more = f" +{len(found) - 1}" if len(found) > 1 else ""
    if state_of(node).key == "draining" and found[0].code == "cordoned":
        return f"{show.gpus(node.allocated_gpus)} held{more}"
    return found[0].short + more


def causes(parts: Iterable[Node], *, tells_all: bool) -> list[NodeTrouble]:
    """Why the machine of ``parts`` (its rows, one a class) stands as it does, the worst first; with the
    cluster's own texts where ``tells_all``."""
    found: dict[tuple[str, str], NodeTrouble] = {}
    for node in parts:
        troubles = node.troubles or ([] if node.ready else [{"code": ""}])
        for trouble in troubles:
            cause = _cause(node, trouble, tells_all)
            found.setdefault((cause.code, cause.sentence + cause.detail), cause)
    return sorted(found.values(), key=_rank)


def _rank(cause: NodeTrouble) -> int:
    return ORDER.index(cause.code) if cause.code in WORDS else len(ORDER)


def _cause(node: Node, trouble: Json, tells_all: bool) -> NodeTrouble:
    code = str(trouble["code"])
    words = WORDS.get(code, NO_WORD)
    sentence, short = words.sentence, words.short
    if amount := int(trouble.get("gpus", 0)):
        short, sentence = _counted(code, show.gpus_counted(amount))
    return NodeTrouble(
        code,
        short,
        sentence,
        words.remedy.replace("{node}", node.name),
        _detail(code, trouble) if tells_all else "",
        parse_datetime(trouble.get("since") or ""),
        "last heard of" if code == "silent" else "since",
    )


def _counted(code: str, gpus: str) -> tuple[str, str]:
    """Short words and the sentence of a trouble with ``gpus``, which has its unit."""
    if code == "no_gpus":
        return (
            f"{gpus} not offered",
            f"{gpus} announced and none handed out: the device plugin calls all of them unhealthy,"
            " or has stopped.",
        )
    return (
        f"{gpus} unhealthy",
        f"{gpus} announced and not handed out: the device plugin calls that unhealthy.",
    )


def _detail(code: str, trouble: Json) -> str:
    reason, message = str(trouble.get("reason", "")), str(trouble.get("message", ""))
    if code == "cordoned":
        return f"Set by {reason}" if reason else ""
    if code in ("tainted", "reserved"):
        return f"{reason}:{message}"
    return ": ".join(part for part in (reason, message) if part)
