"""One submission, many members: what was made of them, or how far it came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.accounts.models import User
from portal.teams import submission
from scheduling.models import Cluster
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.arrays import MOST, members

__all__ = ["MOST", "submit"]

Json = dict[str, Any]


def submit(
    user: User,
    cluster: Cluster,
    manifest: Mapping[str, Any],
    *,
    count: int,
    at_once: int | None = None,
    even_if_never: bool = False,
) -> list[Json]:
    """Create ``count`` members of ``manifest``, of which ``at_once`` may hold GPUs at once (None: all).

    Raises as ``submission.submit`` does; where a later one is refused, it says how many stand.
    """
    made: list[Json] = []
    for member in members(manifest, count, at_once):
        try:
            made.append(submission.submit(user, cluster, member, even_if_never=even_if_never))
        except ServiceError as refused:
            if not made:
                raise
            raise ServiceError(
                "array_incomplete",
                f"{len(made)} of {count} members are submitted, then one was refused: {refused}",
                "Cancel those that stand, or submit the others by themselves.",
                field="array",
            ) from refused
    return made
