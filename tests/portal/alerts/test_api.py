"""Alert rules by REST: everything that their page does, in seconds."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from portal.accounts.models import User
from portal.alerts.models import Figure, Firing, Rule, Tell
from tests.factories import make_user
from tests.portal.reports.conftest import END, HOUR, Small

pytestmark = pytest.mark.django_db
AT = "/api/v1/clusters/{}/alerts"
WAIT = {"figure": "longest_wait", "over": 7200}


def call(small: Small, person: User, method: str, rest: str = "", body: Any = None) -> Any:
    client = Client()
    client.force_login(person)
    send = getattr(client, method)
    return send(AT.format(small.cluster.name) + rest, body, content_type="application/json")


@pytest.fixture
def firing(small: Small) -> Firing:
    rule = Rule.objects.create(
        cluster=small.cluster, figure=Figure.LONGEST_WAIT, over=3600, queue=small.vision
    )
    return Firing.objects.create(rule=rule, since=END - HOUR, peak=1)


def test_new_rule_is_told_as_it_was_sent(small: Small) -> None:
    sent = {**WAIT, "queue": small.vision.path, "tell": "leads", "for_s": 600, "again_s": 60}

    answer = call(small, small.operator, "post", body=sent)

    assert answer.status_code == 201
    assert {name: answer.json()[name] for name in sent} == sent


def test_lead_watches_a_queue_of_their_own_alone(small: Small) -> None:
    mine = call(small, small.lead, "post", body={**WAIT, "queue": small.vision.name})
    all_of_it = call(small, small.lead, "post", body=WAIT)

    assert mine.status_code == 201
    assert (all_of_it.status_code, list(all_of_it.json()["fields"])) == (400, ["queue"])


def test_what_is_not_sent_stays_as_it_was(small: Small, firing: Firing) -> None:
    answer = call(small, small.operator, "put", f"/{firing.rule.pk}", {"over": 60})

    told = answer.json()
    assert (told["over"], told["figure"], told["queue"]) == (60, "longest_wait", small.vision.path)


def test_other_bound_ends_what_fires(small: Small, firing: Firing) -> None:
    call(small, small.operator, "put", f"/{firing.rule.pk}", {"over": 60})

    firing.refresh_from_db()
    assert firing.until is not None


def test_other_second_circle_leaves_what_fires(small: Small, firing: Firing) -> None:
    call(small, small.operator, "put", f"/{firing.rule.pk}", {"escalate_s": 3600})

    firing.refresh_from_db()
    assert (firing.until, firing.rule.escalate_s) == (None, 3600)


def test_acknowledged_firing_names_its_person(small: Small, firing: Firing) -> None:
    answer = call(small, small.operator, "post", f"/{firing.rule.pk}/acknowledge")

    assert answer.json()["acknowledged_by"] == small.operator.get_username()


def test_quiet_rule_has_nothing_to_acknowledge(small: Small, firing: Firing) -> None:
    Firing.objects.update(until=END)

    answer = call(small, small.operator, "post", f"/{firing.rule.pk}/acknowledge")

    assert (answer.status_code, answer.json()["code"]) == (409, "moved_on")


def test_deleted_rule_is_gone(small: Small, firing: Firing) -> None:
    answer = call(small, small.lead, "delete", f"/{firing.rule.pk}")

    assert (answer.status_code, Rule.objects.count()) == (204, 0)


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        ({**WAIT, "queue": "no-such"}, "queue"),
        ({**WAIT, "gpu_class": "no-such"}, "gpu_class"),
        ({"figure": "oversubscribed", "over": 1, "tell": Tell.OWNER}, "tell"),
        ({**WAIT, "over": 0}, "over"),
        ({**WAIT, "escalate_s": 60, "escalate_team": "no-such"}, "escalate_team"),
        ({**WAIT, "escalate_people": ["op"]}, "escalate_s"),
        ({"figure": "longest_wait"}, "over"),
    ],
)
def test_wrong_rule_is_refused_at_its_field(small: Small, sent: Any, field: str) -> None:
    answer = call(small, small.operator, "post", body=sent)

    assert (answer.status_code, list(answer.json()["fields"])) == (400, [field])
    assert not Rule.objects.exists()


def test_person_who_watches_nothing_finds_no_rules(small: Small) -> None:
    assert call(small, make_user("stranger"), "post", body=WAIT).status_code == 404
