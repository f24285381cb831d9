"""What waits: whether an object may start as it stands, and how it is put back as it was written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from scheduling.cluster.adapters import Adapter, Observed, notes
from scheduling.cluster.enforcement.enforcer import Act
from scheduling.cluster.picture.compose import Picture
from scheduling.cluster.vocabulary import labels
from scheduling.cluster.vocabulary.devices import Claims
from scheduling.services.snapshot.situations import Known, Situation

Json = dict[str, Any]


def is_marked(obj: Json) -> bool:
    """It was admitted by Weir and not suspended since."""
    return labels.GPU_CLASS in notes.of(obj)


def may_start(adapter: Adapter, obj: Json) -> bool:
    """It waits, nothing of its last run is left, and nobody holds it."""
    held = notes.is_held(notes.of(obj))
    return not (held or is_marked(obj)) and _is_at_rest(adapter, obj)


def restorations(
    workloads: Iterable[Observed],
    adapters: Mapping[str, Adapter],
    known: Mapping[str, Known],
    resource_names: Sequence[str],
    picture: Picture,
) -> Iterator[Act]:
    """Acts that take out what an admission put into those of ``workloads`` that wait again: people see, and
    edit, what they wrote. Nobody's start is kept waiting for it."""
    for observed in workloads:
        if _is_to_be_restored(observed, known.get(observed.uid)):
            claims = picture.devices.claims(observed.namespace)
            yield _restoration(observed, adapters[observed.kind], resource_names, claims)


def _is_to_be_restored(observed: Observed, known: Known | None) -> bool:
    if known is None or known.situation is not Situation.WAITING or known.blocked is not None:
        return False
    return observed.altered and observed.suspended and not observed.deleting


def _restoration(
    observed: Observed, adapter: Adapter, resource_names: Sequence[str], claims: Claims
) -> Act:
    def decide(obj: Json) -> Json | None:
        is_left = labels.ORIGINAL in notes.of(obj) and not is_marked(obj)
        if not is_left or not _is_at_rest(adapter, obj):
            return None
        return adapter.restoration(obj, resource_names, claims)

    return Act(adapter, observed, decide, purpose="put back")


def _is_at_rest(adapter: Adapter, obj: Json) -> bool:
    if adapter.is_over(obj) or not adapter.is_suspended(obj):
        return False
    return not adapter.unsettled(obj)
