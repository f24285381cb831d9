"""What the tests of quotas do and look at, in short words."""

from decimal import Decimal

import pytest

from scheduling.services.queues.save import Field, QuotaCell, QuotaError, grid, save_quotas
from tests.factories import NOW
from workshop.demo.organisation import H100


def cell(queue, value, *, gpu_class=H100, field=Field.NOMINAL):
    return QuotaCell(queue, gpu_class, field, None if value is None else Decimal(value))


def save(queue, *cells, **fields):
    return save_quotas(queue=queue, cells=cells, **{"author": None, "reason": "Because", **fields})


def faults(queue, *cells, **fields):
    with pytest.raises(QuotaError) as refusal:
        save(queue, *cells, **fields)
    return refusal.value.faults


def values(queue, name, at=NOW, gpu_class=H100):
    return next(r.values[gpu_class] for r in grid(queue, at).rows if r.queue.name == name)


def nominal(queue, name, at=NOW, gpu_class=H100):
    return values(queue, name, at, gpu_class).nominal / 1000
