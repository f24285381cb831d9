"""What no save of quotas may do, told at the field. The tree is that of ``test_quotas``."""

from datetime import timedelta

import pytest

from scheduling.models import Quota, QuotaChange
from scheduling.services.queues.save import Field
from tests.factories import NOW
from tests.scheduling.services.queues.desk import cell, faults, nominal, save, values
from workshop.demo.organisation import A100, H100

pytestmark = pytest.mark.django_db


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
        "research was given 64 and its queues would hold 72 from 2026-11-29 09:42 UTC."
    )
    save(research, cell("speech", 16), effective_until=later)


def test_sum_of_an_edit_that_begins_later_names_the_moment(cluster, research):
    """The grid shows figures of now, which may add up."""
    later = NOW + timedelta(days=10)

    (fault,) = faults(research, cell("language", 40), effective_from=later)

    assert fault.sentence == (
        "research was given 64 and its queues would hold 68 from 2026-11-29 09:42 UTC."
    )


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
