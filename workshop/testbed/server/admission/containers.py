"""The containers of a pod, and how refusals name several things."""

from __future__ import annotations

from collections.abc import Sequence

from workshop.testbed.server.kinds.resources import Json


def all_of(spec: Json) -> list[Json]:
    """Return the init containers of a pod and its others."""
    return [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]


def listed(noun: str, names: Sequence[str]) -> str:
    """Return `noun "a"`, or `nouns "a", "b"`."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"{noun}{'s' if len(names) > 1 else ''} {quoted}"
