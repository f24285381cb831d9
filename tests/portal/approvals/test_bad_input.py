"""What cannot be asked for, and what is said would work instead."""

from datetime import timedelta

import pytest

from portal.approvals import doors
from portal.approvals.models import QuotaRequest
from portal.approvals.states import Figure, Kind
from portal.approvals.wishes import WishError
from scheduling.models import MILLI, PriorityClass, Queue
from scheduling.services.errors import ServiceError
from tests.factories import NOW
from tests.portal.approvals.conftest import queue_of
from workshop.demo.organisation import H100

pytestmark = pytest.mark.django_db

ROWS = {
    "in the past": ({"starts_at": NOW - timedelta(days=1)}, "starts_at", "has passed"),
    "end in the past": ({"ends_at": NOW - timedelta(days=1)}, "ends_at", "has passed"),
    "end before beginning": (
        {"starts_at": NOW + timedelta(days=9), "ends_at": NOW + timedelta(days=2)},
        "ends_at", "before it begins",
    ),
    "boost without end": ({"kind": Kind.BOOST, "ends_at": None}, "ends_at", "A boost ends."),
    "class that is gone": ({"gpu_class": "v100"}, "gpu_class", f"Ask for one of {H100}"),
    "nothing": ({"gpus": 0}, "gpus", "no GPU"),
    "no reason": ({"reason": " "}, "reason", "Nobody knows why"),
    "reason too long": ({"reason": "x" * 1001}, "reason", "too long"),
    "more than the parent has": (
        {"giver": None, "gpus": 25}, "gpus",
        "language was given 36 h100-80gb in all, and alignment has 12 of it. Ask for 24 at most, or",
    ),
    "more than the giver has": ({"gpus": 20}, "gpus", "vision has 16 h100-80gb. Ask for 16 at most"),
    "giver above it": ({"giver": "language"}, "giver", "is no queue beside"),
    "the whole cluster": ({"queue": "fra1", "giver": None}, "queue", "is the whole cluster"),
    "queue without name": ({"kind": Kind.QUEUE, "queue": "research"}, "name", "needs a name"),
    "queue of a bad name": (
        {"kind": Kind.QUEUE, "queue": "research", "name": "No Name"}, "name", "lower-case"
    ),
    "queue of a taken name": (
        {"kind": Kind.QUEUE, "queue": "research", "name": "speech"}, "name", "has a queue named speech"
    ),
    "queue of a hidden name": (
        {"kind": Kind.QUEUE, "queue": "research", "name": "search"}, "name", "cannot be used here"
    ),
    "queue below one that works": (
        {"kind": Kind.QUEUE, "queue": "alignment", "name": "evals"}, "queue", "only leaves may"
    ),
    "access to both": (
        {"kind": Kind.ACCESS, "priority_class": "inference"}, "gpu_class", "one of the two"
    ),
    "access that all have": ({"kind": Kind.ACCESS}, "gpu_class", "may use h100-80gb already"),
    "access to a priority that is gone": (
        {"kind": Kind.ACCESS, "gpu_class": "", "priority_class": "gold"}, "priority_class", "no priority"
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_request_says_field_and_remedy_and_keeps_nothing(cluster, people, wish, row):
    asked, field, said = row
    with pytest.raises(WishError) as caught:
        doors.submit_new(by=people.lead, wish=wish(**asked))
    fault = next(one for one in caught.value.faults if one.field == field)
    assert said in str(fault)
    assert not QuotaRequest.objects.exists()


def test_every_fault_is_told_at_once(cluster, people, wish):
    with pytest.raises(WishError) as caught:
        doors.submit_new(by=people.lead, wish=wish(gpus=0, reason="", ends_at=NOW))
    assert {fault.field for fault in caught.value.faults} == {"gpus", "reason", "ends_at"}


def test_remedy_names_no_queue_that_the_asker_does_not_see(cluster, people, wish):
    with pytest.raises(WishError) as caught:
        doors.submit_new(by=people.asker, wish=wish(giver=None, gpus=25))
    assert "vision" not in str(caught.value)


def test_limit_that_is_none_needs_no_request(cluster, people, wish):
    queue_of(cluster, "alignment").quotas.update(borrowing_limit_gpus=None)
    with pytest.raises(WishError) as caught:
        doors.submit_new(by=people.asker, wish=wish(figure=Figure.BORROWING_LIMIT, giver=None))
    assert caught.value.field == "figure"


def test_limit_is_raised_for_a_while_and_takes_from_nobody(cluster, people, wish):
    asked = wish(kind=Kind.BOOST, figure=Figure.BORROWING_LIMIT, giver=None, gpus=3)
    made = doors.submit_new(by=people.asker, wish=asked)
    doors.approve(by=people.lead, request=made, note="Yes")
    rows = queue_of(cluster, "alignment").quotas.filter(gpu_class__name=H100)
    assert [row.borrowing_limit_gpus for row in rows.in_force(NOW)] == [15 * MILLI]
    assert rows.in_force(NOW + timedelta(days=28)).get().borrowing_limit_gpus == 12 * MILLI


def test_class_that_went_after_submission_is_said_at_the_decision(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    QuotaRequest.objects.filter(pk=made.pk).update(gpu_class="v100")
    made.refresh_from_db()
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Yes")
    assert "no GPU class v100" in str(caught.value)


def test_request_whose_queue_is_gone_can_only_be_withdrawn(cluster, people, wish):
    queue = Queue.objects.create(
        cluster=cluster, parent=queue_of(cluster, "research"), name="short"
    )
    made = doors.submit_new(by=people.lead, wish=wish(queue="short", giver="speech", gpus=2))
    queue.delete()
    made.refresh_from_db()
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.approver, request=made, note="Yes")
    assert caught.value.code == "gone"
    assert doors.withdraw(by=people.lead, request=made).state == "withdrawn"


def test_end_that_passed_while_it_waited_asks_for_another(cluster, people, wish):
    from tests.portal.approvals.conftest import set_clock

    made = doors.submit_new(by=people.asker, wish=wish(gpus=2, ends_at=NOW + timedelta(hours=1)))
    set_clock(cluster, NOW + timedelta(hours=2))
    made.refresh_from_db()
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Yes")
    assert caught.value.field == "ends_at"


def test_decision_without_a_reason_is_refused(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(gpus=2))
    for door in (doors.approve, doors.reject, doors.ask_changes):
        with pytest.raises(ServiceError) as caught:
            door(by=people.lead, request=made, note=" ")
        assert caught.value.field == "note"


def test_access_to_a_priority_reaches_submission_and_ends_by_the_clock(cluster, people, wish):
    from scheduling.services.queues import service_classes
    from tests.portal.approvals.conftest import set_clock

    assert PriorityClass.objects.filter(name="inference").exists()
    asked = wish(kind=Kind.ACCESS, gpu_class="", priority_class="inference", gpus=None, giver=None)

    def allowed(user: str) -> bool:
        held = service_classes.load(cluster).of(user, "research/language/alignment")
        return any("inference" in (one.priority_classes or {"inference"}) for one in held)

    assert not allowed("s.marchetti")
    made = doors.submit_new(by=people.asker, wish=asked)
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Yes")
    assert caught.value.code == "beyond_bound"
    doors.forward(by=people.lead, request=made)
    doors.approve(by=people.approver, request=made, note="Yes")
    assert allowed("s.marchetti")
    assert not allowed("a.novak")
    set_clock(cluster, NOW + timedelta(days=29))
    assert not allowed("s.marchetti")
