"""What adapts by itself: the card, its switch and pins; files and API."""

import pytest
from django.test import Client
from django.urls import reverse

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from scheduling.models import Adaptation, AdaptingParameter, TrialState
from scheduling.services.studies.adapting import trials
from tests.adapting import trial_row
from tests.factories import NOW, example_cluster, make_user

pytestmark = pytest.mark.django_db
API = "/api/v1/clusters/fra1/adaptation"
NOISE = {"base": 3600.0, "mean": -6.0, "half": 30.0, "verdict": "noise"}


@pytest.fixture
def cluster():
    return example_cluster()


@pytest.fixture
def admin(cluster):
    return signed_in("admin")


def signed_in(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def address(name="adapting"):
    return reverse(f"web:{name}", args=["fra1"])


def text_of(client):
    return " ".join(client.get(address()).content.decode().split())


def test_card_begins_off_with_every_parameter_and_its_bounds(admin):
    text = text_of(admin)
    for words in (
        "Adaptation off", "Half-life of use", "Depth of reservation", "Quantile for backfill",
        "Packing against spread", "Charge of a start", "7 d between 2 and 14 d; as shipped 7 d",
        "not judged yet", "Off: all five stay where they are.",
    ):  # fmt: skip
        assert words in text


def test_every_parameter_has_its_scale_and_a_pin(admin):
    text = text_of(admin)
    assert text.count('name="pinned"') == 5
    assert "P90 between P50 and P95; as shipped P90" in text
    assert "0 % between 0 and 50 %; as shipped 0 %" in text


def test_switch_by_post_is_kept_and_told(admin, cluster):
    admin.post(address("adapting_switch"), {"on": "1"})
    text = text_of(admin)
    assert 'role="switch" aria-checked="true"' in text
    assert "The next parameter in turn is replayed at the next look" in text
    Adaptation.objects.update(looked_at=NOW)
    assert "Fri 10:42</time> on." in text_of(admin)
    admin.post(address("adapting_switch"), {"on": "0"})
    assert not trials.adaptation_of(cluster).is_on


def test_pin_by_post_is_shown_and_let_go(admin):
    admin.post(address("adapting_pin"), {"name": "charge", "pinned": "1"})
    assert AdaptingParameter.objects.get().is_pinned
    assert "pinned</span>" in text_of(admin)
    admin.post(address("adapting_pin"), {"name": "charge", "pinned": "0"})
    assert "pinned</span>" not in text_of(admin)


def test_pin_of_what_does_not_adapt_is_refused_with_a_remedy(admin):
    answer = admin.post(address("adapting_pin"), {"name": "depth", "pinned": "1"}, follow=True)
    assert "Use one of half_life" in answer.content.decode()


def test_kept_step_shows_change_and_evidence(admin, cluster):
    trial_row(cluster)
    cluster.usage_half_life_s = 8 * 86400
    cluster.save(update_fields=["usage_half_life_s"])
    AdaptingParameter.objects.create(
        cluster=cluster, name="half_life", changed_at=NOW, changed_from=604800, changed_to=691200
    )
    text = text_of(admin)
    assert "7 → 8 d, 19 Nov" in text
    assert "Kept" in text
    assert "wait −2.1 ± 1.0 min, nothing else worse; 10 replays of 7 days" in text


def test_trial_shows_since_when_and_what_the_days_showed(admin, cluster):
    trial = trial_row(cluster, state=TrialState.TRYING, ended_at=None)
    check = {**trial.evidence["step"], "days": 2.0}
    trial.evidence = {**trial.evidence, "checks": [check]}
    trial.save()
    trials.switch(cluster=cluster, is_on=True, author=None)
    text = text_of(admin)
    assert "wait since −2.1 ± 1.0 min, nothing else worse; 10 replays of 2 days (before:" in text
    assert "Half-life of use is on trial" in text


def test_no_better_value_shows_both_sides(admin, cluster):
    kept = dict.fromkeys(
        ("avg_wait_s", "unfair_pct", "worst_queue_s", "evictions", "lost_gpu_hours"), NOISE
    )
    step = {"lives": 10, "days": 7.0, "fault": "",
            "values": [{"value": 518400, "figures": kept}, {"value": 691200, "figures": kept}]}  # fmt: skip
    trial_row(cluster, state=TrialState.NO_BETTER, value_to=None, evidence={"step": step})
    assert "no value in bounds better than noise (6 d: wait −0.1 ± 0.5 min; 8 d:" in text_of(admin)


def test_operator_reads_without_switch_or_pin(cluster):
    team = Team.objects.get(queue__parent=None, queue__cluster=cluster)
    persona = Persona.objects.get(name="operator")
    person = make_user("watch")
    Membership.objects.create(user=person, team=team, persona=persona)
    client = signed_in("watch")
    text = text_of(client)
    assert "Adaptation off" in text
    assert 'role="switch"' not in text
    assert client.post(address("adapting_switch"), {"on": "1"}).status_code == 404


def test_csv_and_json_have_a_row_a_parameter(admin):
    lines = admin.get(f"{address()}?format=csv").content.decode().splitlines()
    assert lines[0].startswith("name,title,field,value,shipped,least,most")
    assert lines[1].startswith(
        "half_life,Half-life of use,usage_half_life_s,604800,604800,172800,1209600"
    )
    assert len(lines) == 6
    told = admin.get(f"{address()}?format=json").json()
    assert [one["name"] for one in told["parameters"]][2] == "backfill"


def test_api_reads_switches_and_pins(admin):
    assert admin.get(API).json()["is_on"] is False
    put = {"content_type": "application/json"}
    assert admin.put(API, {"is_on": True}, **put).json()["is_on"] is True
    told = admin.put(f"{API}/parameters/charge", {"is_pinned": True}, **put).json()
    assert (told["name"], told["is_pinned"]) == ("charge", True)
    assert admin.get(f"{API}/parameters/charge").json()["least"] == 1800


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("", {}, 400), ("/parameters/charge", {}, 400), ("/parameters/x", {"is_pinned": True}, 404)],
)
def test_api_refuses_what_it_does_not_understand(admin, path, body, status):
    answer = admin.put(f"{API}{path}", body, content_type="application/json")
    assert answer.status_code == status
    assert answer.json()["sentence"]
