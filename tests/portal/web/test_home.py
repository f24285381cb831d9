"""My work: a researcher's own work, queues and waits before everybody's."""

import re
from datetime import timedelta
from decimal import Decimal

import pytest

from portal.accounts.models import User
from portal.web.mine.active import active_of
from portal.web.mine.ahead import Span, TimeAxis
from portal.web.mine.queues import own_share
from scheduling.models import Cycle, Eviction, Queue, State, Transition, Workload
from scheduling.services.workloads.lifecycle import transition
from tests.factories import NOW, make_cluster, make_member, make_workload

pytestmark = pytest.mark.django_db
HOME = "/c/fra1/work/"


def of_person(cluster, user, gpu_class):
    return own_share(cluster, user, active_of(cluster, user), gpu_class)


def text(response):
    assert response.status_code == 200
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode()))


def finish(queue, name, outcome, hours, **fields):
    """Work that ended ``hours`` ago after five GPU-hours."""
    work = make_workload(
        queue,
        name=name,
        state=State.RUNNING,
        submitted_at=NOW - timedelta(hours=hours + 6),
        **fields,
    )
    work.state, work.outcome, work.used_gpu_s = State.FINISHED, outcome, 5 * 3600
    work.finished_at = NOW - timedelta(hours=hours)
    work.save()
    return work


@pytest.mark.parametrize(
    ("name", "page"), [("m.okafor", "work/"), ("lead", ""), ("admin", "")]
)  # fmt: skip
def test_landing_is_ones_own_work_unless_one_answers_for_others(cluster, as_user, name, page):
    assert as_user(name).get("/").headers["Location"] == f"/c/fra1/{page}"


def test_home_shows_own_work_and_nobody_elses(cluster, as_user):
    shown = as_user("m.okafor").get(HOME).context["now"].lines
    assert {line.work.user for line in shown} == {"m.okafor"}
    assert [line.work.is_waiting for line in shown] == sorted(
        (line.work.is_waiting for line in shown), reverse=True
    )


def test_home_says_first_how_much_waits_runs_and_needs_its_owner(cluster, as_user):
    now = as_user("m.okafor").get(HOME).context["now"]
    finish(Queue.objects.get(name="pretraining"), "broken", "failed", 1)
    waiting, running = now.waiting.count, now.running.count
    said = text(as_user("m.okafor").get(HOME))
    assert f"{waiting} wait, {running} run, 1 needs you." in said
    assert "broken failed at" in said


def test_work_that_cannot_start_as_it_is_needs_its_owner(cluster, as_user):
    Workload.objects.filter(name="pt-13b-ctx32k").update(reason="never_fits")
    said = text(as_user("m.okafor").get(HOME))
    assert "1 needs you." in said
    assert "It will not start as it is. Clone and change it" in said


def test_work_on_hold_is_not_called_unplanned(cluster, as_user):
    Workload.objects.filter(name="pt-13b-ctx32k").update(held=True, reason="held", position=None)
    assert "not planned yet" not in text(as_user("m.okafor").get(HOME))


def test_ended_work_is_sorted_by_what_needs_its_owner_and_its_column_adds_up(cluster, as_user):
    queue = Queue.objects.get(name="pretraining")
    Eviction.objects.update(at=NOW - timedelta(hours=2))
    finish(queue, "late", "succeeded", 1)
    finish(queue, "early", "succeeded", 3)
    finish(queue, "broken", "failed", 5)
    finish(queue, "old", "failed", 30)
    ended = as_user("m.okafor").get(HOME).context["ended"]
    assert [row.work.name for row in ended.rows] == ["broken", "pt-13b-ctx32k", "late", "early"]
    assert Decimal(ended.hours_shown) == sum(Decimal(hours) for _, hours in ended.lines)
    assert ended.cost == sum(row.cost for row in ended.rows if row.cost)


def test_log_of_failed_work_is_looked_for_where_the_cluster_is_asked_for_it(cluster, as_user):
    queue = Queue.objects.get(name="pretraining")
    work = finish(queue, "broken", "failed", 5, cause="exit_code", exit_code=1)
    html = as_user("m.okafor").get(HOME).content.decode()
    assert "kubectl" not in html.split('id="ended"')[1].split("</section>")[0]
    assert f'href="/c/fra1/w/{work.uid}/#log-head">Why it ended, and its log' in html
    assert "Read its log while the cluster has its pods" in html


def test_ended_work_that_was_evicted_before_stands_once(cluster, as_user):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Eviction.objects.create(workload=work, at=NOW - timedelta(minutes=5), gpus=1000)
    ended = as_user("m.okafor").get(HOME).context["ended"]
    assert [row.work.name for row in ended.rows] == ["pt-13b-ctx32k"]


def test_lines_of_own_queues_and_others_add_up_to_all(cluster):
    gpu_class = cluster.gpu_classes.first()
    for name in ("m.okafor", "researcher", "s.marchetti", "lead", "admin"):
        own = of_person(cluster, User.objects.get(username=name), gpu_class)
        for figure in ("allocated", "fair_share", "nominal", "pending", "mine", "mine_pending"):
            lines = sum(getattr(line.amounts, figure) for line in own.lines)
            assert lines + getattr(own.others, figure) == getattr(own.total, figure), (name, figure)
    assert own.total.allocated == 114000


def test_others_are_one_line_without_a_name(cluster, as_user):
    response = as_user("m.okafor").get(HOME)
    assert "11 queues that you are no member of" in text(response)
    for foreign in ("assistant", "recommend", "speech", "vision"):
        assert not re.search(rf"\b{foreign}\b", text(response))


def test_own_part_of_the_bar_is_framed(cluster, as_user):
    [line] = as_user("m.okafor").get(HOME).context["own"].lines
    assert line.bar.framed_held is not None
    assert line.bar.framed is not None
    assert line.amounts.mine <= line.amounts.allocated


@pytest.fixture
def of_solo(cluster):
    """``of_solo(...)``: work of one person in pretraining, which was submitted an hour ago; the last plan is
    a minute old. What the table says of h100-80gb: (mine held, mine pending)."""
    Cycle.objects.create(cluster=cluster, number=10**9, at=NOW - timedelta(minutes=1))
    user, queue = User.objects.create_user("solo"), Queue.objects.get(name="pretraining")
    gpu_class = cluster.gpu_classes.get(name="h100-80gb")

    def counted(*steps, **fields):
        told = {"submitted_at": NOW - timedelta(hours=1), "gpu_classes": ["h100-80gb"], **fields}
        work = make_workload(queue, user="solo", gpus=4000, **told)
        for state, ago in steps:
            at = {"gpu_class": gpu_class} if state == State.ADMITTED else {}
            transition(work, state, at=NOW - timedelta(**ago), **at)
        total = of_person(cluster, user, gpu_class).total
        return total.mine, total.mine_pending

    return counted


EARLY, LATE = {"minutes": 5}, {"seconds": 5}
ADMITTED, RUNNING = (State.ADMITTED, {"minutes": 50}), (State.RUNNING, {"minutes": 49})
EVICTED = (State.EVICTED, EARLY), (State.REQUEUED, EARLY)


def test_own_part_is_without_what_came_after_the_plan(of_solo):
    assert of_solo(submitted_at=NOW) == (0, 0)


@pytest.mark.parametrize(
    ("steps", "counted"),
    [
        ([ADMITTED, RUNNING], (4000, 0)),
        ([(State.ADMITTED, LATE)], (0, 4000)),
        ([(State.ADMITTED, {"minutes": 1})], (0, 4000)),
        ([ADMITTED, RUNNING, (State.FINISHED, LATE)], (4000, 0)),
        ([(State.ADMITTED, {"seconds": 30}), (State.FINISHED, LATE)], (0, 4000)),
        ([ADMITTED, (State.FINISHED, EARLY)], (0, 0)),
        ([ADMITTED, (State.FINISHED, {"minutes": 1})], (0, 0)),
        ([(State.FINISHED, LATE)], (0, 4000)),
        ([ADMITTED, *EVICTED], (0, 4000)),
        ([ADMITTED, (State.EVICTED, EARLY), (State.REQUEUED, LATE)], (4000, 0)),
        ([ADMITTED, (State.EVICTED, LATE), (State.REQUEUED, LATE)], (4000, 0)),
        ([ADMITTED, (State.EVICTED, {"minutes": 1}), (State.REQUEUED, LATE)], (4000, 0)),
        ([ADMITTED, *EVICTED, (State.ADMITTED, LATE)], (0, 4000)),
        (
            [ADMITTED, (State.EVICTED, LATE), (State.REQUEUED, LATE), (State.FINISHED, LATE)],
            (4000, 0),
        ),
        ([ADMITTED, (State.FINISHED, EARLY), (State.REQUEUED, LATE)], (0, 0)),
    ],
)
def test_own_work_is_counted_as_the_plan_found_it(of_solo, steps, counted):
    """The plan is a minute old: of that instant is what it did, and what ended just then it saw."""
    assert of_solo(*steps) == counted


def test_own_work_is_counted_as_the_plan_counts_what_is_pending(of_solo):
    """All members, in each class that it accepts, and nothing on hold."""
    assert of_solo(gpu_classes=["a100-40gb", "h100-80gb"], max_members=2) == (0, 8000)
    assert of_solo(held=True) == (0, 8000)


def test_cost_of_a_slice_is_the_price_of_a_slice(cluster, as_user):
    queue = Queue.objects.get(name="pretraining")
    mig = cluster.gpu_classes.get(name="a100-mig-1g.5gb")
    Workload.objects.filter(user="m.okafor").delete()
    work = make_workload(
        queue, gpus=7000, state=State.RUNNING, gpu_classes=[mig.name], gpu_class=mig,
        submitted_at=NOW - timedelta(hours=11),
    )  # fmt: skip
    Transition.objects.create(
        workload=work, at=NOW - timedelta(hours=10), to_state=State.RUNNING, gpus=7000
    )
    month = as_user("m.okafor").get(f"{HOME}?part=month").context["month"]
    assert month.gpu_hours == pytest.approx(10, abs=0.1)
    assert float(month.cost) == pytest.approx(70 * 0.20, abs=0.1)


def test_month_says_what_was_really_used_as_the_report_does(cluster, as_user):
    work = Workload.objects.filter(user="m.okafor", state=State.RUNNING).first()
    Transition.objects.create(
        workload=work, at=NOW - timedelta(hours=4), to_state=State.RUNNING, gpus=8000
    )
    client = as_user("m.okafor")
    assert "nobody measured it" in client.get(f"{HOME}?part=month").content.decode()
    work.gpu_use.create(
        gpu_class=work.gpu_class, start=NOW - timedelta(hours=3), gpu_s=8000, active_gpu_s=6000
    )
    page = client.get(f"{HOME}?part=month")
    report = client.get(f"/c/fra1/reports/use?format=json&{page.context['month'].query}").json()
    assert page.context["month"].used_share == pytest.approx(0.75)
    assert report["used_gpu_hours"] / report["measured_gpu_hours"] == pytest.approx(0.75, abs=0.001)


def test_months_figures_are_those_of_the_report_they_link_to(cluster, as_user):
    work = Workload.objects.filter(user="m.okafor", state=State.RUNNING).first()
    Transition.objects.create(
        workload=work, at=NOW - timedelta(hours=4), to_state=State.RUNNING, gpus=8000
    )
    client = as_user("m.okafor")
    month = client.get(f"{HOME}?part=month").context["month"]
    report = client.get(f"/c/fra1/reports/utilization?format=json&{month.query}").json()
    assert report["total"]["allocated_gpu_hours"] == pytest.approx(month.gpu_hours, abs=0.01)


def test_home_of_who_has_nothing_says_what_to_do(cluster, as_user):
    Workload.objects.all().delete()
    Eviction.objects.all().delete()
    said = text(as_user("m.okafor").get(HOME))
    for part in ("Nothing of yours waits or runs.", "Submit a workload", "Nothing of yours ended"):
        assert part in said


def test_home_of_who_may_not_submit_says_whom_to_ask(cluster, client):
    client.force_login(make_member(Queue.objects.get(name="vision"), name="looker"))
    said = text(client.get(HOME))
    assert "Ask the lead of a team to add you" in said
    assert "Submit workload" not in said


def test_unknown_class_is_absent(cluster, as_user):
    assert as_user("m.okafor").get(f"{HOME}?class=b200").status_code == 404


def test_home_of_a_cluster_without_classes_opens(client):
    empty = make_cluster("empty")
    root = Queue.objects.create(cluster=empty, name="empty")
    client.force_login(make_member(root, name="op", may_operate=True))
    assert client.get("/c/empty/work/").status_code == 200


@pytest.mark.parametrize("rows", [1, 4])
def test_queries_do_not_grow_with_work(cluster, as_user, django_assert_num_queries, rows):
    queue = Queue.objects.get(name="pretraining")
    for i in range(rows):
        make_workload(queue, state=State.RUNNING)
        make_workload(queue)
        work = finish(queue, f"done-{i}", "failed", 1)
        Transition.objects.create(workload=work, at=work.finished_at, to_state=State.FINISHED)
    client = as_user("m.okafor")
    with django_assert_num_queries(23):
        client.get(HOME, headers={"X-Weir-Live": "1"})


def test_axis_of_time_holds_all_within_a_day_of_now():
    long, short = Span(NOW - timedelta(days=9), True), Span(NOW - timedelta(minutes=9), False)
    axis = TimeAxis.over([long, short], NOW)
    assert axis.begin == NOW - timedelta(days=1)
    assert axis.end == NOW + timedelta(hours=2)
    drawn = axis.draw(long)
    assert drawn.ran is not None
    assert drawn.ran[0] == 0
    assert drawn.ran[0] + drawn.ran[1] == pytest.approx(axis.now_x)
    assert axis.draw(short).waited is not None


def test_nothing_is_drawn_ahead_that_nobody_predicts():
    span = Span(NOW - timedelta(hours=1), True)
    drawn = TimeAxis.over([span], NOW).draw(span)
    assert (drawn.ahead, drawn.band, drawn.latest) == (None, None, None)


def test_predicted_end_is_a_band_from_p50_to_p90():
    ends = {"p50": NOW + timedelta(hours=3), "p90": NOW + timedelta(hours=5)}
    span = Span(NOW - timedelta(hours=1), True, **ends)
    axis = TimeAxis.over([span], NOW)
    drawn = axis.draw(span)
    assert drawn.band == axis.between(ends["p50"], ends["p90"])
    assert drawn.ahead == axis.between(NOW, ends["p50"])
