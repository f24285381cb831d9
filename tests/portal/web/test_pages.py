"""Frame, overview, queue list and queue page as people get them."""

import re
from datetime import timedelta

import pytest
from django.conf import settings
from django.test import RequestFactory
from django.urls import reverse
from django.utils.html import strip_tags

from portal.accounts.models import User
from portal.selectors import overview
from portal.web.frame.context import Shell
from portal.web.frame.division import shares_of, tree_of
from scheduling.models import (
    Cluster,
    Eviction,
    Prediction,
    Queue,
    Share,
    StartForecast,
    UsageSample,
    Workload,
)
from scheduling.models.ledger import Resolution
from tests.factories import NOW, make_cluster, make_member, make_workload

pytestmark = pytest.mark.django_db
PAGES = ["/c/fra1/", "/c/fra1/queues/", "/c/fra1/queues/pretraining/", "/c/fra1/search?q=pre"]


@pytest.mark.parametrize("path", PAGES)
@pytest.mark.parametrize("name", ["researcher", "lead", "admin"])
def test_page_opens_for_members(cluster, as_user, path, name):
    assert as_user(name).get(path).status_code == 200


@pytest.mark.parametrize("path", [*PAGES, "/c/fra1/live?once=1"])
def test_page_sends_anonymous_to_sign_in_and_strangers_nowhere(cluster, client, path):
    assert client.get(path).status_code == 302
    client.force_login(User.objects.create_user("stranger"))
    assert client.get(path).status_code == 404


@pytest.mark.parametrize("path", PAGES)
def test_page_is_read_only(cluster, as_user, path):
    assert as_user("admin").post(path).status_code == 405


@pytest.mark.parametrize("path", PAGES)
def test_page_holds_nothing_inline(cluster, as_user, path):
    html = as_user("admin").get(path).content.decode()
    assert not re.search(r"<script(?![^>]*\bsrc=)|\sstyle=|\son\w+=|javascript:", html)
    assert not re.search(r'(?:src|href)="(?:https?:)?//', html)


def test_forbidden_queue_looks_like_an_absent_one(cluster, as_user):
    client = as_user("p.rossi")
    forbidden = client.get("/c/fra1/queues/vision/")
    absent = client.get("/c/fra1/queues/nothing-of-that-name/")
    assert forbidden.status_code == absent.status_code == 404


def test_overview_shows_the_class_of_the_address(cluster, as_user):
    client = as_user("admin")
    assert 'id="queues-l4"' in client.get("/c/fra1/?class=l4").content.decode()
    assert client.get("/c/fra1/?class=b200").status_code == 404


def test_overview_says_what_is_held_and_what_waits(cluster, as_user):
    text = re.sub(r"<[^>]+>|\s+", " ", as_user("admin").get("/c/fra1/").content.decode())
    text = re.sub(r"\s+", " ", text)
    assert "114 of 312 GPUs are allocated (36.5 %), 12 are down on 2 nodes." in text
    assert "9 workloads wait for 76 GPUs" in text
    assert "Fair shares 118 + 2 nobody asks for = 120 ready; 8 of 128 are down" in text


def test_longest_wait_of_all_is_told_apart_from_those_that_a_person_may_see(cluster, as_user):
    html = as_user("m.okafor").get("/c/fra1/").content.decode()
    assert "9 workloads</b> of all teams wait for 76 GPUs" in html
    assert "of work that you may see" in html


@pytest.mark.parametrize(
    ("p50_h", "p90_h", "told"),
    [(2, 5, "12:42 – 15:42"), (-1, 5, "any moment, by 15:42"), (-2, -1, "later than expected")],
)
def test_running_work_of_a_queue_says_when_it_ends(cluster, as_user, p50_h, p90_h, told):
    run = Workload.objects.get(name="pretraining-run-1")
    Workload.objects.filter(pk=run.pk).update(started_at=NOW - timedelta(hours=3))
    hours = {"p10_s": 0, "p50_s": 3600 * (p50_h + 3), "p90_s": 3600 * (p90_h + 3)}
    Prediction.objects.create(
        workload=run, at=NOW - timedelta(hours=3), told_at=NOW - timedelta(hours=3), **hours,
        **{f"told_{name}": seconds for name, seconds in hours.items()},
    )  # fmt: skip
    html = as_user("admin").get("/c/fra1/queues/pretraining/").content.decode()
    running = html.partition('id="running"')[2].partition("</section>")[0]
    assert told in " ".join(strip_tags(running).split())


def test_evictions_of_a_queue_get_the_width_of_the_page_where_it_is_narrow(cluster, as_user):
    html = as_user("admin").get("/c/fra1/queues/vision/").content.decode()
    last = html.rsplit('<div class="columns', 1)[1]
    assert last.startswith(" overview-columns")
    assert 'id="moved"' in last


def test_researcher_reads_no_name_of_a_foreign_queue(cluster, as_user):
    html = as_user("m.okafor").get("/c/fra1/").content.decode()
    assert "research/language/pretraining" in html
    for foreign in ("assistant", "recommend", "speech", "vision"):
        assert not re.search(rf"\b{foreign}\b", html)


@pytest.mark.parametrize("figure", ["allocated", "fair_share", "nominal", "pending"])
@pytest.mark.parametrize("name", ["m.okafor", "admin"])
def test_rows_of_the_tree_add_up_for_whoever_sees_a_part(cluster, name, figure):
    user = User.objects.get(username=name)
    found = overview.capacity(cluster, cluster.gpu_classes.filter(name="h100-80gb"))[0]
    shares = shares_of(cluster)[found.gpu_class.pk]
    tree = overview.tree(cluster, user, found, tree_of(cluster), shares)
    figures = [(line.depth, getattr(line, "figures", line)) for line in tree.lines]
    top = sum(getattr(of, figure) for depth, of in figures if depth == 0)
    assert top == getattr(tree.total, figure)
    assert any(line not in tree.rows for line in tree.lines) == (name != "admin")


def many(cluster, count):
    """``count`` more rows of everything that pages list."""
    queue = Queue.objects.get(name="ci")
    work = [
        make_workload(queue, state=state) for state in ("pending", "running") for _ in range(count)
    ]
    for i in range(count):
        Queue.objects.create(cluster=cluster, name=f"more-{i}", parent=queue.parent)
        Eviction.objects.create(workload=work[i], at=NOW, rule="reclaim", queue=queue, gpus=1000)


@pytest.mark.parametrize(
    ("path", "queries"),
    [("/c/fra1/", 19), ("/c/fra1/queues/", 12), ("/c/fra1/queues/platform/", 22)],
)
@pytest.mark.parametrize("rows", [1, 3])
def test_queries_do_not_grow_with_rows(
    cluster, as_user, django_assert_num_queries, monkeypatch, path, queries, rows
):
    monkeypatch.setattr(settings, "WEIR_REMEMBERED_S", 60.0)
    many(cluster, rows)
    client = as_user("admin")
    with django_assert_num_queries(queries):
        client.get(path)


def test_live_refresh_leaves_the_frame_out(cluster, as_user):
    html = as_user("admin").get("/c/fra1/", headers={"X-Weir-Live": "1"}).content.decode()
    assert 'id="capacity"' in html
    assert "<html" not in html
    assert 'id="sidebar"' not in html


def test_menu_follows_what_a_person_may_do(cluster, as_user):
    researcher = as_user("researcher").get("/c/fra1/").content.decode()
    assert "Quotas" not in researcher
    assert 'aria-current="page"' in researcher


@pytest.mark.parametrize(("step", "is_marked"), [("classes", True), ("queues", False)])
def test_classes_and_prices_are_marked_in_the_menu_on_their_own_page_alone(
    cluster, as_user, step, is_marked
):
    Cluster.objects.update(mode="enforce")
    html = as_user("admin").get(f"/set-up/{step}/?cluster=fra1").content.decode()
    entry = re.search(r'<a href="/set-up/classes/[^>]*>', html)
    assert entry
    assert ('aria-current="page"' in entry[0]) == is_marked


def test_member_who_may_not_submit_is_not_asked_to(cluster, client):
    reader = make_member(Queue.objects.get(name="vision"), name="reader")
    client.force_login(reader)
    assert "Submit" not in client.get("/c/fra1/").content.decode()


def test_person_without_a_team_is_told_what_to_do(client):
    make_cluster()
    client.force_login(User.objects.create_user("new"))
    page = client.get("/")
    assert page.status_code == 404
    assert "Ask a team lead" in page.content.decode()


def test_home_leads_to_the_overview_of_the_persons_cluster(cluster, as_user):
    assert as_user("lead").get("/").url == reverse("web:overview", args=["fra1"])


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_theme_is_in_the_first_byte(cluster, as_user, theme):
    client = as_user("admin")
    client.cookies["theme"] = theme
    assert f'<html lang="en" data-theme="{theme}">' in client.get("/c/fra1/").content.decode()


def test_theme_cookie_with_anything_else_is_ignored():
    request = RequestFactory().get("/", headers={"cookie": 'theme="><script>'})
    assert Shell(request).theme == ""


def test_search_finds_within_what_one_may_see(cluster, as_user):
    found = as_user("p.rossi").get("/c/fra1/search?q=a").content.decode()
    assert "products/search" in found
    assert ">research/vision<" not in found
    assert "alignment-run-1" not in found


def test_search_without_a_hit_says_so(cluster, as_user):
    html = as_user("admin").get("/c/fra1/search?q=zzz", headers={"HX-Request": "true"})
    assert "Nothing you may see is called “zzz”" in html.content.decode()
    assert "<html" not in html.content.decode()


def test_queue_page_shows_an_inner_queues_whole_subtree(cluster, as_user):
    html = as_user("lead").get("/c/fra1/queues/language/").content.decode()
    assert "pretraining-run-1" in html
    assert "alignment-wait-1" in html
    assert "vision-run-1" not in html


def test_queue_above_ones_own_shows_figures_but_no_foreign_work(cluster, as_user):
    html = as_user("s.marchetti").get("/c/fra1/queues/language/").content.decode()
    assert "Entitled to" in html
    assert "alignment-run-1" in html
    assert "pretraining-run-1" not in html


def test_queue_page_draws_seven_days_of_samples(cluster, as_user):
    queue, h100 = Queue.objects.get(name="vision"), cluster.gpu_classes.first()
    for hours in range(1, 5):
        UsageSample.objects.create(
            queue=queue,
            gpu_class=h100,
            resolution=Resolution.HOUR,
            start=NOW.replace(minute=0, second=0) - hours * (NOW - NOW.replace(hour=8)),
            seconds=3600,
            allocated_gpus=8000,
            fair_share_gpus=8000,
            nominal_gpus=16000,
        )
    html = as_user("admin").get("/c/fra1/queues/vision/").content.decode()
    assert 'class="steps-area" d="M' in html


def test_queue_page_before_the_first_cycle_shows_zeros(cluster, as_user):
    Share.objects.all().delete()
    assert as_user("admin").get("/c/fra1/queues/vision/").status_code == 200


def test_cluster_without_classes_is_not_there_yet(client):
    cluster = make_cluster("empty")
    root = Queue.objects.create(cluster=cluster, name="empty")
    client.force_login(make_member(root, name="op", may_operate=True))
    assert client.get("/c/empty/").status_code == 200
    assert client.get("/c/empty/queues/empty/").status_code == 200
    assert "No GPU class yet" in client.get("/c/empty/queues/").content.decode()


def test_numbers_of_a_reason_lead_to_the_queue(cluster, as_user):
    html = as_user("lead").get("/c/fra1/").content.decode()
    assert 'class="number-link" href="/c/fra1/queues/pretraining/">39</a>.' in html


def test_hostile_names_are_escaped(cluster, as_user):
    Workload.objects.filter(name="pt-13b-ctx32k").update(
        name="<script>x</script>", sentence="<b>39</b> & 40"
    )
    html = as_user("lead").get("/c/fra1/").content.decode()
    assert "<script>x" not in html
    assert "&lt;b&gt;" in html


def test_faster_clock_is_said(cluster, as_user):
    Cluster.objects.filter(pk=cluster.pk).update(clock_speed=60)
    assert "60×" in as_user("admin").get("/c/fra1/").content.decode()


def test_dark_tokens_are_the_same_by_wish_and_by_choice():
    css = (settings.BASE_DIR / "static/css/tokens.css").read_text()
    by_wish = css.split(':not([data-theme="light"]) {')[1].split("}")[0]
    by_choice = css.split(':root[data-theme="dark"] {')[1].split("}")[0]
    assert by_wish.split() == by_choice.split()


def test_refresh_of_the_queue_page_reads_no_week_of_rows(
    cluster, as_user, django_assert_num_queries
):
    client = as_user("admin")
    with django_assert_num_queries(15):
        html = client.get("/c/fra1/queues/vision/", headers={"X-Weir-Live": "1"})
    assert "Last 7 days" not in html.content.decode()


@pytest.mark.parametrize("url", ["/c/fra1/", "/c/fra1/queues/pretraining/?class=h100-80gb"])
def test_predicted_start_stands_where_waits_are_listed(as_user, cluster, url):
    """Of who waits longest, and of who is first in the queue's line."""
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.filter(pk=work.pk).update(submitted_at=cluster.now() - timedelta(days=300))
    work.transitions.all().delete()
    p50, p90 = (cluster.now() + timedelta(hours=hours) for hours in (2, 5))
    StartForecast.objects.filter(workload=work).delete()
    StartForecast.objects.create(workload=work, at=cluster.now(), p50_at=p50, p90_at=p90)
    page = as_user("admin").get(url).content.decode()
    assert "Predicted start, P50 – P90" in page
    assert p50.isoformat() in page
    assert p90.isoformat() in page


def test_place_of_what_is_held_is_told_nowhere(as_user, cluster):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.filter(pk=work.pk).update(held=True, position=2, reason="held")
    client = as_user("m.okafor")
    assert "lace 2" not in client.get(f"/c/fra1/w/{work.uid}/").content.decode()
    (row,) = [
        one for one in client.get("/c/fra1/work/").context["now"].lines if one.work.pk == work.pk
    ]
    assert row.work.place is None
