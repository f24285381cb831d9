import csv
import io

import pytest

from portal.accounts.models import User
from scheduling.models import Queue, State, Workload
from tests.factories import make_cluster, make_member, make_workload

pytestmark = pytest.mark.django_db
MINE, ALL = "/c/fra1/work/", "/c/fra1/workloads/"


def names(response):
    assert response.status_code == 200
    return [row.workload.name for row in response.context["rows"]]


def test_my_work_is_what_i_submitted_and_what_waits_comes_first(as_user, cluster):
    response = as_user("m.okafor").get(MINE)
    states = [row.workload.state for row in response.context["rows"]]
    assert {row.workload.user for row in response.context["rows"]} == {"m.okafor"}
    assert states == sorted(states, key=lambda s: s not in ("pending", "requeued"))


def test_reason_is_read_in_a_sentence(as_user, cluster):
    page = as_user("m.okafor").get(MINE).content.decode()
    assert "<b>Above fair share.</b>" in page
    assert 'class="number-link"' in page


def test_finished_work_stands_under_its_own_tab(as_user, cluster):
    Workload.objects.filter(name="pretraining-run-1").update(state=State.FINISHED)
    assert "pretraining-run-1" not in names(as_user("m.okafor").get(MINE))
    assert names(as_user("m.okafor").get(f"{MINE}?state=finished")) == ["pretraining-run-1"]


def test_tabs_keep_the_other_filters_and_count_states(as_user, cluster):
    tabs = as_user("admin").get(f"{ALL}?queue=assistant&page=2").context["tabs"]
    assert [tab.label for tab in tabs] == ["Active", "Waiting", "Running", "Finished", "All"]
    assert tabs[1].query == "queue=assistant&state=waiting"
    assert tabs[0].count == tabs[1].count + tabs[2].count


def test_filters_narrow_as_in_the_api(as_user, cluster):
    page = as_user("admin").get(f"{ALL}?queue=products&gpu_class=h100-80gb&state=waiting")
    assert names(page)
    assert {row.workload.queue.path.split("/")[0] for row in page.context["rows"]} == {"products"}


def test_wrong_filter_says_so_and_shows_nothing(as_user, cluster):
    response = as_user("admin").get(f"{ALL}?state=asleep")
    assert names(response) == []
    assert b"asleep is not one of the available choices" in response.content


def test_nothing_found_offers_to_clear_the_filters(as_user, cluster):
    assert b"Nothing matches" in as_user("admin").get(f"{ALL}?name=unheard-of").content


def test_list_of_a_cluster_not_seen_is_absent(as_user, cluster):
    make_cluster("hidden")
    assert as_user("researcher").get("/c/hidden/workloads/").status_code == 404


def test_work_of_another_cluster_is_left_out(as_user, cluster):
    make_workload(None, cluster=make_cluster("ams1"), name="elsewhere")
    assert "elsewhere" not in names(as_user("admin").get(ALL))


def test_buttons_stand_only_where_they_work(as_user, cluster):
    rows = as_user("researcher").get(ALL).context["rows"]
    mine = {row.workload.user for row in rows if row.may_cancel}
    assert mine == {"researcher"}
    assert all(row.may_cancel for row in as_user("lead").get(ALL).context["rows"])


def test_csv_has_all_pages_and_no_formulas(as_user, cluster):
    for i in range(60):
        make_workload(cluster.queues.get(name="ci"), name=f"=ci-{i}")
    response = as_user("admin").get(f"{ALL}?queue=ci&export=csv")
    rows = list(csv.DictReader(io.StringIO(response.content.decode())))
    assert len(rows) >= 60
    assert not [row for row in rows if row["name"].startswith("=")]
    assert rows[0]["gpus_requested"] == "1.0"


def test_pages_keep_the_filters(as_user, cluster):
    for i in range(51):
        make_workload(cluster.queues.get(name="ci"), name=f"ci-{i}")
    context = as_user("admin").get(f"{ALL}?queue=ci&state=waiting").context
    assert len(context["rows"]) == 50
    assert context["next_url"] == "?queue=ci&state=waiting&page=2"


def test_live_fragment_is_the_table_alone(as_user, cluster):
    response = as_user("admin").get(ALL, headers={"X-Weir-Live": "1"})
    assert response.content.strip().startswith(b"<section")
    assert b'id="work"' in response.content


@pytest.mark.parametrize("rows", [1, 3])
def test_queries_do_not_grow_with_rows(client, db, rows, django_assert_num_queries):
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    for i in range(rows):
        queue = Queue.objects.create(cluster=cluster, parent=root, name=f"q{i}")
        make_workload(queue, user="reader", state=State.RUNNING, gpu_classes=["none"])
    make_member(root, name="reader", may_submit=True)
    client.force_login(User.objects.get(username="reader"))
    for url, fragment, whole in (("work", 16, 36), ("workloads", 16, 36)):
        with django_assert_num_queries(fragment):
            client.get(f"/c/ams1/{url}/", headers={"X-Weir-Live": "1"})
        with django_assert_num_queries(whole):
            client.get(f"/c/ams1/{url}/")
