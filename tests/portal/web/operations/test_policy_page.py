"""The policy of a cluster: tried on the live cluster before it is saved."""

from __future__ import annotations

import pytest

from portal.web.studies.drafts import DRAFT
from portal.web.studies.ways import each_way
from scheduling.models import Cluster, Study, Workload
from scheduling.services.queues.sharing import SAID
from scheduling.services.studies import running
from scheduling.services.studies.experiments.sharing import ask_of_sharing
from tests.factories import example_cluster
from tests.lab import with_work
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db
URL = "/c/fra1/policy/"


@pytest.fixture
def cluster():
    """The example organisation over an API server that answers."""
    made = example_cluster()
    with serving(made):
        yield made


def text(answer):
    return " ".join(answer.content.decode().split())


def test_preview_plans_with_the_policy_and_saves_nothing(cluster, as_user):
    answer = as_user("admin").post(URL, {"placement": "spread", "preview": "1"})

    assert answer.status_code == 200
    assert "planned at" in text(answer)
    assert '<option value="spread" selected>spread</option>' in text(answer)
    assert Cluster.objects.get(name="fra1").placement == "pack"


def test_preview_of_a_field_that_no_plan_goes_by_says_so(cluster, as_user):
    answer = as_user("admin").post(URL, {"cycle_interval_s": "30", "preview": "1"})
    assert "None of the edited fields changes what the engine plans" in text(answer)


def test_preview_without_a_cluster_says_why_and_the_policy_is_still_saved(cluster, as_user):
    Cluster.objects.update(api_url="http://127.0.0.1:9")
    admin, edit = as_user("admin"), {"placement": "spread"}
    assert "does not answer" in text(admin.post(URL, {**edit, "preview": "1"}))

    assert admin.post(URL, {**edit, "reason": "Even load"}).status_code == 302
    assert Cluster.objects.get(name="fra1").placement == "spread"


@pytest.mark.parametrize("way", ["preview", "draft"])
def test_field_that_is_edited_says_what_it_was_and_no_other_does(cluster, as_user, way):
    Cluster.objects.update(placement="spread", lowering_grace_s=5400)
    admin = as_user("admin")
    typed = {"lowering_grace_s": "0", "placement": "spread"}
    draft = admin.get(URL, {**typed, DRAFT: "1"}) if way == "draft" else None
    page = text(draft or admin.post(URL, {**typed, "preview": "1"}))
    assert "1 field edited and not saved" in page
    assert page.count('class="is-edited"') == 1
    assert "was 5400" in page
    assert "edited and not saved" not in text(admin.get(URL))


def test_seconds_and_words_of_the_api_stand_as_people_write_them(cluster, as_user):
    cluster.usage_half_life_s = 604800
    cluster.save()
    shown = as_user("admin").get(URL).content.decode()
    assert "= 7 d" in shown
    assert '<option value="shortest_predicted">shortest predicted</option>' in shown
    assert "fair_share:" not in shown


def test_value_that_is_wrong_is_named_before_anything_is_planned(cluster, as_user):
    answer = as_user("admin").post(URL, {"max_moves": "many", "preview": "1"})
    assert answer.status_code == 400
    assert "planned at" not in text(answer)


def test_each_way_to_share_is_told_in_a_sentence(cluster, as_user):
    answer = text(as_user("admin").get(URL))
    for said in SAID.values():
        assert said in answer
    assert "not lived" in answer


def test_last_weeks_are_lived_in_the_ways_that_are_not_in_force(cluster, as_user):
    with_work(cluster)
    answer = as_user("admin").post(URL, {"each_way": "1"})

    study = Study.objects.get()
    assert answer.url == f"/c/fra1/studies/{study.pk}/"
    ways = [one.changes for one in study.variants.all()]
    assert [change[0]["value"] for change in ways[1:]] == ["promise", "throughput"]


def test_figures_of_each_way_stand_beside_it_once_it_was_lived(cluster, as_user):
    with_work(cluster)
    study = ask_of_sharing(cluster, "admin")
    while running.work(study.pk):
        pass

    told = each_way(cluster)
    for way in told["ways"]:
        assert [head for head, _ in way.figures] == list(told["heads"])
        assert all(figure for _, figure in way.figures)
    # On a narrow screen a row is a card: each figure says there what it is of.
    assert text(as_user("admin").get(URL)).count('data-label="Later than on own quota"') == 3
    assert not told["meant"].is_open
    # So does it wherever else a way is chosen, for whoever operates the cluster.
    for url in ("/c/fra1/quotas/research/edit/", "/set-up/queues/"):
        assert text(as_user("admin").get(url)).count("The last 14 days in it: average wait") == 3


def test_weeks_of_an_empty_ledger_cannot_be_lived_again(cluster, as_user):
    Workload.objects.all().delete()
    answer = as_user("admin").post(URL, {"each_way": "1"}, follow=True)
    assert "The ledger is empty" in text(answer)
