"""A person as the reader of sentences: which names ``services.words.sentences`` leaves standing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.utils.functional import cached_property

from portal.accounts.capabilities import Capability
from portal.teams.access import WIDE, tops
from portal.teams.rights import Person, Rights, rights_of
from scheduling.models import Queue
from scheduling.services.words.sentences import Reader


class Reading:
    """The rule of ``visible_queues`` and ``own_queues``, asked by path. Reads two rows once, at the first
    question."""

    def __init__(self, person: Person) -> None:
        self.person = person
        self.user = person.get_username()

    @cached_property
    def _rights(self) -> Rights:
        return rights_of(self.person)

    @cached_property
    def _tops(self) -> list[tuple[int, str]]:
        return tops(self.person)

    def sees_work(self, cluster_id: int, path: str) -> bool:
        rights = self._rights
        return rights.everywhere(Capability.SEE) or (
            rights.granting(Capability.SEE, cluster_id, path) is not None
        )

    def sees_queue(self, cluster_id: int, path: str) -> bool:
        return any(map(self._rights.everywhere, WIDE)) or any(
            cluster == cluster_id and (_is_at_or_below(path, top) or _is_at_or_below(top, path))
            for cluster, top in self._tops
        )


def seen_of(person: Person, queues: Iterable[Queue]) -> set[int]:
    """Keys of those of ``queues`` that ``visible_queues`` would find, without a query."""
    reading = Reading(person)
    return {one.pk for one in queues if reading.sees_queue(one.cluster_id, one.path)}


def _is_at_or_below(path: str, top: str) -> bool:
    """The path of a root is empty."""
    return not top or path == top or path.startswith(f"{top}/")


def reader_of(request: Any) -> Reader:
    """The reader of the answer to ``request``: one reader a request, of Django or of the API."""
    plain = getattr(request, "_request", request)
    known: Reader | None = getattr(plain, "reader", None)
    if known is None or known.user != request.user.get_username():
        known = plain.reader = Reading(request.user)
    return known
