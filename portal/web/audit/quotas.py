"""Beside entries about edits of quotas: what was expected of each, what came of it, and its revert."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from portal.approvals.edits import PLANNED_WITH, expectation
from portal.audit.models import AuditEntry
from portal.teams.access import dividable_queues, visible_queues
from portal.teams.rights import Person
from scheduling.models import QuotaChange
from scheduling.services.queues.save import may_revert

SAVED = "quota.saved"
KEY = "change"
"""Of what such an entry says: the id of the change."""


@dataclass(frozen=True, slots=True)
class EditOfQuotas:
    change: QuotaChange
    expected: str
    """Empty where nobody planned it, or the reader does not read its queue."""
    may_revert: bool

    @property
    def planned_with(self) -> int | None:
        """The id of the edit of the same queue that it repeats, which was planned for it."""
        return self.change.expected.get(PLANNED_WITH)


def edits_of(entries: Iterable[AuditEntry], reader: Person) -> Mapping[int, EditOfQuotas]:
    """By number of the entry, of changes of queues that the reader sees. Three queries if any."""
    keys = {
        entry.number: (entry.after or {}).get(KEY)
        for entry in entries
        if entry.kind == SAVED and not entry.refused
    }
    wanted = [key for key in keys.values() if isinstance(key, int)]
    if not wanted:
        return {}
    seen = QuotaChange.objects.filter(queue__in=visible_queues(reader))
    changes = seen.select_related("queue", "cluster").in_bulk(wanted)
    divided = set(dividable_queues(reader).values_list("pk", flat=True))
    return {
        number: EditOfQuotas(
            changes[key],
            expectation(changes[key].expected),
            changes[key].queue_id in divided
            and may_revert(changes[key], changes[key].cluster.now()),
        )
        for number, key in keys.items()
        if key in changes
    }
