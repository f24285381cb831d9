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
from decimal import Decimal

import pytest

from portal.demo.organisation import A100, H100
from scheduling.models import Cluster, Queue, Quota, QuotaChange
from scheduling.services.errors import ServiceError
from scheduling.services.quotas import (
    Field,
    QuotaCell,
    QuotaError,
    grid,
    history,
    may_revert,
    revert_change,
    save_quotas,
)
from tests.factories import NOW, example_cluster, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(monkeypatch):
    """The example organisation whose clock stands at NOW; ``cluster.tick(days)`` moves it."""
    cluster = example_cluster()
    clock = [NOW]
    monkeypatch.setattr(Cluster, "now", lambda self: clock[0])
    cluster.tick = lambda **delta: clock.__setitem__(0, clock[0] + timedelta(**delta))
    return cluster


@pytest.fixture
def research(cluster):
    return cluster.queues.get(name="research")


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


# -- what a save does ---------------------------------------------------------------------------


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


# -- what is refused, and where -----------------------------------------------------------------


def test_quota_below_zero_is_refused_at_the_field(cluster, research):
    (fault,) = faults(research, cell("vision", -1))

    assert (fault.code, fault.queue, fault.gpu_class, fault.field) == (
        "below_zero", "vision", H100, "nominal",
    )  # fmt: skip
    assert fault.remedy == "Write 0 or more."


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        (Field.BORROWING_LIMIT, "-0.001", "below_zero"),
        (Field.LENDING_LIMIT, "-3", "below_zero"),
        (Field.WEIGHT, "-1", "below_zero"),
        (Field.NOMINAL, None, "missing"),
        (Field.WEIGHT, None, "missing"),
        (Field.NOMINAL, "NaN", "not_a_number"),
        (Field.NOMINAL, "Infinity", "not_a_number"),
        (Field.NOMINAL, "1e999999", "too_large"),
        (Field.WEIGHT, "999999.001", "too_large"),
        (Field.NOMINAL, "0.0001", "too_fine"),
        (Field.NOMINAL, "1e-999999", "too_fine"),
        (Field.NOMINAL, "-1e999999", "below_zero"),
    ],
)
def test_figure_that_no_quota_has_is_refused_at_the_field(cluster, research, field, value, code):
    (fault,) = faults(research, cell("vision", value, field=field))

    assert (fault.code, fault.field) == (code, field.value)
    assert len(fault.sentence) < 100
    assert fault.remedy


def test_largest_figures_fit_the_database(cluster, research):
    save(cluster.queues.get(parent=None), cell("research", 999_999))
    save(research, cell("vision", "999999", field=Field.WEIGHT))

    assert values(research, "vision").weight == 999_999


def test_sum_above_the_parent_is_refused_with_the_sum_and_two_remedies(cluster, research):
    (fault,) = faults(research, cell("alignment", 4, gpu_class=A100))

    assert fault.where == "alignment, a100-40gb, nominal"
    assert fault.sentence == "language was given 4 and its queues would hold 6."
    assert fault.remedy == (
        "Lower pretraining by 2, or raise language by 2 from vision, speech or robotics."
    )
    assert fault.parent == "language"
    assert QuotaChange.objects.count() == 0


def test_sum_above_the_top_names_whom_to_ask(cluster, research):
    (fault,) = faults(research, cell("vision", 20))

    assert fault.sentence == "research was given 64 and its queues would hold 68."
    assert fault.remedy == "Lower language by 4, or ask for 4 more for research."


def test_parent_lowered_below_its_children_is_refused_at_the_parent(cluster, research):
    (fault,) = faults(research, cell("language", 30))

    assert fault.queue == "language"
    assert fault.sentence == "language was given 30 and its queues would hold 36."


def test_sums_are_those_of_the_whole_edit(cluster, research):
    save(research, cell("language", 44), cell("alignment", 20), cell("vision", 8))

    assert nominal(research, "alignment") == 20


def test_every_broken_sum_is_named_once(cluster, research):
    found = faults(research, cell("language", 44), cell("alignment", 24), cell("speech", 9))

    assert [(f.parent, f.queue) for f in found] == [("research", "language"), (
        "language", "alignment",
    )]  # fmt: skip


def test_sum_that_breaks_later_names_the_moment(cluster, research):
    later = NOW + timedelta(days=10)
    save(research, cell("vision", 8), effective_until=later)

    (fault,) = faults(research, cell("speech", 16))

    assert fault.sentence == (
        "research was given 64 and its queues would hold 72 from 29 Nov 2026 09:42 UTC."
    )
    save(research, cell("speech", 16), effective_until=later)


def test_excess_that_stood_before_may_be_lessened(cluster, research):
    Quota.objects.filter(queue__name="vision", gpu_class__name=H100).update(nominal_gpus=30_000)

    save(research, cell("vision", 20))

    (fault,) = faults(research, cell("vision", 21))
    assert fault.code == "sum_above_parent"


def test_root_may_be_oversubscribed(cluster):
    save(cluster.queues.get(parent=None), cell("research", 500))


def test_edited_queue_itself_is_refused(cluster, research):
    (fault,) = faults(research, cell("research", 65))

    assert fault.code == "not_below"


@pytest.mark.parametrize("name", ["platform", "inference", "fra1", "nowhere"])
def test_queue_elsewhere_is_refused(cluster, research, name):
    (fault,) = faults(research, cell(name, 1))

    assert (fault.code, fault.queue) == ("not_below", name)


def test_unknown_class_is_refused_with_those_there_are(cluster, research):
    (fault,) = faults(research, cell("vision", 1, gpu_class="b200"))

    assert fault.code == "unknown_class"
    assert H100 in fault.remedy


def test_figure_given_twice_is_refused(cluster, research):
    assert {f.code for f in faults(research, cell("vision", 1), cell("vision", 2))} == {"twice"}


def test_reason_is_required(cluster, research):
    (fault,) = faults(research, cell("vision", 8), reason="  ")

    assert (fault.field, fault.queue) == ("reason", None)


def test_range_that_ends_before_it_begins_is_refused_at_its_end(cluster, research):
    (fault,) = faults(
        research,
        cell("vision", 8),
        effective_from=NOW + timedelta(days=2),
        effective_until=NOW + timedelta(days=1),
    )

    assert fault.field == "effective_until"


def test_range_that_has_ended_is_refused(cluster, research):
    (fault,) = faults(research, cell("vision", 8), effective_until=NOW)

    assert fault.field == "effective_until"


def test_beginning_in_the_past_is_refused(cluster, research):
    (fault,) = faults(research, cell("vision", 8), effective_from=NOW - timedelta(seconds=1))

    assert (fault.field, fault.code) == ("effective_from", "in_the_past")


def test_edit_of_nothing_is_refused(cluster, research):
    (fault,) = faults(research, cell("vision", 16))

    assert fault.code == "nothing_changes"


def test_all_faults_are_told_at_once(cluster, research):
    found = faults(research, cell("vision", -1), cell("speech", "NaN"), reason="")

    assert [f.field for f in found] == ["reason", "nominal", "nominal"]


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
