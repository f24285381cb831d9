"""How much longer, or shorter, a run is on the class that its work has on its own quota."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from scheduling.models import Prediction, Workload

Ratios = Mapping[str, float]
"""GPU class -> how many times sooner a run ends there than on the first that its author names."""


def ratios_of(works: Iterable[Workload]) -> dict[str, Ratios]:
    """By uid, of those of ``works`` that may run on several classes, as far as it was predicted. One query;
    none where there is no such work."""
    several = [work.pk for work in works if len(work.gpu_classes) > 1 and work.pk is not None]
    if not several:
        return {}
    known = Prediction.objects.filter(workload__in=several).exclude(paces={}).order_by()
    return dict(known.values_list("workload__uid", "paces"))


def longer(ratios: Ratios, real: str, own: str) -> float:
    """How many times as long a run takes on class ``own`` as on ``real``; 1 where nobody knows."""
    here, there = ratios.get(real), ratios.get(own)
    return here / there if here and there else 1.0
