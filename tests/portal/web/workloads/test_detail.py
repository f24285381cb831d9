import re
from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.selectors.history import Entry, folded
from scheduling.models import (
    Action,
    CheckpointHabit,
    Cycle,
    Decision,
    EditKind,
    Eviction,
    Share,
    State,
    Transition,
    Workload,
    WorkloadEdit,
)
from tests.factories import NOW, make_workload

pytestmark = pytest.mark.django_db


def url(name, verb=""):
    return f"/c/fra1/w/{Workload.objects.get(name=name).uid}/{verb}"


def text(response):
    assert response.status_code == 200
    return " ".join(response.content.decode().split())


def test_why_it_waits_is_a_sentence_with_code_and_framed_bar(as_user, cluster):
    page = text(as_user("m.okafor").get(url("pt-13b-ctx32k")))
    assert "ABOVE_FAIR_SHARE" in page
    assert "The framed part of the pending hatch is this gang." in page
    assert "with this gang" in page


@pytest.mark.parametrize(("before", "apart"), [(40, False), (36, True)])
def test_card_tells_its_bar_and_a_sentence_that_counts_starts_of_its_plan_apart(
    as_user, cluster, before, apart
):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.filter(pk=work.pk).update(numbers={"holds": 40, "fair_share": 39})
    Share.objects.filter(queue=work.queue).update(allocated=before * 1000)
    response = as_user("m.okafor").get(url(work.name))
    assert response.context["entitlement"].differs is apart
    said = "and so 40; the bar is what was held before, 36."
    assert (said in text(response)) is apart


def test_bar_of_what_a_queue_above_is_to_blame_for_is_its_own(as_user, cluster):
    numbers = {"holds": 90, "queue": "research"}
    Workload.objects.filter(name="pt-13b-ctx32k").update(numbers=numbers)
    response = as_user("m.okafor").get(url("pt-13b-ctx32k"))
    assert not response.context["entitlement"].differs


def test_bar_is_of_the_class_that_the_sentence_is_about(as_user, cluster):
    numbers = {"holds": 8, "limit": 8, "gpu_class": "a100-40gb"}
    classes = ["h100-80gb", "a100-40gb"]
    a100, queue = cluster.gpu_classes.get(name="a100-40gb"), cluster.queues.get(name="pretraining")
    Share.objects.create(queue=queue, gpu_class=a100, allocated=8000, limit=8000)
    waits = Workload.objects.filter(name="pt-13b-ctx32k")
    waits.update(sentence="Its queue is full.", sealed={}, numbers=numbers, gpu_classes=classes)
    shown = as_user("m.okafor").get(url("pt-13b-ctx32k")).context["entitlement"]
    assert shown.share.gpu_class.name == "a100-40gb"


def test_unlike_roles_are_shown_each_with_its_pods_and_their_gpus(as_user, cluster):
    shapes = [
        {"roles": ["head"], "pods": 1, "gpus": 1},
        {"roles": ["data", "workers"], "pods": 4, "gpus": 8},
    ]
    Workload.objects.filter(name="pt-13b-ctx32k").update(shapes=shapes)
    page = text(as_user("m.okafor").get(url("pt-13b-ctx32k")))
    assert "head 1 × 1 GPU, data and workers 4 × 8 GPUs" in page


def test_role_that_grows_is_shown_with_the_pods_it_has_and_its_bounds(as_user, cluster):
    shapes = [
        {"roles": ["head"], "pods": 1, "gpus": 1},
        {"roles": ["workers"], "pods": 6, "pods_min": 2, "gpus": 2},
    ]
    work = Workload.objects.filter(name="pt-13b-ctx32k")
    work.update(shapes=shapes, gpus=1000, min_members=5, max_members=13, elastic=True)
    page = text(as_user("m.okafor").get(url("pt-13b-ctx32k")))
    assert "head 1 × 1 GPU, workers 2–6 × 2 GPUs" in page

    work.update(state=State.RUNNING, members=7, placement={"n1": 5, "n2": 2})
    page = text(as_user("m.okafor").get(url("pt-13b-ctx32k")))
    assert "head 1 of 1 × 1 GPU, workers 3 of 2–6 × 2 GPUs" in page
    assert "4 pods on" in page


def test_eviction_shows_no_figures_of_a_queue_that_one_may_not_see(as_user, cluster):
    response = as_user("m.okafor").get(url("pt-13b-ctx32k"))
    [loss] = [entry.loss for entry in response.context["entries"] if entry.loss]
    assert [side.name for side in loss.sides] == ["pretraining"]
    assert "alignment" not in text(response)
    assert "for a workload of another team" in text(response)


def test_eviction_shows_both_queues_before_and_after_and_the_arithmetic(as_user, cluster):
    response = as_user("lead").get(url("pt-13b-ctx32k"))
    [loss] = [entry.loss for entry in response.context["entries"] if entry.loss]
    figures = [(side.name, side.before, side.fair_share, side.after) for side in loss.sides]
    assert figures == [("pretraining", 56, 44, 40), ("alignment", 0, 12, 12)]
    page = text(response)
    assert "Lost = 16 GPUs × 28 min of work" in page, page[page.index("Lost = ") :][:60]
    assert "Evicted: 16 GPUs for 12 asked for, 1.33 for each." in page


def test_eviction_keeps_the_figures_of_then_whatever_holds_now(as_user, cluster):
    Share.objects.update(allocated=3000, fair_share=5000)
    response = as_user("lead").get(url("pt-13b-ctx32k"))
    [loss] = [entry.loss for entry in response.context["entries"] if entry.loss]
    assert [(side.before, side.after) for side in loss.sides] == [(56, 40), (0, 12)]
    then = text(response).split('class="loss"')[1]
    assert re.search(r">At <time[^>]*>07:58</time>, h100-80gb</th>", then), then[:900]
    assert "Held before" in then
    assert "Held after" in then


def test_winner_is_a_link_only_for_who_may_open_it(as_user, cluster):
    winner = url("alignment-run-1")
    assert winner in text(as_user("lead").get(url("pt-13b-ctx32k")))
    assert winner not in text(as_user("w.zhao").get(url("pt-13b-ctx32k")))


def test_history_reads_newest_first(as_user, cluster):
    entries = as_user("m.okafor").get(url("pt-13b-ctx32k")).context["entries"]
    heads = [entry.head for entry in entries]
    assert heads == ["Requeued", "Evicted", "Running", "Admitted", "Submitted"]


def test_sentence_of_an_eviction_stands_once_in_the_history(as_user, cluster):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    work.evictions.update(sentence="It held too much.", sealed="")
    work.transitions.filter(to_state=State.REQUEUED).update(sentence="It held too much.")
    response = as_user("lead").get(url("pt-13b-ctx32k"))
    requeued = next(one for one in response.context["entries"] if one.head == "Requeued")
    assert requeued.text == "Keeps its submit time, so it goes before newer work of the queue."
    assert text(response).count("It held too much.") == 1


@pytest.mark.parametrize(("reasons", "hidden"), [(4, 0), (6, 2), (9, 5)])
def test_long_wait_shows_its_newest_reasons_and_folds_the_rest(reasons, hidden):
    waits = [
        Entry(NOW - timedelta(hours=i), f"Waited {i}", "clock", "It waits.") for i in range(reasons)
    ]
    ran = Entry(NOW - timedelta(days=2), "Running", "running", "")
    shown = folded([*waits, ran, *waits[:2]])
    assert [entry.head for entry, _ in shown] == [
        *(f"Waited {i}" for i in range(4)), "Running", "Waited 0", "Waited 1",
    ]  # fmt: skip
    assert [len(rest) for _, rest in shown] == [0, 0, 0, hidden, 0, 0, 0]


def test_single_reason_more_is_not_folded():
    waits = [Entry(NOW, f"Waited {i}", "clock", "It waits.") for i in range(5)]
    assert folded(waits) == [(one, []) for one in waits]


def test_no_start_is_predicted_where_nobody_predicts(as_user, cluster):
    page = text(as_user("m.okafor").get(url("pt-13b-ctx32k")))
    assert "P50" not in page
    assert "Predicted" not in page


def test_predicted_end_of_running_work_is_drawn(as_user, cluster):
    run = Workload.objects.filter(name="pretraining-run-1")
    run.update(predicted_p50_s=9 * 3600, predicted_p90_s=12 * 3600)
    assert "ends P50" in text(as_user("m.okafor").get(url("pretraining-run-1")))


def test_cost_is_for_the_owner_and_who_may_read_costs(as_user, cluster):
    shown = {
        name: "Cost so far" in text(as_user(name).get(url("pretraining-run-1")))
        for name in ("m.okafor", "w.zhao", "lead", "admin")
    }
    assert shown == {"m.okafor": True, "w.zhao": False, "lead": True, "admin": True}


def test_cost_of_the_run_so_far_is_gpu_hours_times_price(as_user, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    cost = as_user("m.okafor").get(url(work.name)).context["cost"]
    hours = (cluster.now() - work.admitted_at).total_seconds() / 3600 * 8
    assert float(cost.amount) == pytest.approx(hours * 2.10, abs=0.1)


def test_pods_are_looked_up_with_kubectl(as_user, cluster):
    page = text(as_user("m.okafor").get(url("pretraining-run-1")))
    assert "kubectl -n pretraining describe job/pretraining-run-1" in page
    assert "kubectl -n pretraining events --for job/pretraining-run-1" in page
    assert "kubectl -n pretraining logs job/pretraining-run-1 --all-containers" in page
    assert " exec -it " not in page
    assert "h100-01" in page


def test_each_command_has_a_button_that_copies_it(as_user, cluster):
    page = as_user("m.okafor").get(url("pretraining-run-1")).content.decode()
    assert page.count('data-copy="#command-') == page.count('id="command-') == 3
    assert "js/copy.js" in page


def test_misrouted_work_says_which_label(as_user, cluster):
    make_workload(
        None,
        cluster=cluster,
        name="lost",
        user="researcher",
        reason="misrouted",
        sentence="No queue is called nowhere.",
    )
    page = text(as_user("researcher").get(url("lost")))
    assert "MISROUTED" in page
    assert "none is called “nowhere”" in page


def test_work_above_what_its_user_may_hold_at_once_says_so(as_user, cluster):
    said = "Persona researcher of team vision lets its user hold 8 GPUs at once. They hold 8 now."
    queue = cluster.queues.get(name="pretraining")
    make_workload(queue, name="more", user="m.okafor", reason="user_at_limit", sentence=said)
    page = text(as_user("m.okafor").get(url("more")))
    assert "lets its user hold 8 GPUs at once. They hold 8 now" in page


def test_decision_behind_the_reason_is_one_click_away(as_user, cluster):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Decision.objects.create(
        cycle=Cycle.objects.get(), workload=work, action=Action.WAIT.value, reason="at_limit"
    )
    assert "Decision of cycle 48,213" in text(as_user("m.okafor").get(url(work.name)))


def test_work_of_others_queues_is_absent(as_user, cluster):
    hidden = as_user("q.nguyen").get(url("pt-13b-ctx32k"))
    nowhere = as_user("q.nguyen").get("/c/fra1/w/no-such-uid/")
    assert hidden.status_code == nowhere.status_code == 404


def test_finished_work_ends_its_line(as_user, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    work.state, work.outcome, work.finished_at = State.FINISHED, "failed", cluster.now()
    work.save()
    Transition.objects.create(workload=work, at=work.finished_at, to_state=State.FINISHED)
    response = as_user("m.okafor").get(url(work.name))
    assert response.context["line"].now is None
    assert not response.context["may_cancel"]
    assert "Failed" in text(response)


def announced(queue, *uids, user="m.okafor"):
    CheckpointHabit.objects.create(
        queue=queue, user=user, recent=[[uid, [1800, 1700]] for uid in uids]
    )


@pytest.mark.parametrize(
    ("place", "user", "whose"),
    [
        ("pretraining", "m.okafor", "5 of m.okafor&#x27;s last 5 workloads in pretraining"),
        ("vision", "m.okafor", "5 of m.okafor&#x27;s last 5 workloads</dd>"),
        ("pretraining", "w.zhao", "5 of the last 5 workloads in pretraining"),
    ],
)
def test_learned_checkpoint_interval_says_from_whom(as_user, cluster, place, user, whose):
    announced(cluster.queues.get(name=place), *"abcde", user=user)
    page = text(as_user("m.okafor").get(url("pretraining-run-1")))
    assert f"about 30 min, learned from {whose}" in page


def test_checkpoint_that_is_only_presumed_says_so(as_user, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    announced(work.queue, *"abcde")
    Workload.objects.filter(pk=work.pk).update(started_at=cluster.now() - timedelta(minutes=40))
    assert "presumed, none announced yet" in text(as_user("m.okafor").get(url(work.name)))
    Workload.objects.filter(pk=work.pk).update(started_at=cluster.now() - timedelta(minutes=70))
    assert "Last checkpoint" not in text(as_user("m.okafor").get(url(work.name)))


def test_announced_checkpoint_says_when_the_next_is_due(as_user, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    announced(work.queue, work.uid)
    Workload.objects.filter(pk=work.pk).update(checkpointed_at=cluster.now() - timedelta(minutes=9))
    page = text(as_user("m.okafor").get(url(work.name)))
    assert "about 30 min, learned from its own last 2" in page
    assert ", the next about <time" in page


def test_declared_checkpoint_interval_stands_alone(as_user, cluster):
    work = Workload.objects.get(name="pretraining-run-1")
    announced(work.queue, *"abcde")
    Workload.objects.filter(pk=work.pk).update(checkpoint_interval_s=1200)
    page = text(as_user("m.okafor").get(url(work.name)))
    assert "<dd>20 min</dd>" in page
    assert "learned" not in page


@pytest.mark.parametrize("rows", [1, 3])
def test_queries_do_not_grow_with_the_past(
    client, cluster, rows, settings, django_assert_num_queries
):
    settings.WEIR_REMEMBERED_S = 5.0  # as in production
    work = make_workload(cluster.queues.get(name="search"), user="p.rossi", eviction_count=rows)
    for i in range(rows):
        at = NOW - timedelta(minutes=10 * i)
        Transition.objects.create(workload=work, at=at, to_state=State.EVICTED)
        Eviction.objects.create(
            workload=work,
            at=at,
            gpus=1000,
            queue=work.queue,
            for_queue=cluster.queues.get(name="ci"),
            for_workload=Workload.objects.get(name="search-run-1"),
        )
    client.force_login(User.objects.get(username="p.rossi"))
    with django_assert_num_queries(25):
        client.get(url(work.name))


@pytest.fixture
def waited(cluster):
    """Submitted three hours ago; told one reason for an hour, then another, which lasts."""
    work = make_workload(cluster.queues.get(name="pretraining"), name="waiter")
    Transition.objects.create(workload=work, at=NOW - timedelta(hours=3), to_state=State.PENDING)
    for number, (hours, reason) in enumerate([(3, "above_fair_share"), (2, "no_free_cpus")]):
        cycle = Cycle.objects.create(
            cluster=cluster, number=47000 + number, at=NOW - timedelta(hours=hours)
        )
        Decision.objects.create(
            cycle=cycle, workload=work, action=Action.WAIT, reason=reason,
            sentence=f"said {reason}.", sealed={},
        )  # fmt: skip
    return work


def test_each_reason_of_a_wait_stands_in_the_history_with_its_length(as_user, waited):
    page = text(as_user("researcher").get(url("waiter")))
    assert "Waited 1 h: above fair share" in page
    assert "said above_fair_share." in page
    assert "Waits 2 h: too few CPUs" in page


def test_last_reason_of_a_wait_that_is_over_lasted_until_the_start(as_user, waited):
    at = NOW - timedelta(minutes=30)
    Transition.objects.create(
        workload=waited, at=at, from_state=State.PENDING, to_state=State.ADMITTED
    )
    page = text(as_user("researcher").get(url("waiter")))
    assert "Waited 1 h 30 min: too few CPUs" in page


def test_reason_that_several_cycles_gave_is_told_once(as_user, waited):
    cycle = Cycle.objects.create(
        cluster=waited.cluster, number=47005, at=NOW - timedelta(minutes=10)
    )
    Decision.objects.create(
        cycle=cycle, workload=waited, action=Action.WAIT, reason="no_free_cpus", sealed={}
    )
    assert text(as_user("researcher").get(url("waiter"))).count("Waits 2 h: ") == 1


@pytest.mark.parametrize(
    ("state", "outcome", "head"),
    [("finished", "failed", "Why it ended"), ("admitted", "", "What keeps it from running")],
)
def test_page_says_why_it_does_not_run_and_what_to_do(as_user, cluster, state, outcome, head):
    work = make_workload(
        cluster.queues.get(name="pretraining"), user="researcher", state=state, outcome=outcome,
        cause="image", cause_said="manifest unknown", finished_at=NOW if outcome else None,
    )  # fmt: skip
    page = as_user("researcher").get(f"/c/fra1/w/{work.uid}/").content.decode()
    assert head in page
    assert "An image of it could not be pulled: manifest unknown." in page
    assert "pull secret" in page


def test_page_of_work_that_succeeded_says_no_cause(as_user, cluster):
    work = make_workload(
        cluster.queues.get(name="pretraining"), user="researcher", state="finished",
        outcome="succeeded", finished_at=NOW,
    )  # fmt: skip
    assert (
        "Why it ended" not in as_user("researcher").get(f"/c/fra1/w/{work.uid}/").content.decode()
    )


def test_history_says_who_changed_it_and_each_line_its_size_then(as_user, cluster):
    work = Workload.objects.get(name="pt-13b-ctx32k")
    begun = work.submitted_at + timedelta(minutes=5)
    WorkloadEdit.objects.create(
        workload=work, at=begun, actor="ann",
        before={"min_members": 3, "max_members": 3, "gpus": 4000, "run_time_limit_s": 3600},
        after={"min_members": 2, "max_members": 2, "gpus": 8000, "run_time_limit_s": 7200},
    )  # fmt: skip
    WorkloadEdit.objects.create(
        workload=work, at=begun + timedelta(minutes=1), kind=EditKind.HELD, actor="bob"
    )
    WorkloadEdit.objects.create(
        workload=work, at=begun + timedelta(minutes=2),
        before={"priority_class": "low"}, after={"priority_class": "high"},
    )  # fmt: skip
    Workload.objects.filter(pk=work.pk).update(gpus=8000, min_members=2, max_members=2)
    page = text(as_user("lead").get(url("pt-13b-ctx32k")))
    assert "Changed by ann</b> · Size 3 × 4 → 2 × 8, run-time limit 1 h → 2 h." in page
    assert "Put on hold by bob</b> · The next cycle plans it so." in page
    assert "Changed on the cluster</b> · Priority class low → high." in page
    first = page.rpartition("<b>Submitted</b>")[2]
    assert "a gang of 3 × 4 ×" in first.partition("</li>")[0]


def test_work_on_slices_is_counted_in_slices(as_user, cluster):
    mig = cluster.gpu_classes.get(name="a100-mig-1g.5gb")
    work = Workload.objects.get(name="pt-13b-ctx32k")
    Workload.objects.filter(pk=work.pk).update(
        gpu_class=mig, gpu_classes=[mig.name], gpus=1000, members=2, min_members=2, max_members=2,
        state="running", started_at=work.submitted_at,
    )  # fmt: skip
    work.transitions.create(at=work.submitted_at, to_state="running", gpus=2000, gpu_class=mig)
    shown = text(as_user("m.okafor").get(url(work.name)))
    assert "2 pods × 1 slice" in shown
    assert "on 2 slices" in shown
