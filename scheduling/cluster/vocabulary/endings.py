"""Why work ended, or why a pod of it came to harm: what the kubelet and controllers write, in our words.

Pods: kubernetes.io, "Pod Lifecycle" (container states, reasons) and "Disruptions" (DisruptionTarget). Jobs:
the reason of the condition Failed. Messages are the cluster's own and bounded here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

Json = dict[str, Any]

LONGEST: Final = 300
"""Characters of a message that are kept."""


class EndCause(StrEnum):
    RUN_TIME_LIMIT = "run_time_limit"
    OUT_OF_MEMORY = "out_of_memory"
    IMAGE = "image"
    NODE_LOST = "node_lost"
    EVICTED = "evicted"
    CONTAINER = "container"
    EXIT_CODE = "exit_code"
    FAILED = "failed"
    CANCELLED = "cancelled"


RANK: Final = {cause: place for place, cause in enumerate(EndCause)}
"""Of a gang that dies the first cause counts: where one is out of memory, the others exit as it is gone."""
LIMIT: Final = "DeadlineExceeded"
LIMIT_SAID: Final = "active longer than specified deadline"
"""How controllers say it that have no reason of their own for it."""
WAITING: Final[Mapping[str, EndCause]] = {
    "ErrImagePull": EndCause.IMAGE,
    "ImagePullBackOff": EndCause.IMAGE,
    "InvalidImageName": EndCause.IMAGE,
    "ErrImageNeverPull": EndCause.IMAGE,
    "CreateContainerConfigError": EndCause.CONTAINER,
    "CreateContainerError": EndCause.CONTAINER,
    "RunContainerError": EndCause.CONTAINER,
}
ENDED: Final[Mapping[str, EndCause]] = {
    "OOMKilled": EndCause.OUT_OF_MEMORY,
    "ContainerCannotRun": EndCause.CONTAINER,
    "StartError": EndCause.CONTAINER,
}
OF_POD: Final[Mapping[str, EndCause]] = {
    LIMIT: EndCause.RUN_TIME_LIMIT,
    "Evicted": EndCause.EVICTED,
    "NodeLost": EndCause.NODE_LOST,
}
DISRUPTED: Final[Mapping[str, EndCause]] = {
    "DeletionByTaintManager": EndCause.NODE_LOST,
    "DeletionByPodGC": EndCause.NODE_LOST,
    "EvictionByEvictionAPI": EndCause.EVICTED,
    "PreemptionByScheduler": EndCause.EVICTED,
    "TerminationByKubelet": EndCause.EVICTED,
}


@dataclass(frozen=True, slots=True)
class Ending:
    """``said`` are the cluster's own words; ``exit_code`` is of the container, where one ended."""

    cause: EndCause
    exit_code: int | None = None
    said: str = ""


def of_pod(pod: Json) -> Ending | None:
    """What came over an untrimmed pod; None where all is well, or where somebody only told it to go."""
    status = pod.get("status") or {}
    if found := _disrupted(status):
        return found
    if pod["metadata"].get("deletionTimestamp"):
        return None
    cause = OF_POD.get(str(status.get("reason")))
    if cause is not None:
        return Ending(cause, said=_text(status.get("message")))
    return first(_of_containers(status))


def first(found: Iterable[Ending | None]) -> Ending | None:
    """The one that explains the others."""
    return min(filter(None, found), key=lambda one: RANK[one.cause], default=None)


def of_words(reason: str, message: str) -> Ending:
    """Of work that failed, by what its controller says."""
    if reason == LIMIT or LIMIT_SAID in message:
        return Ending(EndCause.RUN_TIME_LIMIT, said=_text(message))
    return Ending(EndCause.FAILED, said=_text(message or reason))


def failure_words(obj: Json, condition: str = "Failed") -> tuple[str, str] | None:
    """(reason, message) of the condition by which an object says that it failed, if it does."""
    for each in (obj.get("status") or {}).get("conditions") or ():
        if each.get("type") == condition and each.get("status") == "True":
            return str(each.get("reason") or ""), str(each.get("message") or "")
    return None


def _disrupted(status: Json) -> Ending | None:
    for each in status.get("conditions") or ():
        if each.get("type") == "DisruptionTarget" and each.get("status") == "True":
            cause = DISRUPTED.get(str(each.get("reason")))
            return Ending(cause, said=_text(each.get("message"))) if cause else None
    return None


def _of_containers(status: Json) -> Iterator[Ending]:
    """A container that runs again after an error is well until it ends for good or waits to be tried."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        for each in status.get(kind) or ():
            state, before = each.get("state") or {}, each.get("lastState") or {}
            waiting, ended = state.get("waiting"), state.get("terminated")
            if waiting and (cause := WAITING.get(str(waiting.get("reason")))):
                yield Ending(cause, said=_text(waiting.get("message")))
            elif waiting:
                ended = before.get("terminated")
            if ended and (ended.get("exitCode") or ended.get("reason") in ENDED):
                yield _of_end(ended)


def _of_end(ended: Json) -> Ending:
    code = ended.get("exitCode")
    number = code if isinstance(code, int) and not isinstance(code, bool) else None
    cause = ENDED.get(str(ended.get("reason")), EndCause.EXIT_CODE)
    return Ending(cause, number, _text(ended.get("message")))


def _text(said: object) -> str:
    return said.replace("\0", "").strip()[:LONGEST] if isinstance(said, str) else ""
