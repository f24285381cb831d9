"""What a person may do, read once: every page and every list of a request asks the same few questions."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property, partial

from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponseBase
from django.utils.functional import SimpleLazyObject

from portal.accounts.models import User

Person = User | AnonymousUser
FLAGS = ("may_submit", "may_edit_quotas", "may_approve", "may_operate", "may_read_costs")


@dataclass(frozen=True, slots=True)
class Grant:
    """One membership: the queue of the team, and what the persona grants there."""

    cluster_id: int
    path: str
    flags: frozenset[str]


class Rights:
    """The memberships of one person, read by one query at the first question."""

    def __init__(self, user: Person) -> None:
        self.user = user

    @cached_property
    def grants(self) -> list[Grant]:
        if not isinstance(self.user, User):
            return []
        columns = ("team__queue__cluster_id", "team__queue__path")
        personas = [f"persona__{flag}" for flag in FLAGS]
        rows = self.user.memberships.values_list(*columns, *personas)
        return [
            Grant(cluster_id, path, frozenset(f for f, has in zip(FLAGS, held, strict=True) if has))
            for cluster_id, path, *held in rows
        ]

    @property
    def operates(self) -> bool:
        """May see and operate every cluster."""
        if not isinstance(self.user, User):
            return False
        return self.user.is_superuser or any("may_operate" in grant.flags for grant in self.grants)

    @property
    def sight(self) -> Hashable:
        """The same for two people who may see the same, but for what is their own by name."""
        return self.operates, frozenset(self.grants)

    def tops(self, **persona: bool) -> list[tuple[int, str]]:
        """(cluster, path) of the queues of the person's teams where the persona has these flags; the path
        of a root is empty."""
        return [
            (grant.cluster_id, grant.path)
            for grant in self.grants
            if all((flag in grant.flags) == wanted for flag, wanted in persona.items())
        ]


def rights_of(user: Person) -> Rights:
    """Those kept for the request, else what holds now: outside a request nothing says how long a person's
    rights may be believed."""
    known: Rights | None = getattr(user, "rights", None)
    return known or Rights(user)


def keep_rights(user: Person) -> Person:
    """``user`` with rights that are read once. Only for an object that lives no longer than a request."""
    user.rights = Rights(user)  # type: ignore[union-attr]
    return user


class RightsMiddleware:
    """Whoever is signed in has their rights read once a request, and not at all where nothing asks."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        person = request.user
        request.user = SimpleLazyObject(partial(keep_rights, person))  # type: ignore[assignment]
        return self.get_response(request)
