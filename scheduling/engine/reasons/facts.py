"""What a decision's sentence and numbers are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from scheduling.engine.model import MILLI, Reason
from scheduling.engine.reasons.figures import Nothing
from scheduling.engine.reasons.wording import amount, first_up, gpus_in_words, plural

OTHERS_WORK = "a workload of another team"
OTHERS_QUEUE = "a queue of another team"
"""What a name is replaced with for readers who may not see it."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What a sentence may quote. ``figures`` are of the kind that the reason is declared with."""

    reason: Reason
    queue: str
    blame: str
    gpu_class: str
    figures: Any = Nothing()  # noqa: RUF009 - a value that nobody changes
    gpus: int = MILLI
    least: int = 1
    members: int = 0
    rival: str = ""
    rival_queue: str = ""
    rule: str = ""
    """As ``Decision.rule``."""
    until: datetime | None = None
    lost_gpu_s: float = 0.0
    searches: int = 0
    """How many searches for room a cycle makes at most of the kind that was not made any more for it."""
    wanted: str = ""
    """What the user asked for by name: the queue label, the GPU classes, the topology level."""
    segment: tuple[int, str] = (0, "")
    """How many members at a time have to be inside one domain of which level; 0 without."""
    beside: str = ""
    """What a member needs beside its GPUs, as "8 CPUs and 64 GiB of memory"."""
    constraints: str = ""
    """By what it is bound to some nodes, as "node selector and volumes"."""
    held_by_user: bool = False
    draining: bool = False
    outages: str = ""
    """What is said of nodes of its class that take no work."""
    roles: tuple[tuple[int, int], ...] = ()
    """Least members and milli-GPU of one, by role: then ``gpus`` and ``least`` are those of parts."""
    elastic_gpus: int = 0
    """Milli-GPU of a member of the one of the ``roles`` that has more: ``members`` are those of that role."""

    @property
    def members_of(self) -> str:
        """What its members are called, where the number of some may change."""
        return f"members of {gpus_in_words(self.elastic_gpus)}" if self.elastic_gpus else "members"

    @property
    def other(self) -> str:
        """The rival and where it waits, as far as they may be named."""
        return f"{self.rival} of {self.rival_queue}" if self.rival_queue else self.rival

    @property
    def opening(self) -> str:
        """The rival at the beginning of a sentence; a name stays as it is."""
        return first_up(self.rival) if self.rival == OTHERS_WORK else self.rival

    @property
    def holder(self) -> str:
        """The queue that is blamed, if it may be named."""
        return self.blame or OTHERS_QUEUE

    def sealed(self) -> Facts:
        """The same for a reader who sees its queue and those above, with names and figures, and nobody
        else's work: itself where it names nobody else. A blamed queue that may not be named is empty.
        """
        hides_rival = bool(self.rival_queue) and self.rival_queue != self.queue
        hides_blame = bool(self.blame) and not is_on_line(self.blame, self.queue)
        if not hides_rival and not hides_blame:
            return self
        return replace(
            self,
            rival=OTHERS_WORK if hides_rival else self.rival,
            rival_queue="" if hides_rival else self.rival_queue,
            blame="" if hides_blame else self.blame,
        )


def is_on_line(path: str, queue: str) -> bool:
    """Whether the queue at ``path`` is the one at ``queue`` or above it."""
    return queue == path or queue.startswith(f"{path}/")


def gang(f: Facts) -> str:
    """How many GPUs it needs at once: "16 on 2 members" only for gangs."""
    need = amount(f.gpus * f.least)
    return f"{need} at once" if f.least * f.gpus > MILLI else need


def this(f: Facts) -> str:
    return "this gang" if f.least > 1 or f.gpus > MILLI else "this workload"


def parts(f: Facts) -> str:
    if f.roles:
        (many, gpus), *rest_of = f.roles
        rest = "".join(f" and {more} of {amount(each)}" for more, each in rest_of)
        return f" in {plural(many, 'part')} of {amount(gpus)}{rest}"
    return f" in {f.least} parts of {amount(f.gpus)}" if f.least > 1 else ""


def members(f: Facts) -> str:
    """All that have to start together, each with what it takes."""
    beside = f" with {f.beside}" if f.beside else ""
    (many, gpus), *rest_of = f.roles or ((f.least, f.gpus),)
    rest = "".join(f" and {more} of {gpus_in_words(each)}" for more, each in rest_of)
    return f"{plural(many, 'member')} of {gpus_in_words(gpus)}{beside}{rest}"


def together(f: Facts) -> str:
    """In which domains all of them, and every segment, have to be."""
    size, level = f.segment
    text = f" in one {f.wanted}" if f.wanted else ""
    return f"{text}, every {size} in one {level}" if size else text
