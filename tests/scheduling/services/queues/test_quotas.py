"""The door of quotas. The tree of the example organisation, h100-80gb nominal:

research 64
├── language 36
│   ├── pretraining 24
│   └── alignment 12
├── vision 16
├── speech 8
└── robotics 4
platform 24 … products 32 …
"""

from datetime import timedelta

import pytest

from scheduling.models import Cluster, Queue, Quota, QuotaChange
from scheduling.services.errors import ServiceError
from scheduling.services.queues.save import (
    Field,
    QuotaError,
    grid,
    history,
    may_revert,
    revert_change,
)
from tests.factories import NOW, make_user
from tests.scheduling.services.queues.desk import cell, nominal, save, values
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db


def test_save_holds_from_now_and_keeps_who_when_and_why(cluster, research):
    lead = make_user("lead-2")
    revision = Cluster.objects.get().revision

    change = save(research, cell("vision", 8), cell("speech", 16), author=lead, reason=" Corpus ")

    assert nominal(research, "vision") == 8
    assert nominal(research, "speech") == 16
    assert (change.author, change.reason, change.at) == (lead, "Corpus", NOW)
    assert change.cells == [
        {"queue": "vision", "gpu_class": H100, "field": "nominal", "before": 16, "after": 8},
        {"queue": "speech", "gpu_class": H100, "field": "nominal", "before": 8, "after": 16},
    ]
    assert Cluster.objects.get().revision == revision + 1


def test_save_leaves_what_was_in_force_readable(cluster, research):
    cluster.tick(days=1)
    save(research, cell("vision", 8))

    assert nominal(research, "vision", NOW) == 16
    assert nominal(research, "vision", NOW + timedelta(days=1)) == 8


def test_save_ends_the_old_row_and_brings_it_back_after_until(cluster, research):
    until = NOW + timedelta(days=30)
    change = save(research, cell("vision", 8), effective_until=until)

    rows = Quota.objects.filter(queue__name="vision", gpu_class__name=H100)
    assert [(r.nominal_gpus, r.effective_from, r.effective_until, r.change) for r in rows] == [
        (16_000, NOW - timedelta(days=60), NOW, None),
        (8_000, NOW, until, change),
        (16_000, until, None, change),
    ]


def test_save_from_a_later_day_changes_nothing_before_it(cluster, research):
    later = NOW + timedelta(days=3)
    save(research, cell("vision", 8), effective_from=later)

    assert nominal(research, "vision", later - timedelta(seconds=1)) == 16
    assert nominal(research, "vision", later) == 8


def test_open_edit_overrides_what_was_scheduled_for_the_same_field_only(cluster, research):
    until = NOW + timedelta(days=30)
    save(research, cell("vision", 8), cell("vision", 3, field=Field.WEIGHT), effective_until=until)
    save(research, cell("vision", 4))

    after = values(research, "vision", until)
    assert (after.nominal, after.weight) == (4_000, 1)


def test_save_twice_at_one_instant_keeps_the_last(cluster, research):
    save(research, cell("vision", 8))
    save(research, cell("vision", 6))

    assert nominal(research, "vision") == 6
    assert QuotaChange.objects.count() == 2


def test_save_where_no_row_is_starts_from_the_defaults(cluster, research):
    Quota.objects.filter(queue__name="speech", gpu_class__name=H100).delete()

    save(research, cell("speech", 2))

    assert values(research, "speech").nominal == 2_000
    assert values(research, "speech").borrowing_limit is None


def test_limits_may_be_unlimited_and_zero(cluster, research):
    save(
        research,
        cell("vision", None, field=Field.BORROWING_LIMIT),
        cell("vision", 0, field=Field.LENDING_LIMIT),
    )

    assert values(research, "vision").borrowing_limit is None
    assert values(research, "vision").lending_limit == 0


def test_cells_that_already_hold_are_passed_over(cluster, research):
    change = save(research, cell("vision", 16), cell("speech", 4))

    assert [c["queue"] for c in change.cells] == ["speech"]
    assert Quota.objects.filter(queue__name="vision", gpu_class__name=H100).count() == 1


def test_fractions_are_exact_to_a_thousandth(cluster, research):
    save(research, cell("vision", "15.999"))

    assert values(research, "vision").nominal == 15_999


# -- two people at once -------------------------------------------------------------------------


def test_save_on_a_state_that_changed_meanwhile_is_refused(cluster, research):
    seen = grid(research, NOW).version
    save(research, cell("vision", 8), author=make_user("i.haddad"))

    with pytest.raises(ServiceError, match=r"i\.haddad saved other quotas of research") as refusal:
        save(research, cell("speech", 4), version=seen)
    assert refusal.value.code == "stale"


def test_own_quota_changed_from_above_makes_the_edit_stale(cluster, research):
    seen = grid(research, NOW).version
    save(cluster.queues.get(parent=None), cell("research", 70))

    with pytest.raises(ServiceError, match="saved other quotas"):
        save(research, cell("speech", 4), version=seen)


def test_save_elsewhere_does_not_make_the_edit_stale(cluster, research):
    seen = grid(research, NOW).version
    save(cluster.queues.get(name="products"), cell("search", 10))

    save(research, cell("speech", 4), version=seen)


# -- revert and history -------------------------------------------------------------------------


def test_revert_puts_the_old_values_back_as_a_change_of_its_own(cluster, research):
    change = save(research, cell("vision", 8), cell("speech", 16))
    cluster.tick(days=1)

    back = revert_change(change=change, author=None, reason="It was wrong")

    assert nominal(research, "vision", NOW + timedelta(days=1)) == 16
    assert nominal(research, "vision", NOW) == 8
    assert list(history(research)) == [back, change]


def test_revert_of_a_change_ahead_begins_where_it_would_have(cluster, research):
    later = NOW + timedelta(days=5)
    change = save(research, cell("vision", 8), effective_from=later)

    revert_change(change=change, author=None, reason="Not needed")

    assert nominal(research, "vision", later) == 16


def test_revert_of_what_changed_again_is_refused(cluster, research):
    change = save(research, cell("vision", 8))
    save(research, cell("vision", 6))

    with pytest.raises(ServiceError, match="changed again since"):
        revert_change(change=change, author=None, reason="Undo")


def test_revert_of_what_has_ended_is_refused(cluster, research):
    change = save(research, cell("vision", 8), effective_until=NOW + timedelta(days=1))
    cluster.tick(days=2)

    assert not may_revert(change, cluster.now())
    with pytest.raises(ServiceError, match="has ended"):
        revert_change(change=change, author=None, reason="Undo")


def test_revert_that_would_break_a_sum_is_refused(cluster, research):
    change = save(research, cell("vision", 8))
    save(research, cell("speech", 16))

    with pytest.raises(QuotaError, match="would hold 72"):
        revert_change(change=change, author=None, reason="Undo")


def test_revert_of_a_queue_that_moved_away_is_refused(cluster, research):
    change = save(research, cell("robotics", 2))
    robotics = Queue.objects.get(name="robotics")
    robotics.parent = cluster.queues.get(parent=None)
    robotics.save()

    with pytest.raises(ServiceError, match="no longer below"):
        revert_change(change=change, author=None, reason="Undo")


def test_history_shows_what_touched_the_subtree_from_above_and_nothing_else(cluster, research):
    root = cluster.queues.get(parent=None)
    above = save(root, cell("vision", 8))
    save(cluster.queues.get(name="products"), cell("search", 10))
    below = save(cluster.queues.get(name="language"), cell("alignment", 10))

    assert set(history(research)) == {above, below}


def test_grid_lists_the_subtree_depth_first_with_the_top_first(cluster, research):
    rows = grid(research, NOW).rows

    assert [(r.queue.name, r.depth) for r in rows] == [
        ("research", 0), ("language", 1), ("pretraining", 2), ("alignment", 2),
        ("vision", 1), ("speech", 1), ("robotics", 1),
    ]  # fmt: skip


def test_grid_costs_the_same_for_any_size(cluster, research, django_assert_num_queries):
    with django_assert_num_queries(6):
        grid(Queue.objects.get(pk=research.pk), NOW)
    with django_assert_num_queries(6):
        grid(Queue.objects.get(parent=None), NOW)
