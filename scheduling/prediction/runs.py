"""What is known of work before it runs, and of a run when it is over. Times are seconds since 1970."""

from __future__ import annotations

import re
from dataclasses import dataclass

COUNTER = re.compile(r"[-_.](?:\d+|(?=[a-z0-9]*\d)[a-f0-9]{5,}|(?=[a-z0-9]*\d)[a-z0-9]{5})$")
"""The last part of a name that only tells submissions apart: a number, or letters drawn at random."""
TAG = re.compile(r"(?:@[^/]*|:[^/:]*)$")


def stem_of(name: str) -> str:
    """``name`` without its counters: ``train-bert-7`` and ``train-bert-12`` are the same work."""
    while (shorter := COUNTER.sub("", name)) != name:
        name = shorter
    return name


def image_of(reference: str) -> str:
    """The image without registry, tag and digest: a registry that is renamed is no new work."""
    bare = TAG.sub("", TAG.sub("", reference))
    host, _, path = bare.partition("/")
    return path if path and ("." in host or ":" in host or host == "localhost") else bare


@dataclass(frozen=True, slots=True)
class Work:
    """What its author and its queue say of a workload; ``gpus`` of the whole gang. ``gpu_class`` is the one
    that it runs on, else the first that it asks for; ``limit_s`` zero where it has none."""

    user: str = ""
    queue: str = ""
    team: str = ""
    stem: str = ""
    image: str = ""
    type: str = ""
    gpu_class: str = ""
    gpus: float = 1.0
    memory_gib: float = 0.0
    limit_s: float = 0.0
    submitted: float = 0.0


@dataclass(frozen=True, slots=True)
class Run:
    """One that is over. ``censored``: it failed, was cancelled or evicted, so it would have taken longer."""

    work: Work
    ran_s: float
    ended: float
    censored: bool = False
