"""Why work ended, as people read it, and what they can do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from scheduling.engine.model import Reason
from scheduling.models import EndCause, Workload

RAN_OUT: Final = Reason.RUN_TIME_OVER.value
"""Why what Weir itself stopped at its limit waits again."""

SAID: Final[Mapping[str, str]] = {
    EndCause.RUN_TIME_LIMIT: "It ran for its run-time limit{limit}, and the cluster ended it.",
    EndCause.OUT_OF_MEMORY: "A container of it used more memory than its limit and was killed{code}.",
    EndCause.IMAGE: "An image of it could not be pulled",
    EndCause.NODE_LOST: "A node that it ran on was lost, and its pod with it.",
    EndCause.EVICTED: "The cluster, not Weir, evicted a pod of it",
    EndCause.CONTAINER: "A container of it could not be started",
    EndCause.EXIT_CODE: "A container of it ended with an error{code}",
    EndCause.FAILED: "It failed",
    EndCause.CANCELLED: "Somebody cancelled it.",
}
REMEDY: Final[Mapping[str, str]] = {
    EndCause.RUN_TIME_LIMIT: "Clone it with a longer limit, or let it go on from its last checkpoint.",
    EndCause.OUT_OF_MEMORY: (
        "Clone it with a higher memory limit of its container, or load less at once. This is memory of the"
        " node; a GPU that is full shows as an exit code and in the log."
    ),
    EndCause.IMAGE: "Check the name and tag of the image, and the pull secret of its namespace.",
    EndCause.NODE_LOST: "Nothing of its own failed. Clone it to run it again.",
    EndCause.EVICTED: (
        "Clone it; where the message names disk or memory, ask for as much as it needs."
    ),
    EndCause.CONTAINER: "Mend what the message names: the command, a volume, a ConfigMap or a Secret.",
    EndCause.EXIT_CODE: "Read its log while the cluster has its pods, mend what it names, then clone it.",
    EndCause.FAILED: (
        "Read its events, and its log while the cluster has its pods; mend what they name, then clone it."
    ),
}


def sentence(work: Workload) -> str:
    """Empty where no cause is known."""
    if work.cause not in SAID:
        return ""
    code = "" if work.exit_code is None else f" (exit code {work.exit_code})"
    said = SAID[work.cause].format(code=code, limit=_limit(work))
    if said.endswith("."):
        return said
    return f"{said}: {_closed(work.cause_said)}" if work.cause_said else f"{said}."


def remedy(work: Workload) -> str:
    """What to do; empty where there is nothing."""
    return REMEDY.get(work.cause, "")


def _closed(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else f"{text}."


def _limit(work: Workload) -> str:
    """Of so many days, hours, minutes and seconds."""
    left, parts = work.run_time_limit_s or 0, []
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min"), (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return f" of {' '.join(parts[:2])}" if parts else ""
