import csv
import io
import re
from datetime import timedelta

import pytest

from portal.accounts.models import User
from scheduling.models import Queue, State, Workload
from tests.factories import NOW, make_cluster, make_member, make_workload

pytestmark = pytest.mark.django_db
MINE, ALL = "/c/fra1/work/list/", "/c/fra1/workloads/"


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


@pytest.mark.parametrize(("members", "said"), [(1, "8 h100-80gb"), (2, "16 2 × 8 h100-80gb")])
def test_size_of_work_is_told_once(as_user, cluster, members, said):
    fields = {"gpus": 8000, "min_members": members, "max_members": members, "user": "m.okafor"}
    make_workload(Queue.objects.get(name="pretraining"), name="sized", **fields)
    page = as_user("m.okafor").get(f"{MINE}?name=sized").content.decode()
    [cell] = re.findall(r'<td class="num size".*?</td>', page, flags=re.S)
    assert " ".join(re.sub(r"<[^>]+>", " ", cell).split()) == said


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
    answer = as_user("admin").get(f"{ALL}?queue=ci&state=waiting")
    assert len(answer.context["rows"]) == 50
    shown = answer.content.decode()
    assert 'href="?queue=ci&amp;state=waiting&amp;page=2">Next' in shown
    assert 'href="?queue=ci&amp;state=waiting&amp;export=csv">CSV' in shown


def test_live_fragment_is_the_table_alone(as_user, cluster):
    response = as_user("admin").get(ALL, headers={"X-Weir-Live": "1"})
    assert response.content.strip().startswith(b"<section")
    assert b'id="work"' in response.content


def finished(queue, name, *, hours_ago, submitted_hours_ago):
    work = make_workload(queue, name=name, submitted_at=NOW - timedelta(hours=submitted_hours_ago))
    ended = NOW - timedelta(hours=hours_ago)
    Workload.objects.filter(pk=work.pk).update(state=State.FINISHED, finished_at=ended)


def test_finished_work_stands_in_the_order_of_its_end(as_user, cluster):
    queue = cluster.queues.get(name="ci")
    finished(queue, "long", hours_ago=1, submitted_hours_ago=90)
    finished(queue, "short", hours_ago=2, submitted_hours_ago=3)
    finished(queue, "first", hours_ago=9, submitted_hours_ago=10)
    client = as_user("admin")
    assert names(client.get(f"{ALL}?state=finished")) == ["long", "short", "first"]
    assert names(client.get(f"{ALL}?state=finished&sort=ended")) == ["first", "short", "long"]
    assert names(client.get(f"{ALL}?state=all"))[-3:] == ["long", "short", "first"]


VALUE = {
    "name": lambda row: row.workload.name,
    "user": lambda row: row.workload.user,
    "gpus": lambda row: row.gpus,
    "time": lambda row: row.seconds,
}


@pytest.mark.parametrize("key", VALUE)
@pytest.mark.parametrize("falls", [False, True], ids=["rising", "falling"])
def test_list_is_sorted_by_what_the_column_shows(as_user, cluster, key, falls):
    response = as_user("admin").get(f"{ALL}?sort={'-' if falls else ''}{key}")
    values = [VALUE[key](row) for row in response.context["rows"]]
    assert len(set(values)) > 1
    assert values == sorted(values, reverse=falls)


def test_heads_keep_the_filters_and_say_the_order(as_user, cluster):
    response = as_user("admin").get(f"{ALL}?queue=products&state=waiting&sort=name&page=2")
    by_label = {head.label: head for head in response.context["heads"]}
    assert by_label["Workload"].aria == "ascending"
    assert by_label["Workload"].query == "queue=products&state=waiting&sort=-name"
    assert by_label["GPUs"].aria == "none"
    assert by_label["GPUs"].query == "queue=products&state=waiting&sort=-gpus"
    assert by_label["Why"].aria == ""
    html = response.content.decode()
    assert 'aria-sort="ascending"' in html
    assert '<input type="hidden" name="sort" value="name">' in html


@pytest.mark.parametrize("sort", ["colour", "-", "--name", "name;drop", "page"])
def test_unknown_order_is_the_usual_one(as_user, cluster, sort):
    usual = names(as_user("admin").get(ALL))
    assert names(as_user("admin").get(ALL, {"sort": sort})) == usual


@pytest.mark.parametrize("queue", ["assistant", "no-such-queue"])
def test_link_with_a_queue_that_one_may_not_see_keeps_its_other_filters(as_user, cluster, queue):
    path = f"{ALL}?queue={queue}&name=run&state=holding"
    html = as_user("m.okafor").get(path).content.decode()
    assert f"There is no queue “{queue}” that you may see." in html
    assert 'href="?name=run&amp;state=holding"' in html
    assert 'name="name" value="run"' in html
    assert f'<option value="{queue}" selected>{queue}: none you may see</option>' in html


def test_link_with_a_path_of_a_queue_shows_it_chosen(as_user, cluster):
    html = as_user("lead").get(f"{ALL}?queue=research/vision").content.decode()
    assert '<option value="vision" selected>' in html
    assert "that you may see" not in html


def test_page_of_somebody_elses_work_does_not_light_up_my_work(as_user, cluster):
    def lit(name):
        work = Workload.objects.get(name=name)
        html = as_user("m.okafor").get(f"/c/fra1/w/{work.uid}/").content.decode()
        marked = re.search(r'<a href="([^"]+)" aria-current="page"', html)
        return marked and marked[1]

    Workload.objects.filter(name="pretraining-run-2").update(user="j.lind")
    Workload.objects.filter(name="pretraining-run-1").update(user="m.okafor")
    assert lit("pretraining-run-1") == "/c/fra1/work/"
    assert lit("pretraining-run-2") == "/c/fra1/queues/"


@pytest.mark.parametrize("rows", [1, 3])
def test_queries_do_not_grow_with_rows(client, db, rows, settings, django_assert_num_queries):
    settings.WEIR_REMEMBERED_S = 5.0  # as in production
    cluster = make_cluster("ams1")
    root = Queue.objects.create(cluster=cluster, name="ams1")
    for i in range(rows):
        queue = Queue.objects.create(cluster=cluster, parent=root, name=f"q{i}")
        make_workload(queue, user="reader", state=State.RUNNING, gpu_classes=["none"])
    make_member(root, name="reader", may_submit=True)
    client.force_login(User.objects.get(username="reader"))
    for url, fragment, whole in (("work/list", 9, 16), ("workloads", 9, 12)):
        with django_assert_num_queries(fragment):
            client.get(f"/c/ams1/{url}/", headers={"X-Weir-Live": "1"})
        with django_assert_num_queries(whole):
            client.get(f"/c/ams1/{url}/")
