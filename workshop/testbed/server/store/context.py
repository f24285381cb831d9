"""What every verb and controller works with, and who is asking."""

from __future__ import annotations

import random
import uuid
from collections import deque
from dataclasses import dataclass, field

from workshop.testbed.server.kinds.clock import Clock
from workshop.testbed.server.kinds.resources import Json, Resource

from .charges import Charges
from .store import Store

_SUFFIX = "bcdfghjklmnpqrstvwxz2456789"


@dataclass(slots=True)
class World:
    """The cluster: objects, time and chance."""

    store: Store
    clock: Clock
    dice: random.Random = field(default_factory=random.Random)
    audit: deque[Json] = field(default_factory=lambda: deque(maxlen=1000))
    """The latest writes: who did what to which object, newest last."""
    charges: Charges = field(init=False)

    def __post_init__(self) -> None:
        self.charges = Charges(self.store)

    def suffix(self, length: int = 5) -> str:
        """Return the random tail of a generated name."""
        return "".join(self.dice.choices(_SUFFIX, k=length))

    def new_uid(self) -> str:
        """Return an identity for a new object."""
        return str(uuid.UUID(int=self.dice.getrandbits(128), version=4))


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller, and how a write is to be taken."""

    user: str = "system:anonymous"
    groups: tuple[str, ...] = ()
    on_behalf_by: str = ""
    """The one who impersonates `user`, or ""."""
    manager: str = "unknown"
    dry_run: bool = False
    force: bool = False


def record_audit(world: World, caller: Caller, verb: str, key: tuple[Resource, str, str]) -> None:
    """Append one line to the audit list."""
    world.audit.append(
        {
            "time": world.clock.stamp(), "user": caller.user, "groups": list(caller.groups),
            "impersonatedBy": caller.on_behalf_by, "manager": caller.manager, "verb": verb,
            "resource": key[0].qualified, "namespace": key[1], "name": key[2],
        }
    )  # fmt: skip
