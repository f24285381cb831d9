"""The page of learned orders: what it says in each state, who may do what, and the same by REST."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.urls import reverse

from portal.accounts.models import User
from portal.web.learned import differing, drawing, tables
from portal.web.learned.page import page
from portal.web.learned.words import BOUNDS, FEATURES, VICTIM_FEATURES
from scheduling.engine.features import NAMES, VICTIM_NAMES
from scheduling.models import LearnedOrder, LearnedState, LearnedStep, Queue, Workload
from scheduling.services.learned import figures, states, training
from scheduling.services.learned.told import document
from scheduling.services.snapshot import build as snapshots
from tests.factories import NOW, example_cluster
from tests.foresight import live_of
from tests.lab import with_work
from tests.learned import WEIGHTS, an_order, verdict
from tests.portal.web.lab.test_run_times import seen_by

pytestmark = pytest.mark.django_db
URL = "/c/fra1/learned-policy/"
S = LearnedState


@pytest.fixture
def cluster():
    return example_cluster()


def shown(cluster):
    return page(cluster).finding


def test_without_an_order_and_with_too_short_a_past_the_page_says_what_is_lacking(cluster):
    bold, muted = shown(cluster)
    assert bold == "There is no learned order yet, and none can be trained now."
    assert "whole day" in muted
    assert "disabled" in seen_by("admin", URL).content.decode()


def test_without_an_order_and_with_a_past_one_can_be_trained(cluster):
    with_work(cluster)
    assert shown(cluster) == (
        "There is no learned order yet.", "Promise decides. Train one on what came so far.",
    )  # fmt: skip


def test_where_nothing_gives_out_by_merit_the_page_says_so(cluster):
    with_work(cluster)
    Queue.objects.filter(cluster=cluster).update(sharing="")
    assert "No queue gives out by promise or by throughput" in shown(cluster)[1]


@pytest.mark.parametrize(
    ("state", "bold", "muted"),
    [
        (S.TRAINING, "v1 is in training.", "Promise decides. It is judged on later days"),
        (
            S.SHADOW,
            "v1 is in shadow, better than Promise on 2 of 2 windows and worse on none, with fairness kept.",
            "No cycle was planned again",
        ),
        (
            S.DECIDING,
            "v1 decides, better than Promise on 2 of 2 windows and worse on none, with fairness kept.",
            "It is checked every day",
        ),
        (S.REJECTED, "v1 was rejected: because.", "Promise decides."),
        (S.DEMOTED, "v1 was demoted: because.", "Promise decides."),
    ],
)
def test_finding_tells_the_state(cluster, state, bold, muted):
    an_order(cluster, state)
    found = shown(cluster)
    assert found[0] == bold
    assert found[1].startswith(muted)


def test_who_is_no_better_says_so(cluster):
    an_order(cluster, S.SHADOW, verdict=verdict("noise"))
    assert (
        "no better than Promise on any of 2 windows; it is not yet better than every"
        in shown(cluster)[0]
    )


def test_page_in_shadow_shows_verdicts_weights_and_what_would_differ(cluster):
    order = an_order(cluster, S.SHADOW, looked_at=100, differed=14)
    told = {"name": "ns/long", "gpus": 2, "gpu_class": "l4", "expected_s": 2700, "waited_s": 60,
            "queue": "search", "user": "p.rossi"}  # fmt: skip
    would = told | {"name": "ns/short", "expected_s": 1440, "waited_s": 7200}
    order.differences.create(number=7, at=NOW, decided=told, would=would)
    text = seen_by("admin", URL).content.decode()
    for said in (
        "Last 100 decisions: 14 would differ", "ns/long", "expected 0:24 against 0:45", "shorter goes first",
        "−8 ± 2", "86 the same", "Withdraw v1", "not replayed yet",
    ):  # fmt: skip
        assert said in text, said


def a_difference(order, number, kind="start", **more):
    told = {"name": "ns/long", "gpus": 2, "gpu_class": "l4", "expected_s": 2700, "waited_s": 60,
            "queue": "search", "user": "p.rossi", "lost_gpu_s": 4320}  # fmt: skip
    would = {**told, "name": "ns/short", "lost_gpu_s": 1080, **more}
    return order.differences.create(number=number, at=NOW, kind=kind, decided=told, would=would)


def an_effect(order, number, wait_s, least_s, most_s, lost_gpu_s=0.0, **more):
    return order.effects.create(
        number=number, at=NOW, until=NOW + timedelta(hours=5), wait_s=wait_s, least_s=least_s,
        most_s=most_s, lost_gpu_s=lost_gpu_s, **more,
    )  # fmt: skip


def test_effects_stand_beside_their_differences_with_their_sums(cluster):
    order = an_order(cluster, S.SHADOW, looked_at=100, differed=4)
    a_difference(order, 9)
    a_difference(order, 8, kind="evict")
    a_difference(order, 7)
    a_difference(order, 7)
    an_effect(order, 9, -1140, -1800, -240)
    an_effect(order, 8, 960, -120, 1200, lost_gpu_s=-1440)
    told = differing.differing(order)
    assert [(r.effect.wait, r.effect.span, r.effect.lost) for r in told.rows[:2]] == [
        ("−19 min", "−30 to −4 min", "0"), ("+16 min", "−2 to +20 min", "−0.4"),
    ]  # fmt: skip
    assert [row.effect.verdict for row in told.rows[:2]] == ["better", "noise"]
    assert [row.effect.why_not for row in told.rows[2:]] == [
        "not replayed yet",
        "with the one above",
    ]
    assert (told.total, told.wait, told.lost) == (
        "All 4: 3 of order, 1 of victims", "−3 min", "−0.4",
    )  # fmt: skip
    assert told.rows[1].why == "loses 0.3 against 1.2 GPU-h"
    text = seen_by("admin", URL).content.decode()
    assert "2 cycles replayed: 1 better, 0 worse, 1 noise; 1 not yet, or not replayable." in text


def test_names_lead_to_the_work_as_far_as_it_is_known(cluster):
    order = an_order(cluster, S.SHADOW, looked_at=1, differed=1)
    row = a_difference(order, 9)
    known = Workload.objects.filter(cluster=cluster).first()
    row.decided["name"] = f"{known.namespace}/{known.name}"
    row.save()
    (told,) = differing.differing(order).rows
    assert (told.decided_uid, told.would_uid) == (known.uid, "")
    assert f'href="/c/fra1/w/{known.uid}/"' in seen_by("admin", URL).content.decode()


def test_cycle_that_cannot_be_replayed_says_why(cluster):
    order = an_order(cluster, S.SHADOW, looked_at=1, differed=1)
    a_difference(order, 9)
    order.effects.create(number=9, at=NOW, until=NOW, why_not="Its snapshot is kept no more.")
    text = seen_by("admin", URL).content.decode()
    assert "not replayed: its snapshot is kept no more." in text


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0, "0 min"), (29, "0 min"), (-1140, "−19 min"), (7140, "+119 min"), (-11400, "−3 h 10 min")],
)
def test_sum_of_waits_reads(seconds, told):
    assert differing.minutes(seconds) == told


@pytest.mark.parametrize(
    ("least_s", "most_s", "told"),
    [(-1800, -240, "−30 to −4 min"), (-240, 11400, "−4 min to +3 h 10 min"), (0, 0, "0 to 0 min")],
)
def test_range_of_an_effect_reads(least_s, most_s, told):
    assert differing.span(least_s, most_s) == told


def test_rest_tells_effects_and_their_sums(cluster):
    order = an_order(cluster, S.SHADOW, looked_at=100, differed=2)
    a_difference(order, 9)
    a_difference(order, 8)
    an_effect(order, 9, -1140, -1800, -240, workloads=12)
    told = document(order, cluster)
    assert [one["effect"] and one["effect"]["wait_s"] for one in told["differences"]] == [
        -1140,
        None,
    ]
    assert told["differences"][0]["effect"]["verdict"] == "better"
    assert (told["effects"]["cycles"], told["effects"]["replayed"]) == (2, 1)


def test_weights_of_victims_are_a_block_of_their_own(cluster):
    order = an_order(cluster, S.SHADOW, victim_weights={"at_risk": -0.6, "ran": 0.3})
    own, victims = drawing.weighed(order, None)
    assert victims.title.startswith("Victims")
    assert [(one.name, one.says) for one in victims.weights] == [
        ("Work at risk", "more lost: left alone"), ("Ran for", "longer: taken first"),
    ]  # fmt: skip
    # One axis for both: the heaviest of all reaches furthest.
    assert own.weights[0].width > victims.weights[0].width


def test_without_weights_of_victims_one_sentence_says_why(cluster):
    an_order(cluster, S.SHADOW, victims_said="The rule that is shipped chooses victims: so it is.")
    assert "chooses victims: so it is." in seen_by("admin", URL).content.decode()


def test_weights_read_as_sentences_the_heaviest_first(cluster):
    former = an_order(cluster, S.REJECTED, version=1, weights=WEIGHTS | {"waited": 0.2})
    rows = drawing.weighed(an_order(cluster, S.SHADOW, version=2), former)[0].weights
    assert [(one.name, one.says) for one in rows[:3]] == [
        ("Expected run time", "shorter goes first"),
        ("Waits for", "longer goes first"),
        ("Size, GPUs", "smaller goes first"),
    ]
    assert rows[1].former == "+0.20"
    assert rows[0].x + rows[0].width == pytest.approx(50)
    assert rows[-1].says == "hardly counts"


def test_every_feature_and_bound_has_words():
    assert FEATURES.keys() == set(NAMES)
    assert VICTIM_FEATURES.keys() == set(VICTIM_NAMES)
    assert BOUNDS.keys() == figures.BOUNDS.keys()


def test_line_of_states_shows_who_decided_and_who_was_in_shadow(cluster):
    order = an_order(cluster, S.SHADOW, since=NOW - timedelta(days=20))
    LearnedStep.objects.create(order=order, state=S.DECIDING, at=NOW - timedelta(days=6))
    LearnedStep.objects.create(order=order, state=S.DEMOTED, at=NOW - timedelta(days=2))
    steps = list(LearnedStep.objects.select_related("order"))
    line = drawing.state_line(steps, "Promise", NOW, "UTC")
    assert [(bar.kind, bar.label) for bar in line.decides] == [
        ("hand", "Promise"), ("learned", "v1"), ("hand", "Promise"),
    ]  # fmt: skip
    assert [bar.kind for bar in line.shadow] == ["shadow"]
    assert line.now_x == 100


def test_minutes_read_with_their_interval():
    assert [tables.minutes(-480, 120), tables.minutes(1200, 300)] == ["−8 ± 2", "+20 ± 5"]


def test_switch_shows_whether_learned_orders_may_decide(cluster):
    assert '<p class="cell-figure">Off</p>' in seen_by("admin", URL).content.decode()
    states.set_switch(cluster=cluster, is_on=True, author="admin")
    assert '<p class="cell-figure">On</p>' in seen_by("admin", URL).content.decode()


def test_csv_and_json_hold_what_the_page_shows(cluster):
    an_order(cluster, S.SHADOW)
    lines = b"".join(seen_by("admin", f"{URL}?format=csv")).decode().splitlines()
    assert len(lines) == 5
    assert "Promise" in lines[1]
    told = seen_by("admin", f"{URL}?format=json").json()
    api = seen_by(
        "admin", reverse("api:learned_order", args=["fra1", LearnedOrder.objects.get().pk])
    )
    assert told == api.json()
    assert [one["is_met"] for one in told["conditions"]] == [True, True, False, False]


def test_version_of_the_address_is_shown_and_one_that_is_not_there_is_absent(cluster):
    an_order(cluster, S.REJECTED, version=1)
    an_order(cluster, S.SHADOW, version=2)
    assert page(cluster, 1).shown.version == 1
    assert seen_by("admin", f"{URL}?version=9").status_code == 404


def test_train_now_begins_one_and_a_refusal_says_why(client, cluster, monkeypatch):
    client.force_login(User.objects.get(username="admin"))
    refused = client.post(URL)
    assert (refused.status_code, b"whole day" in refused.content) == (400, True)
    with_work(cluster)
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(training, "send", lambda pk: None)
    assert client.post(URL).status_code == 302
    assert LearnedOrder.objects.get().state == S.TRAINING
    assert Workload.objects.exists()


def test_withdrawal_without_a_reason_shows_the_form_again(client, cluster):
    client.force_login(User.objects.get(username="admin"))
    order = an_order(cluster, S.DECIDING)
    at = reverse("web:learned_withdraw", args=["fra1", order.pk])
    assert client.post(at, {"reason": ""}).status_code == 400
    assert client.post(at, {"reason": "no more"}).status_code == 302
    order.refresh_from_db()
    assert (order.state, order.why) == (S.WITHDRAWN, "no more")
