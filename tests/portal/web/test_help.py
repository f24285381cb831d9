"""Help pages answer what other pages raise, and those pages lead to them."""

from html import unescape

import pytest

from portal.selectors.reasons import REASONS
from portal.web.help.views import TITLES, WORDS
from scheduling.engine.reasons.catalogue import ACTS
from scheduling.engine.reasons.rules import RULES
from scheduling.models import Eviction, Reason, Workload
from tests.factories import NOW

pytestmark = pytest.mark.django_db
ENDS = {*ACTS, Reason.RUN_TIME_OVER, Reason.CLAIM_LAPSED}
"""Reasons of acts; nothing waits for them."""


@pytest.mark.parametrize("topic", TITLES)
def test_topic_opens_for_whoever_is_signed_in(cluster, as_user, topic):
    assert as_user("m.okafor").get(f"/help/{topic}/").status_code == 200


def test_help_needs_a_sign_in_and_knows_no_other_topic(cluster, client, as_user):
    assert client.get("/help/").status_code == 302
    assert as_user("m.okafor").get("/help/nothing/").status_code == 404


def test_every_reason_of_waiting_is_explained():
    explained = {row.reason.value for row in REASONS}
    assert explained | ENDS == {reason.value for reason in Reason}


def test_help_on_evictions_tells_each_rule_of_the_engine_and_promises_no_more(cluster, as_user):
    page = unescape(as_user("m.okafor").get("/help/evicted/").content.decode())
    for rule, entry in RULES.items():
        assert entry.headline in page, rule
        assert entry.means[1:] in page, rule
    assert "nothing of it can be reclaimed" in page
    assert "no more than its fair share, so nothing" not in page


def test_every_word_of_the_concepts_is_in_the_glossary():
    told = " ".join(word.lower() for word, _ in WORDS)
    for word in (
        "team", "persona", "queue", "gpu class", "nominal quota", "borrowing limit", "lending limit",
        "over-quota weight", "fair share", "potential share", "workload", "priority class", "reclaim",
        "preempt", "evict", "cycle", "fragmentation", "topology domain", "demand, allocated, usage",
    ):  # fmt: skip
        assert word in told


@pytest.mark.parametrize(
    ("page", "topic"),
    [
        ("/c/fra1/", "share"),
        ("/c/fra1/queues/", "share"),
        ("/c/fra1/queues/pretraining/", "share"),
        ("/c/fra1/work/", "share"),
        ("/c/fra1/work/", "evicted"),
        ("/c/fra1/workloads/", "waiting"),
    ],
)
def test_help_is_linked_where_the_question_arises(cluster, as_user, page, topic):
    Eviction.objects.update(at=NOW)
    assert f'href="/help/{topic}/' in as_user("m.okafor").get(page).content.decode()


def test_workload_page_leads_to_why_it_waits_and_why_it_was_evicted(cluster, as_user):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    html = as_user("m.okafor").get(f"/c/fra1/w/{work.uid}/").content.decode()
    assert 'href="/help/waiting/#above_fair_share"' in html
    assert 'href="/help/evicted/"' in html
