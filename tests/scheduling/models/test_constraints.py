"""What the database itself refuses, whoever writes: the tree, the ranges, the signs."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import Error, transaction

from scheduling.models import GpuClass, Queue, Quota
from tests.factories import make_cluster

START = datetime(2026, 1, 1, tzinfo=UTC)


def day(number):
    return None if number is None else START + timedelta(days=number)


class TestConstraints:
    """On the database of the settings; ``make test-services`` runs them on PostgreSQL as well."""

    @pytest.fixture
    def tree(self, db):
        """root ── a ── b ── c"""
        cluster = make_cluster()
        above = Queue.objects.create(cluster=cluster, name="root")
        queues = {"root": above}
        for name in "abc":
            above = queues[name] = Queue.objects.create(cluster=cluster, parent=above, name=name)
        return queues

    @pytest.fixture
    def quota(self, tree):
        gpu_class = GpuClass.objects.create(cluster=tree["a"].cluster, name="h100")

        def make(first, last, **fields):
            return Quota.objects.create(
                queue=tree["a"], gpu_class=gpu_class, effective_from=day(first),
                effective_until=day(last), **fields,
            )  # fmt: skip

        return make

    def refused(self, write):
        with pytest.raises(Error), transaction.atomic():
            write()

    @pytest.mark.parametrize("below", ["a", "b", "c"])
    def test_cycle_is_refused(self, tree, below):
        moved = Queue.objects.filter(pk=tree["a"].pk)
        self.refused(lambda: moved.update(parent=tree[below]))

    def test_cycle_is_refused_at_parent_by_the_model(self, tree):
        tree["a"].parent = tree["c"]
        with pytest.raises(ValidationError) as error:
            tree["a"].full_clean(exclude=["path"])
        assert list(error.value.message_dict) == ["parent"]

    def test_move_without_cycle_passes(self, tree):
        assert Queue.objects.filter(pk=tree["c"].pk).update(parent=tree["root"]) == 1

    def test_second_root_is_refused(self, tree):
        self.refused(lambda: Queue.objects.create(cluster=tree["a"].cluster, name="other"))

    def test_name_is_unique_in_the_cluster(self, tree):
        self.refused(
            lambda: Queue.objects.create(cluster=tree["a"].cluster, parent=tree["root"], name="c")
        )

    @pytest.mark.parametrize(
        ("first", "last"), [(0, 10), (5, 15), (9, None), (-5, 1), (2, 3), (-1, None)]
    )
    def test_overlapping_range_is_refused(self, quota, first, last):
        quota(0, 10)
        self.refused(lambda: quota(first, last))

    @pytest.mark.parametrize(("first", "last"), [(10, None), (10, 11), (-5, 0)])
    def test_adjoining_range_passes(self, quota, first, last):
        quota(0, 10)
        quota(first, last)

    def test_range_stretched_over_another_is_refused(self, quota):
        first = quota(0, 10)
        quota(10, None)
        self.refused(lambda: Quota.objects.filter(pk=first.pk).update(effective_until=day(11)))

    def test_range_that_ends_when_it_begins_is_refused(self, quota):
        self.refused(lambda: quota(3, 3))

    @pytest.mark.parametrize(
        "field", ["nominal_gpus", "borrowing_limit_gpus", "lending_limit_gpus", "weight"]
    )
    def test_negative_figure_is_refused(self, quota, field):
        self.refused(lambda: quota(0, None, **{field: -1}))
