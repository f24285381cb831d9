"""The last hours on the page of the engine, its recent cycles, its models, and what processes spend."""

from __future__ import annotations

import json
import re
from datetime import timedelta

import plotly.graph_objects as go
import pytest
from django.utils import timezone

from portal.web.operations.bounds import Bound
from portal.web.operations.drawing import last_hours
from portal.web.operations.hours import SPAN, hours_of
from portal.web.operations.views import models_of, recent
from scheduling.models import (
    ClusterMode,
    Cycle,
    CycleRecord,
    Decision,
    ForecastOutcome,
    Predictor,
    Process,
    Role,
)
from scheduling.services.clusters.add import set_mode
from tests.factories import make_workload

pytestmark = pytest.mark.django_db
URL = "/c/fra1/cluster/"


@pytest.fixture
def operator(cluster, as_user):
    return as_user("admin")


@pytest.fixture
def user(cluster, django_user_model):
    return django_user_model.objects.get(username="admin")


def page(client):
    return " ".join(client.get(URL).content.decode().split())


def cycle(cluster, number, *, minutes=5, **more):
    at = cluster.now() - timedelta(minutes=minutes)
    return Cycle.objects.create(cluster=cluster, number=number, at=at, **more)


def figure(cluster):
    return last_hours(hours_of(cluster), "Europe/Berlin")


def test_hours_add_up_cycles_of_ten_minutes(cluster):
    cluster.cycles.all().delete()
    for number, took in enumerate((100, 300, 500)):
        cycle(cluster, number, minutes=60 + number / 100, took_ms=took, admitted=2, evicted=1)
    cycle(cluster, 9, minutes=361 + 10, took_ms=9000)
    (slot,) = [slot for slot in hours_of(cluster).slots if slot.took_ms]
    assert (slot.half_ms, slot.slowest_ms, slot.started, slot.evicted) == (300, 500, 6, 3)


def test_cycle_that_nobody_measured_counts_and_has_no_time(operator, cluster):
    cluster.cycles.all().delete()
    cycle(cluster, 5, took_ms=0, admitted=2)
    found = hours_of(cluster)
    (slot,) = [slot for slot in found.slots if slot.cycles]
    assert (slot.half_ms, slot.started, found.slowest) == (None, 2, None)
    assert "None was measured." in page(operator)
    cycle(cluster, 6, took_ms=400)
    assert operator.get(URL).context["health"].half_ms == 400


def test_names_of_lines_stand_inside_their_panel(cluster):
    cluster.cycles.all().delete()
    cycle(cluster, 5, minutes=5.0, took_ms=1700)
    cycle(cluster, 6, minutes=5.01, took_ms=20)
    cycle(cluster, 7, minutes=5.02, took_ms=20)
    cycle(cluster, 8, minutes=0.1, took_ms=60)
    notes = {note["text"]: note["y"] for note in figure(cluster).layout["annotations"]}
    assert min(notes["slowest"], notes["P50 0.06"]) >= 0


def test_growth_and_moves_are_counted_apart_from_starts(cluster):
    one = cycle(cluster, 5)
    work = make_workload(cluster.queues.get(name="recommend"))
    for action in ("grow", "move", "admit", "wait"):
        Decision.objects.create(cycle=one, workload=work, action=action, reason="fits")
    assert sum(slot.changed for slot in hours_of(cluster).slots) == 2


def test_figure_is_taken_by_plotly_and_small(cluster):
    for number in range(40):
        cycle(cluster, number, minutes=9 * number + 1, took_ms=400 + number, admitted=1)
    drawn = figure(cluster)
    go.Figure(drawn.as_dict())
    json.dumps(drawn.as_dict(), allow_nan=False)
    assert sum(len(trace["x"]) for trace in drawn.data) <= 500


@pytest.mark.parametrize(("took_ms", "lines", "label"), [
    (300, 0, "↑ bound 2 s"), (1700, 1, "bound 2 s"),
])  # fmt: skip
def test_bound_is_drawn_to_scale_once_a_cycle_comes_near(cluster, took_ms, lines, label):
    cycle(cluster, 5, took_ms=took_ms)
    layout = figure(cluster).layout
    assert len(layout.get("shapes", [])) == lines
    assert label in [note["text"] for note in layout["annotations"]]


def test_lag_of_ten_minutes_is_the_longest_of_its_cycles(cluster):
    cluster.cycles.all().delete()
    cycle(cluster, 4, minutes=30)
    for number, lag_s in enumerate((0.2, 2.6, 0.0), start=5):
        cycle(cluster, number, minutes=5 + number / 1000, lag_s=lag_s)
    lags = [slot.lag_s for slot in hours_of(cluster).slots if slot.cycles]
    assert lags == [None, 2.6]
    drawn = figure(cluster)
    (line,) = [trace for trace in drawn.data if trace.get("name") == "mirror lag"]
    assert [y for y in line["y"] if y is not None] == [2.6]
    texts = [note["text"] for note in drawn.layout["annotations"]]
    assert {"last 2.6", "↑ bound 30 s"} <= set(texts)


def patterns(cluster):
    return [trace for trace in figure(cluster).data if "fillpattern" in trace]


@pytest.mark.parametrize("mode", [ClusterMode.OBSERVE, ClusterMode.PAUSED])
def test_time_in_which_nothing_was_written_is_hatched(cluster, mode):
    set_mode(cluster, ClusterMode.ENFORCE)
    cluster.history.update(history_date=timezone.now() - 2 * SPAN)
    assert not patterns(cluster)
    set_mode(cluster, mode)
    cluster.history.filter(mode=mode).update(history_date=timezone.now() - timedelta(hours=2))
    assert [trace["yaxis"] for trace in patterns(cluster)] == ["y", "y2", "y3"]
    (held,) = hours_of(cluster).standstills
    assert held.mode == mode
    assert held.end - held.start == pytest.approx(timedelta(hours=2), abs=timedelta(minutes=1))
    assert mode.label.lower() in [note["text"] for note in figure(cluster).layout["annotations"]]


def test_hatch_ends_where_enforcing_began_again(cluster):
    cluster.history.all().delete()
    for hours, mode in ((3, ClusterMode.PAUSED), (1, ClusterMode.ENFORCE)):
        cluster.mode = mode
        cluster.save()
        cluster.history.filter(mode=mode).update(
            history_date=timezone.now() - timedelta(hours=hours)
        )
    (held,) = hours_of(cluster).standstills
    assert held.end - held.start == pytest.approx(timedelta(hours=2), abs=timedelta(minutes=1))


def test_page_holds_the_chart_and_its_table(operator, cluster):
    cycle(cluster, 48300, took_ms=1310, admitted=4)
    html = page(operator)
    assert 'id="plot-engine-hours"' in html
    assert "<summary>Table</summary>" in html
    assert re.search(
        r"Slowest: 1\.31 s at .*? href=\"/c/fra1/cycles/48300/\">cycle 48,300</a>", html
    )


def test_cluster_without_cycles_says_so(operator, cluster):
    cluster.cycles.all().delete()
    html = page(operator)
    assert "No cycle in six hours" in html
    assert "No cycle yet" in html


def test_recent_cycles_are_the_last_and_those_that_evicted(cluster, user):
    cluster.cycles.all().delete()
    for number in range(1, 13):
        cycle(cluster, number, minutes=100 - number, evicted=number == 3)
    assert [row.cycle.number for row in recent(cluster, user)] == [12, 11, 10, 9, 8, 3]


def test_recent_cycle_tells_its_weightiest_act_and_what_woke_it(operator, cluster, user):
    one = cycle(cluster, 48300, admitted=1, evicted=1)
    queue = cluster.queues.get(name="recommend")
    victim, winner = make_workload(queue, name="sweep"), make_workload(queue, name="seg-base")
    Decision.objects.create(cycle=one, workload=winner, action="admit", reason="fits")
    Decision.objects.create(
        cycle=one, workload=victim, action="evict", reason="fits", for_workload=winner
    )
    Decision.objects.create(cycle=one, workload=victim, action="shrink", reason="fits")
    causes = [{"what": "submitted", "at": cluster.now().isoformat(), "workload": winner.pk}]
    CycleRecord.objects.create(cycle=one, causes=causes)
    (row, *_) = recent(cluster, user)
    assert row.woken_by == "seg-base was submitted"
    assert row.line == "sweep evicted for seg-base, and 2 more decisions"
    assert row.shrunk == 1
    assert '<a href="/c/fra1/cycles/48300/">48,300</a>' in page(operator)


def test_work_out_of_sight_is_counted_in_recent_cycles_and_not_named(cluster, django_user_model):
    one = cycle(cluster, 48300, admitted=1)
    work = make_workload(cluster.queues.get(name="recommend"), name="secret")
    Decision.objects.create(cycle=one, workload=work, action="admit", reason="fits")
    causes = [{"what": "submitted", "at": cluster.now().isoformat(), "workload": work.pk}]
    CycleRecord.objects.create(cycle=one, causes=causes)
    outsider = django_user_model.objects.create_user("outsider")
    (row, *_) = recent(cluster, outsider)
    assert (row.woken_by, row.line) == ("its timer", "1 decision about work of other teams")


def predictor(cluster, pct=79.4, runs=1000):
    now = cluster.now()
    return Predictor.objects.create(
        cluster=cluster, kind="boosted", version=42, status="serving", window_from=now, window_to=now,
        runs=1200, served_from=now - timedelta(hours=5), state=b"",
        calibration={"runs": runs, "p10_p90_pct": pct, "median_abs_log2_error": 0.4},
    )  # fmt: skip


def test_model_is_told_with_version_age_and_what_held(operator, cluster):
    predictor(cluster)
    html = page(operator)
    assert "v42, learned from 1,200 runs; serves since" in html
    assert "<b>79.4 %</b>" in html
    assert "between P10 and P90, should be 80" in html


@pytest.mark.parametrize(("pct", "runs", "verdict"), [
    (79.4, 1000, ""), (70, 1000, "too sure"), (90, 1000, "too careful"), (70, 10, "too few to say"),
])  # fmt: skip
def test_verdict_needs_more_than_noise(cluster, pct, runs, verdict):
    predictor(cluster, pct, runs)
    assert models_of(cluster)[0].verdict == verdict


def test_starts_are_judged_by_class(cluster):
    h100 = cluster.gpu_classes.first()
    queue = cluster.queues.get(name="recommend")
    for i in range(30):
        told = cluster.now() - timedelta(hours=3)
        ForecastOutcome.objects.create(
            workload=make_workload(queue, name=f"w{i}"), at_submission=True, told_at=told,
            p50_s=60, p90_s=600, raw_p50_s=60, raw_p90_s=600, gpu_class=h100,
            started_at=told + timedelta(seconds=300 if i < 24 else 900),
        )  # fmt: skip
    (model,) = models_of(cluster)
    assert (model.name, model.share.pct, model.target) == (f"Starts, {h100.name}", 80, 90)


def test_cluster_that_learned_nothing_says_what_holds_until_then(operator):
    assert "Nothing was learned yet" in page(operator)


def test_processes_are_told_with_cores_and_memory(operator):
    now = timezone.now()
    for role in (Role.WEB, Role.ENGINE):
        Process.objects.create(
            role=role,
            name="fra:7",
            host="fra",
            began_at=now,
            seen_at=now,
            cpu=0.614,
            memory_mib=1434,
        )
    html = page(operator)
    assert "61.4 %" in html
    assert "1.4 GiB" in html
    assert "One process in several roles" in html


def test_silent_process_tells_no_old_figures(operator):
    then = timezone.now() - timedelta(minutes=5)
    Process.objects.create(
        role=Role.WEB,
        name="fra:7",
        host="fra",
        began_at=then,
        seen_at=then,
        cpu=0.614,
        memory_mib=1434,
    )
    assert "1.4 GiB" not in page(operator)


@pytest.mark.parametrize(("used", "standing"), [
    (8, "Near, 2 left"), (10, "Near, 0 left"), (10.5, "Past by 0.5"), (12, "Past by 2"),
])  # fmt: skip
def test_guardrail_says_what_is_left_or_how_far_it_was_passed(used, standing):
    assert Bound("Evictions", "", used, 10).standing == standing


def acted(cluster, number, *, wait_s, took_ms=500, write_ms=250):
    one = cycle(cluster, number, took_ms=took_ms, admitted=1)
    at = (one.at - timedelta(seconds=wait_s)).isoformat()
    causes = [{"what": "policy", "at": one.at.isoformat(), "name": "quotas"}]
    causes += [{"what": "policy", "at": at, "name": "loans"}]
    phases = [["Divide", 1.0], ["Write to the cluster", write_ms]]
    return CycleRecord.objects.create(cycle=one, causes=causes, phases=phases)


def test_way_from_a_change_to_the_plan_and_its_writes_is_told(cluster, operator):
    cluster.cycles.all().delete()
    acted(cluster, 48300, wait_s=2)
    shown = page(operator)
    assert 'From change to plan</p><p class="cell-figure">2.5 <small>s, P90</small>' in shown
    assert "until its writes were done 2.8 s" in shown


def test_way_is_told_in_real_seconds_where_the_clock_of_the_cluster_runs_faster(cluster, operator):
    cluster.cycles.all().delete()
    type(cluster).objects.filter(pk=cluster.pk).update(clock_speed=60)
    acted(cluster, 48300, wait_s=120)
    assert 'From change to plan</p><p class="cell-figure">2.5 <small>' in page(operator)


def test_without_an_answered_change_no_way_is_told(cluster, operator):
    cluster.cycles.all().delete()
    assert "no change was answered in 24 h" in page(operator)
