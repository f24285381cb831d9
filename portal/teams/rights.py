"""What a person may do, read once: every page and every list of a request asks the same few questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.utils import timezone
from django.utils.functional import SimpleLazyObject, cached_property

from portal.accounts.capabilities import MEANINGS, NOT_BY_RIGHT, Capability, Reach
from portal.accounts.models import User

if TYPE_CHECKING:
    from portal.teams.models import Membership
    from scheduling.models import Queue

Person = User | AnonymousUser
Value = TypeVar("Value")

MOST_IDS = 1000
"""Of queues in one statement; of more the database is asked."""


@dataclass(frozen=True, slots=True)
class Grant:
    """One membership: the queue of the team, and what the persona grants there. The path of a root is
    empty; ``team`` and ``persona`` are names for sentences."""

    cluster_id: int
    path: str
    powers: frozenset[tuple[str, str]]
    team: str
    persona: str

    def reach(self, capability: Capability) -> Reach | None:
        return next((Reach(reach) for name, reach in self.powers if name == capability), None)

    def covers(self, capability: Capability, cluster_id: int, path: str) -> bool:
        """Whether it lets its person do that to the queue at ``path``."""
        reach = self.reach(capability)
        strictly = MEANINGS[capability].strictly
        if reach == Reach.ALL:
            return bool(path) or not strictly
        if reach not in (Reach.TEAM, Reach.SUBTREE) or cluster_id != self.cluster_id:
            return False
        if path == self.path:
            return not strictly
        return reach == Reach.SUBTREE and (not self.path or path.startswith(f"{self.path}/"))


def nearest(
    grants: Iterable[Grant], capability: Capability, cluster_id: int, path: str
) -> Grant | None:
    """Of the memberships that let their person do that to the queue at ``path``."""
    found = (grant for grant in grants if grant.covers(capability, cluster_id, path))
    return max(found, key=lambda g: (g.cluster_id == cluster_id, len(g.path)), default=None)


class Rights:
    """The memberships of one person, read by one query at the first question."""

    def __init__(self, user: Person, memberships: QuerySet[Membership] | None = None) -> None:
        """By ``memberships`` alone, where it is given."""
        self.user, self.memberships = user, memberships
        self.is_kept = False
        self._known: dict[Hashable, Any] = {}

    @cached_property
    def grants(self) -> list[Grant]:
        if not isinstance(self.user, User):
            return []
        rows = (
            self._in_force(self.user) if self.memberships is None else self.memberships
        ).values_list(
            "team__queue__cluster_id",
            "team__queue__path",
            "persona__grants",
            "team__name",
            "persona__name",
        )
        return [
            Grant(cluster_id, path, frozenset(grants.items()), team, persona)
            for cluster_id, path, grants, team, persona in rows
        ]

    @staticmethod
    def _in_force(user: User) -> QuerySet[Membership]:
        """By the team's name, as memberships stand everywhere; spelled out it costs half as much to ask."""
        return user.memberships.in_force(timezone.now()).order_by("team__name")

    @property
    def is_superuser(self) -> bool:
        return isinstance(self.user, User) and self.user.is_superuser

    def everywhere(self, capability: Capability) -> bool:
        """Whether it reaches every queue of every cluster."""
        if self.is_superuser and capability not in NOT_BY_RIGHT:
            return True
        return any(grant.reach(capability) == Reach.ALL for grant in self.grants)

    def granting(self, capability: Capability, cluster_id: int, path: str) -> Grant | None:
        """The membership that lets the person do that to the queue at ``path``; the nearest counts."""
        return nearest(self.grants, capability, cluster_id, path)

    def covers(self, capability: Capability, queue: Queue) -> bool:
        """Whether the person may do that to ``queue``: the rule of ``access.places``."""
        if self.everywhere(capability):
            return bool(queue.path) or not MEANINGS[capability].strictly
        return self.granting(capability, queue.cluster_id, queue.path) is not None

    def holding(self, capability: Capability) -> Iterator[Grant]:
        return (grant for grant in self.grants if grant.reach(capability))

    def once(self, key: Hashable, make: Callable[[], Value]) -> Value:
        """What ``make`` returned the first time, where these rights live for a request."""
        if not self.is_kept:
            return make()
        if key not in self._known:
            self._known[key] = make()
        known: Value = self._known[key]
        return known

    def queues_of(self, seen: QuerySet[Queue]) -> QuerySet[Queue] | list[int]:
        """``seen``, the queues whose work the person sees, as a condition: ids where these rights live for a
        request. A database finds the work of known queues by its index, and looks at all the work there is
        where they are a question inside the question."""
        if not self.is_kept:
            return seen
        first = seen.values_list("pk", flat=True)[: MOST_IDS + 1]
        found = self.once("queues", lambda: list(first))
        return found if len(found) <= MOST_IDS else seen

    @property
    def sight(self) -> Hashable:
        """The same for two people who may see the same, but for what is their own by name."""
        return self.is_superuser, frozenset(self.grants)


def rights_of(user: Person) -> Rights:
    """Those kept for the request, else what holds now: outside a request nothing says how long a person's
    rights may be believed."""
    known: Rights | None = getattr(user, "rights", None)
    return known or Rights(user)


def keep_rights(user: Person) -> Person:
    """``user`` with rights that are read once. Only for an object that lives no longer than a request."""
    rights = Rights(user)
    rights.is_kept = True
    user.rights = rights  # type: ignore[union-attr]
    return user


class RightsMiddleware:
    """A person who is signed in has their rights read once a request, and not at all where nothing asks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        person = request.user
        request.user = SimpleLazyObject(partial(keep_rights, person))  # type: ignore[assignment]
        return self.get_response(request)
