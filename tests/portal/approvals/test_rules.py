"""Four eyes, bounds, who sees what, and what the parent's rule lets pass."""

from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.approvals import doors, who
from portal.approvals.automatic import set_rule
from portal.approvals.states import Kind, State, Verb
from portal.approvals.who import visible_requests
from scheduling.models import MILLI
from scheduling.services.errors import ServiceError
from tests.factories import NOW
from tests.portal.approvals.conftest import nominal, queue_of
from tests.portal.approvals.test_life import granted

pytestmark = pytest.mark.django_db


def test_nobody_approves_their_own(cluster, people, wish):
    made = doors.submit_new(by=people.lead, wish=wish(queue="language", giver="vision", gpus=2))
    assert made.state == State.APPROVER
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Mine")
    assert caught.value.code == "four_eyes"


def test_superuser_approves_no_own_request_either(cluster, people, wish):
    User.objects.filter(pk=people.lead.pk).update(is_superuser=True)
    people.lead.refresh_from_db()
    made = doors.submit_new(by=people.lead, wish=wish(queue="language", gpus=2))
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Mine")
    assert caught.value.code == "four_eyes"


def test_who_forwarded_does_not_approve(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    doors.forward(by=people.lead, request=made)
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Twice", gpus=2 * MILLI)
    assert caught.value.code == "four_eyes"


def test_lead_approves_no_more_than_the_bound(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="All")
    assert (caught.value.code, caught.value.field) == ("beyond_bound", "gpus")
    assert "Grant 3 at most, or forward it." in str(caught.value)
    assert doors.approve(by=people.lead, request=made, note="3", gpus=3 * MILLI).state == "active"


def test_lead_gives_nothing_of_another_department(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish(giver=None, gpus=2))
    with pytest.raises(ServiceError) as caught:
        doors.approve(by=people.lead, request=made, note="Yes", giver=queue_of(cluster, "ci"))
    assert caught.value.field == "giver"
    assert nominal(cluster, "ci") == 8


def test_stranger_decides_nothing_and_sees_nothing(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    for door in (doors.approve, doors.reject, doors.ask_changes, doors.revoke):
        with pytest.raises(ServiceError) as caught:
            door(by=people.neighbour, request=made, note="Mine now")
        assert caught.value.code == "forbidden"
    assert not visible_requests(people.neighbour).exists()


def test_both_sides_see_a_request_and_only_its_author_a_draft(cluster, people, wish):
    draft = doors.save_draft(by=people.asker, wish=wish())
    seen = {
        name: list(visible_requests(User.objects.get(username=name)))
        for name in ("s.marchetti", "d.okoye", "a.novak", "lead", "approver")
    }
    assert {name for name, rows in seen.items() if rows} == {"s.marchetti"}
    doors.submit(by=people.asker, request=draft)
    for name in seen:
        assert list(visible_requests(User.objects.get(username=name))) == [draft], name


def test_researcher_of_another_team_asks_for_nothing_there(cluster, people, wish):
    with pytest.raises(ServiceError) as caught:
        doors.save_draft(by=people.asker, wish=wish(queue="vision", giver="speech"))
    assert caught.value.code == "forbidden"


def test_turns_go_from_the_lead_to_the_approvers(cluster, people, wish):
    made = doors.submit_new(by=people.asker, wish=wish())
    assert {u.username for u in who.deciders(made)} == {"admin", "approver", "lead"}
    doors.forward(by=people.lead, request=made)
    assert {u.username for u in who.deciders(made)} == {"admin", "approver"}
    assert Verb.APPROVE in who.verbs(people.approver, made)
    assert who.verbs(people.lead, made) == set()
    assert who.verbs(people.asker, made) == {Verb.WITHDRAW}


@pytest.fixture
def rule(cluster, people):
    language = queue_of(cluster, "language")
    return set_rule(
        by=people.lead, queue=language, below_gpus=4 * MILLI, most_days=30, from_siblings=True
    )


def test_amount_below_the_threshold_is_approved_at_once(cluster, people, wish, rule):
    made = doors.submit_new(by=people.asker, wish=wish(giver="pretraining", gpus=3))
    assert (made.state, made.decider) == (State.ACTIVE, None)
    assert made.decision == "Below the threshold that language has set."
    assert nominal(cluster, "alignment") == 15


@pytest.mark.parametrize(
    "asked",
    [
        {"gpus": 4, "giver": "pretraining"},
        {"gpus": 3, "giver": "vision"},
        {"gpus": 3, "giver": "pretraining", "ends_at": NOW + timedelta(days=31)},
        {"gpus": 3, "giver": "pretraining", "ends_at": None},
        {"gpus": 3, "giver": None},
        {"gpus": 3, "giver": None, "figure": "borrowing_limit", "kind": Kind.BOOST},
    ],
)
def test_what_the_rule_does_not_cover_goes_to_people(cluster, people, wish, rule, asked):
    assert doors.submit_new(by=people.asker, wish=wish(**asked)).state == State.APPROVER or (
        asked["gpus"] > 3
    )


def test_small_requests_do_not_add_up_past_the_threshold(cluster, people, wish, rule):
    states = [
        doors.submit_new(by=people.asker, wish=wish(giver="pretraining", gpus=2)).state
        for _ in range(2)
    ]
    assert states == [State.ACTIVE, State.APPROVER]


def test_rule_is_set_by_who_divides_and_in_range(cluster, people):
    language = queue_of(cluster, "language")
    with pytest.raises(ServiceError) as caught:
        set_rule(by=people.asker, queue=language, below_gpus=4000)
    assert caught.value.code == "forbidden"
    with pytest.raises(ServiceError) as caught:
        set_rule(by=people.lead, queue=language, below_gpus=0)
    assert caught.value.field == "below_gpus"
    assert set_rule(by=people.lead, queue=language, below_gpus=None) is None


def test_preview_says_what_it_takes_from_whom_and_whether_less_would_do(cluster, people, wish):
    from portal.approvals.previews import seen_by

    made = doors.submit_new(by=people.asker, wish=wish())
    seen = seen_by(people.approver, cluster, made.preview, about="alignment", gpu_class="h100-80gb")
    rows = {row.queue.name: (row.nominal, row.nominal_after) for row in seen.shares}
    assert (rows["alignment"], rows["vision"], rows["language"]) == ((12, 20), (16, 8), (36, 44))
    assert [one.gpus for one in seen.lesser] == [2, 4, 8]
    assert seen.lesser[-1].is_asked
    assert seen.starts >= 1


@pytest.mark.parametrize(
    ("moves", "told"),
    [
        ([], "nobody starts and nobody leaves"),
        ([("starts", False), ("leaves", False)], "1 workload starts and 1 is evicted"),
        (
            [("leaves", True), ("leaves", True), ("starts", True)],
            "nobody starts and nobody leaves; once the grace is over, 1 workload starts and 2 are evicted",
        ),
    ],
)
def test_headline_tells_now_apart_from_after_the_grace(moves, told):
    from portal.approvals.previews import outcome_of

    assert outcome_of(moves) == told


def test_preview_adds_up_what_the_parent_was_given(cluster, people, wish):
    from portal.approvals.previews import seen_by
    from portal.approvals.wish_plans import of_wish

    told = of_wish(wish(), NOW)
    seen = seen_by(people.approver, cluster, told, about="alignment", gpu_class="h100-80gb")
    rows = [row.nominal for row in seen.sums]
    added = {one.parent: (one.before, one.after, one.given, one.is_refused) for one in rows}
    assert added["language"] == (36, 44, 44, False)
    told = of_wish(wish(giver=""), NOW)
    seen = seen_by(people.approver, cluster, told, about="alignment", gpu_class="h100-80gb")
    (only,) = (row.nominal for row in seen.sums)
    assert (only.parent, only.after, only.given, only.over, only.is_refused) == (
        "language", 44, 36, 8, True,
    )  # fmt: skip


def test_sum_of_a_preview_is_of_the_shares_above_it(cluster, people, wish):
    from portal.approvals.previews import seen_by
    from portal.approvals.wish_plans import of_wish

    seen = seen_by(
        people.approver, cluster, of_wish(wish(), NOW), about="alignment", gpu_class="h100-80gb"
    )
    for row in seen.sums:
        parts = [one for one in seen.shares if one.queue.parent.name == row.nominal.parent]
        assert row.fair_share == pytest.approx(
            (sum(one.before for one in parts), sum(one.after for one in parts))
        )
        assert row.allocated == pytest.approx(sum(one.allocated for one in parts))


def test_preview_names_no_work_and_no_queue_out_of_sight(cluster, people, wish):
    from portal.approvals.previews import seen_by

    made = doors.submit_new(by=people.asker, wish=wish())
    seen = seen_by(people.asker, cluster, made.preview, about="alignment", gpu_class="h100-80gb")
    told = {line.queue for line in seen.lines} | {row.queue.name for row in seen.shares}
    assert told <= {"alignment", "pretraining", "language", "research", "another team"}
    assert all(line.work is None and not line.sentence
               for line in seen.lines if line.queue == "another team")  # fmt: skip


def test_cluster_that_does_not_answer_is_said_and_holds_up_no_decision(
    cluster, people, wish, monkeypatch
):
    from scheduling.services.snapshot import build as snapshots

    def silent(cluster):
        raise OSError("no route")

    monkeypatch.setattr(snapshots, "live", silent)
    made = granted(people, wish)
    assert made.state == State.ACTIVE
    assert "does not answer" in made.preview["fault"]
