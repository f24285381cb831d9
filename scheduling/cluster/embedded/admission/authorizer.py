"""What policies ask by `authorizer`: may the caller do this?

Roles are not evaluated here: administrators may do everything, others nothing that is asked for this way.
"""

from __future__ import annotations

from ..context import Caller

MASTERS = "system:masters"


class Authorizer:
    """`authorizer`, and what its methods return until `allowed()` ends the question."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def about(self, _name: str) -> Authorizer:
        """The same question about a group, a resource or a verb."""
        return self

    def allowed(self) -> bool:
        return MASTERS in self._caller.groups
