"""Sentences of the engine on pages: in the reader's time, and no figure twice."""

import re
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from portal.display import sentences
from scheduling.engine import Reason
from scheduling.engine.reasons.catalogue import DECLARED, sentence
from scheduling.engine.reasons.facts import Facts
from scheduling.engine.reasons.wording import clock
from scheduling.models import Cluster, Cycle, Decision, Eviction, Transition, Workload
from tests.factories import NOW
from tests.said import figures

pytestmark = pytest.mark.django_db
LATER = NOW + timedelta(hours=3)
SAID = f"pretraining keeps what it holds until {clock(LATER)}."
LOSES = "pretraining held 56. Work lost: 7.5 GPU-hours. pretraining keeps 40."
ACTS = (Reason.RECLAIMED, Reason.PREEMPTED, Reason.CONSOLIDATES)


def read(response) -> str:
    """What is seen, without marks and what is drawn."""
    assert response.status_code == 200
    body = re.sub(r"<(script|style|svg).*?</\1>", " ", response.content.decode(), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def facts(reason: Reason) -> Facts:
    kept = {"figures": figures(reason), "rival": "ns/w", "rival_queue": "a/b", "lost_gpu_s": 5.4e6}
    return Facts(reason, "a/b", "a/c", "h100", until=LATER, **kept)


@pytest.mark.parametrize("reason", DECLARED)
def test_every_instant_of_a_sentence_of_the_engine_is_found(reason):
    said = sentence(facts(reason))
    assert "UTC" not in sentences.local(said, NOW, "Europe/Berlin")


@pytest.mark.parametrize("reason", ACTS)
def test_loss_of_a_sentence_of_the_engine_is_found(reason):
    said = sentence(facts(reason))
    assert "Work lost: 1500.0 GPU-hours." in said
    assert "lost" not in sentences.without_loss(said)


def test_instant_stands_in_the_zone_of_the_reader():
    said = f"until {clock(datetime(2026, 11, 20, 8, 5, tzinfo=UTC))}; it needs 4."
    assert sentences.local(said, NOW, "Europe/Berlin") == "until Fri 09:05; it needs 4."


def test_what_is_no_day_of_the_calendar_is_left_as_it_is():
    assert sentences.local("2026-02-31 09:05 UTC", NOW, "UTC") == "2026-02-31 09:05 UTC"


@pytest.fixture
def waiting(cluster):
    """Everything that is told of pt-13b-ctx32k names an instant."""
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.update(sentence=SAID, sealed={}, until=LATER)
    acted = {"cycle": Cycle.objects.get(), "gpu_class": work.gpu_class, "numbers": {}}
    Decision.objects.create(workload=work, action="evict", reason="reclaimed", **acted)
    for rows in (Decision.objects.all(), Eviction.objects.all(), Transition.objects.all()):
        rows.update(sentence=SAID, sealed={})
    return work


def pages(work):
    return (
        "/c/fra1/", "/c/fra1/work/", "/c/fra1/workloads/", "/c/fra1/queues/pretraining/",
        f"/c/fra1/w/{work.uid}/", f"/c/fra1/cycles/{Cycle.objects.get().number}/",
    )  # fmt: skip


@pytest.mark.parametrize("page", range(6))
def test_times_inside_sentences_are_those_of_the_reader(as_user, waiting, page):
    page = pages(waiting)[page]
    said = read(as_user("m.okafor" if page.endswith("work/") else "admin").get(page))
    assert "until 13:42" in said
    assert "UTC" not in said.replace("UTC on hover", "")


@pytest.mark.parametrize("page", [2, 4])
def test_until_when_it_waits_is_said_once(as_user, waiting, page):
    said = read(as_user("admin").get(pages(waiting)[page])).lower()
    assert "not before" not in said
    assert "can't start before" not in said
    Workload.objects.update(sentence="pretraining keeps what it holds.")
    said = read(as_user("admin").get(pages(waiting)[page])).lower()
    assert "before 13:42" in said


@pytest.mark.parametrize("page", [1, 4])
def test_loss_of_an_eviction_is_said_once(as_user, waiting, page):
    Eviction.objects.update(sentence=LOSES, lost_gpu_s=7.5 * 3600, at=NOW - timedelta(hours=2))
    said = read(as_user("m.okafor").get(pages(waiting)[page]))
    assert "Work lost" not in said
    assert "7.5 GPU-hours" in said


def test_home_names_the_teams_of_the_reader(as_user, cluster):
    assert "You are m.okafor, researcher in pretraining." in read(
        as_user("m.okafor").get("/c/fra1/work/")
    )


@pytest.mark.parametrize("page", [1, 4])
@pytest.mark.parametrize("speed", [1, 600])
def test_work_before_its_first_plan_says_so_and_how_fast_the_clock_runs(
    as_user, waiting, page, speed
):
    Workload.objects.update(reason="", sentence="", position=None, until=None)
    Cluster.objects.update(clock_speed=speed, cycle_interval_s=5)
    said = read(as_user("m.okafor").get(pages(waiting)[page]))
    assert (
        "Not planned yet. The next cycle of the engine decides; its reason will stand here." in said
    )
    fast = "runs 600 times as fast as the wall’s, so cycles are at least 50 min of it apart."
    assert (fast in said) == (speed > 1)
