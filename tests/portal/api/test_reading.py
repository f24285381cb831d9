"""Everything that is only read: clusters, classes, nodes, queues, ledger, people, reports."""

import pytest

from portal.accounts.models import MOST_TOKENS, ApiToken
from scheduling.models import Action, Cycle, Decision, Eviction, Workload
from tests.factories import NOW, make_member, make_workload

pytestmark = pytest.mark.django_db
FRA1 = "/api/v1/clusters/fra1"


def test_cluster_tells_mode_clock_and_policy(api):
    data = api("researcher").get(FRA1).data
    assert (data["name"], data["mode"], data["placement"]) == ("fra1", "enforce", "pack")
    assert data["now"].startswith("2026-11-19T09:4")


def test_classes_come_in_page_order(api):
    rows = api("researcher").get(f"{FRA1}/gpu-classes").data["results"]
    assert [row["name"] for row in rows] == ["h100-80gb", "a100-40gb", "a100-mig-1g.5gb", "l4"]


def test_nodes_tell_capacity_and_topology(api):
    rows = api("researcher").get(f"{FRA1}/nodes?ready=false").data["results"]
    assert {row["name"] for row in rows} == {"h100-16", "l4-22"}
    assert rows[0]["gpus"] == 8.0
    assert set(rows[0]["topology"]) == {"block", "rack"}


def test_queue_tree_has_parents_before_children_and_shares(api):
    rows = api("admin").get(f"{FRA1}/queues").data["results"]
    places = {row["name"]: i for i, row in enumerate(rows)}
    assert all(places[r["parent"]] < places[r["name"]] for r in rows if r["parent"])
    pretraining = rows[places["pretraining"]]
    assert pretraining["depth"] == 3
    [share] = pretraining["shares"]
    assert (share["fair_share"], share["allocated"], share["limit"]) == (39.0, 40.0, 64.0)


def test_member_sees_own_queues_and_those_above(api):
    rows = api("m.okafor").get(f"{FRA1}/queues").data["results"]
    assert [row["name"] for row in rows] == ["fra1", "research", "language", "pretraining"]


def test_queue_not_seen_is_absent(api):
    assert api("m.okafor").get(f"{FRA1}/queues/search").status_code == 404
    assert api("admin").get(f"{FRA1}/queues/search").data["path"] == "products/search"


def test_cycles_come_newest_first(api, cluster):
    Cycle.objects.create(cluster=cluster, number=48214, at=NOW)
    rows = api("researcher").get(f"{FRA1}/cycles").data["results"]
    assert [row["number"] for row in rows] == [48214, 48213]
    assert api("researcher").get(f"{FRA1}/cycles/48213").data["took_ms"] == 410


def test_decisions_are_those_about_work_one_may_see(api, cluster):
    cycle = Cycle.objects.get(number=48213)
    for name in ("pretraining-wait-1", "search-wait-1"):
        Decision.objects.create(
            cycle=cycle,
            workload=Workload.objects.get(name=name),
            action=Action.WAIT.value,
            reason="at_limit",
        )
    rows = api("m.okafor").get(f"{FRA1}/decisions?cycle=48213&action=wait").data["results"]
    assert [row["name"] for row in rows] == ["pretraining-wait-1"]


def test_eviction_tells_both_queues_and_the_loss(api):
    [row] = api("lead").get(f"{FRA1}/evictions").data["results"]
    assert row["name"] == "pt-13b-ctx32k"
    assert row["for_queue"] == "research/language/alignment"
    assert row["for_workload"] == "alignment-run-1"
    assert (row["gpus"], row["lost_gpu_hours"], row["rule"]) == (16.0, 7.5, "reclaim")


def test_eviction_for_another_team_names_neither_its_work_nor_its_queue(api):
    [row] = api("m.okafor").get(f"{FRA1}/evictions").data["results"]
    assert row["queue"] == "research/language/pretraining"
    assert row["for_workload"] == "a workload of another team"
    assert row["for_queue"] == "a queue of another team"
    assert "victim_held_before" in row["numbers"]
    assert "for_held_before" not in row["numbers"]


def test_victim_of_another_team_keeps_its_name(api):
    winner = Eviction.objects.get().for_workload
    [row] = api(winner.user).get(f"{FRA1}/evictions").data["results"]
    if winner.user != "researcher":
        assert (row["name"], row["workload"], row["sentence"]) == (None, None, None)
        assert row["queue"] == "a queue of another team"


def test_evictions_of_strangers_are_left_out(api):
    assert api("q.nguyen").get(f"{FRA1}/evictions").data["count"] == 0


def test_me_tells_teams_and_personas(api):
    data = api("researcher").get("/api/v1/me").data
    assert data["operator"] is False
    assert {
        "team": "pretraining", "cluster": "fra1", "queue": "pretraining", "persona": "researcher",
    } in data["memberships"]  # fmt: skip


def test_token_is_shown_once_and_revoked_for_good(api):
    client = api("researcher")
    made = client.post("/api/v1/tokens", {"name": "laptop"}, format="json").data
    assert ApiToken.objects.get().digest == ApiToken.digest_of(made["token"])
    assert "token" not in client.get("/api/v1/tokens").data["results"][0]
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert not ApiToken.objects.exists()


def test_more_tokens_than_anybody_needs_are_refused(api):
    client = api("researcher")
    answers = [client.post("/api/v1/tokens", {"name": "x"}, format="json") for _ in range(21)]
    assert [a.status_code for a in answers] == [201] * MOST_TOKENS + [409]
    assert answers[-1].data["code"] == "too_many_tokens"
    assert "Revoke" in answers[-1].data["remedy"]


def test_token_of_another_is_absent(api):
    made = api("researcher").post("/api/v1/tokens", {"name": "laptop"}, format="json").data
    assert api("admin").delete(f"/api/v1/tokens/{made['id']}").status_code == 404


def test_teams_are_own_and_below(api):
    names = {row["name"] for row in api("lead").get("/api/v1/teams").data["results"]}
    assert {"research", "language", "pretraining"} <= names
    assert "products" not in names
    assert api("lead").get("/api/v1/teams/search").status_code == 404


def test_personas_are_those_of_own_teams(api, cluster):
    make_member(cluster.queues.get(name="search"), name="elsewhere", may_submit=True)
    names = {row["name"] for row in api("m.okafor").get("/api/v1/personas").data["results"]}
    assert names == {"researcher"}
    assert len(api("admin").get("/api/v1/personas").data["results"]) > 1


@pytest.mark.parametrize("report", ["utilization", "waits", "preemptions", "fairness"])
def test_report_is_the_one_of_its_page(api, report):
    data = api("lead").get(f"{FRA1}/reports/{report}?range=7d&class=h100-80gb").data
    assert data["report"] == report


def test_report_with_a_wrong_filter_names_it(api):
    response = api("lead").get(f"{FRA1}/reports/waits?queue=nowhere")
    assert response.status_code == 400
    assert list(response.data["fields"]) == ["queue"]


def test_reference_is_served_to_who_is_signed_in(client, cluster, django_user_model):
    assert client.get("/api/v1/docs").status_code in (302, 401)
    client.force_login(django_user_model.objects.get(username="researcher"))
    assert b"swagger-ui" in client.get("/api/v1/docs").content
    assert client.get("/api/v1/schema").status_code == 200


def test_page_past_the_end_is_absent(api, cluster):
    make_workload(cluster.queues.get(name="pretraining"))
    assert api("admin").get(f"{FRA1}/workloads?page=99").status_code == 404
