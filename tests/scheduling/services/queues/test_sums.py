"""What a preview adds up is refused where the save refuses it, and nowhere else."""

from __future__ import annotations

import pytest

from scheduling.models import MILLI, Quota
from scheduling.services.queues.shift import ShiftedFigure, sums
from tests.factories import NOW
from tests.scheduling.services.queues.desk import cell, faults, save
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("given", "asked", "is_refused"),
    [
        (36, 25, True),  # 24 of 36 are the child's: one more breaks the sum
        (36, 23, False),
        (30, 23, False),  # broken before, less so now
        (32, 25, False),  # its parent gets two more, it one
    ],
)
def test_sum_is_refused_as_a_save_refuses_it(cluster, research, given, asked, is_refused):
    language, child = (cluster.queues.get(name=name) for name in ("language", "pretraining"))
    gpu_class = cluster.gpu_classes.get(name=H100)
    told, cells = [ShiftedFigure(child, 24 * MILLI, asked * MILLI)], [cell("pretraining", asked)]
    if given != 36:
        Quota.objects.filter(queue=language, gpu_class=gpu_class).update(nominal_gpus=30 * MILLI)
    if given == 32:
        told.append(ShiftedFigure(language, 30 * MILLI, 32 * MILLI))
        cells.append(cell("language", 32))

    below = next(one for one in sums(told, gpu_class, NOW) if one.parent == "language")

    assert below.is_refused is is_refused
    if is_refused:
        assert faults(research, *cells)[0].code == "sum_above_parent"
    else:
        save(research, *cells)
