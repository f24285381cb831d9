"""A variant is chosen, with a reason: by which door its changes go. Nothing is changed here.

Policy and quotas have doors with a preview of their own; nodes, classes and priorities are changed elsewhere,
by hand, and are told as left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import transaction

from scheduling.models import Variant
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce
from scheduling.services.policy.knobs import BY_FIELD
from scheduling.services.studies.experiments.variants import kinds_changed

DOORS = ("policy", "quota", "queue")
"""Kinds of changes that have one."""
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Promotion:
    """``policy`` are values by field, ``quotas`` and ``queues`` changes of a what-if, ``left_out`` kinds."""

    policy: Mapping[str, Any]
    quotas: tuple[Json, ...]
    queues: tuple[Json, ...]
    left_out: tuple[str, ...]

    @property
    def has_door(self) -> bool:
        return bool(self.policy or self.quotas or self.queues)


def promotion_of(variant: Variant) -> Promotion:
    changes = [dict(one) for one in variant.changes]
    policy = {one["setting"]: one["value"] for one in changes if one["kind"] == "policy"}
    known = {name: value for name, value in policy.items() if name in BY_FIELD}
    left_out = [kind for kind in kinds_changed(changes) if kind not in DOORS]
    return Promotion(
        known,
        tuple(one for one in changes if one["kind"] == "quota"),
        tuple(one for one in changes if one["kind"] == "queue"),
        (*left_out, *sorted(policy.keys() - known.keys())),
    )


@transaction.atomic
def promote(*, variant: Variant, author: str, reason: str) -> Promotion:
    """Note who chose it and why. Raises ServiceError without a reason, a replay, or a door to go through."""
    if not reason.strip():
        raise ServiceError("no_reason", "A promotion needs a reason.", "Say why.", field="reason")
    if not variant.results.exclude(done_at=None).exists():
        raise ServiceError(
            "not_lived", f"Nothing was lived under {variant} yet.", "Wait for its first replays.",
            field="variant",
        )  # fmt: skip
    found = promotion_of(variant)
    if not found.has_door:
        raise ServiceError(
            "no_door", f"{variant} changes no policy and no quota.",
            "Promote one that does; nodes and classes are changed where they are kept.", field="variant",
        )  # fmt: skip
    variant.promoted_at = variant.study.cluster.now()
    variant.promoted_by, variant.reason = author, reason.strip()[:500]
    variant.save(update_fields=["promoted_at", "promoted_by", "reason"])
    announce(
        "lab.promoted",
        actor=author,
        cluster=variant.study.cluster,
        subject=f"{variant.study.name}: {variant}",
        after={"changes": variant.changes},
        reason=reason.strip(),
    )
    return found
