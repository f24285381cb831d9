"""The look at a cluster: asked, stepped, checked, kept or taken back."""

from datetime import timedelta

import pytest

from portal.accounts.models import User
from scheduling import tasks
from scheduling.models import (
    Adaptation,
    AdaptingParameter,
    AdaptingTrial,
    Announcement,
    Study,
    StudyState,
    TrialState,
    Variant,
    Workload,
)
from scheduling.services.queues.knobs import set_policy
from scheduling.services.studies import doors, running
from scheduling.services.studies.adapting import steps, trials
from scheduling.services.studies.adapting.parameters import BY_NAME
from tests.adapting import AS_EVER, BETTER, WORSE, answer, asked, checked, later, stepped, turned_on
from tests.factories import NOW, example_cluster

pytestmark = pytest.mark.django_db
DAY_S = 86400


@pytest.fixture
def cluster(monkeypatch, settings):
    settings.WEIR_ADAPTING_REPLAYS = 6
    return turned_on(example_cluster(), monkeypatch)


def half_life_d(cluster):
    cluster.refresh_from_db()
    return cluster.usage_half_life_s / DAY_S


def only_trial():
    return AdaptingTrial.objects.get()


def test_first_look_replays_the_last_week_with_one_step_either_way(cluster):
    trial = asked(cluster)
    made = trial.study
    assert (trial.parameter, trial.state) == ("half_life", TrialState.JUDGING)
    assert [one.name for one in made.variants.all()] == ["As in force", "6 d", "8 d"]
    assert (made.period[1] - made.period[0], made.author) == (timedelta(days=7), "")
    assert half_life_d(cluster) == 7


def test_off_nothing_is_asked(cluster):
    trials.switch(cluster=cluster, is_on=False, author=None)
    steps.look(cluster)
    assert not Study.objects.exists()


def test_paused_cluster_is_left_alone(cluster):
    cluster.mode = "paused"
    steps.look(cluster)
    assert not Study.objects.exists()


def test_second_look_asks_nothing_while_it_is_lived(cluster):
    asked(cluster)
    steps.look(cluster)
    assert Study.objects.count() == 1


def test_second_of_two_looks_at_once_begins_no_trial(cluster, monkeypatch):
    def other_was_first(*args, real=steps.ask, **more):
        made = real(*args, **more)
        AdaptingTrial.objects.create(
            cluster=cluster, parameter="charge", value_from=1, asked_at=cluster.now()
        )
        return made

    monkeypatch.setattr(steps, "ask", other_was_first)
    steps.look(cluster)
    assert not AdaptingTrial.objects.exists()
    assert not Study.objects.exists()


def test_better_value_comes_into_force_with_its_evidence_in_the_log(cluster, settings):
    settings.WEIR_SUBSCRIBERS = {"tests.lab.nobody": ["*"]}
    stepped(cluster)
    assert half_life_d(cluster) == 8
    told = Announcement.objects.get(kind="policy.set")
    assert (told.actor, told.after) == ("", {"usage_half_life_s": 8 * DAY_S})
    assert told.reason.startswith("Half-life of use 7 → 8 d: wait −10.")
    assert "6 replays of 7 days" in told.reason
    figures = Announcement.objects.get(kind="adapting.stepped").after["evidence"]["values"][1]
    assert figures["figures"]["avg_wait_s"]["verdict"] == "better"
    row = AdaptingParameter.objects.get(name="half_life")
    assert (row.changed_from, row.changed_to) == (7 * DAY_S, 8 * DAY_S)
    assert cluster.history.first().history_user is None


@pytest.mark.parametrize(
    ("told", "half_life", "state"),
    [
        ({}, 7, "no_better"),
        ({"B": WORSE, "C": WORSE}, 7, "no_better"),
        ({"B": BETTER}, 6, "trying"),
        ({"B": BETTER, "C": {"avg_wait_s": 2900.0}}, 8, "trying"),
        ({"C": {**BETTER, "unfair_pct": 4.0}}, 7, "no_better"),
        ({"C": {**BETTER, "worst_queue_s": 9000.0}}, 7, "no_better"),
        ({"C": {**BETTER, "evictions": 20.0}}, 7, "no_better"),
        ({"C": {**BETTER, "lost_gpu_hours": 9.0}}, 7, "no_better"),
        ({"C": {**BETTER, "evictions": 2.0}}, 8, "trying"),
        ({"B": BETTER, "C": {"avg_wait_s": 2900.0, "evictions": 20.0}}, 6, "trying"),
    ],
)
def test_step_is_taken_only_if_waits_are_better_and_nobody_pays(cluster, told, half_life, state):
    trial = asked(cluster)
    answer(trial.study, told)
    steps.look(cluster)
    assert (half_life_d(cluster), only_trial().state) == (half_life, state)


def test_no_better_value_says_what_the_replays_showed(cluster):
    trial = asked(cluster)
    answer(trial.study, {"B": WORSE})
    steps.look(cluster)
    assert only_trial().sentence.startswith(
        "Half-life of use stays at 7 d: no value in bounds better than noise (6 d: wait +10."
    )


def test_wait_that_varies_more_than_it_gains_is_noise(cluster):
    trial = asked(cluster)
    answer(trial.study, {})
    for row in Variant.objects.get(letter="C").results.all():
        row.figures["avg_wait_s"] += -400 if row.seed % 2 else 300
        row.save()
    steps.look(cluster)
    assert only_trial().state == TrialState.NO_BETTER


def test_step_is_taken_back_at_once_when_the_days_since_went_worse(cluster, settings):
    settings.WEIR_SUBSCRIBERS = {"tests.lab.nobody": ["*"]}
    stepped(cluster)
    checked(cluster, WORSE)
    assert (half_life_d(cluster), only_trial().state) == (7, TrialState.TAKEN_BACK)
    told = Announcement.objects.get(kind="adapting.taken_back")
    assert "8 → 7 d, taken back" in told.reason
    assert "wait since +10." in told.reason


@pytest.mark.parametrize("figure", ["unfair_pct", "evictions", "lost_gpu_hours", "worst_queue_s"])
def test_step_is_taken_back_for_whoever_pays(cluster, figure):
    stepped(cluster)
    checked(cluster, {**BETTER, figure: 99_999.0})
    assert half_life_d(cluster) == 7


@pytest.mark.parametrize("told", [BETTER, AS_EVER])
def test_step_stays_on_trial_while_nothing_speaks_against_it(cluster, told):
    stepped(cluster)
    checked(cluster, told)
    trial = only_trial()
    assert (half_life_d(cluster), trial.state) == (8, TrialState.TRYING)
    assert len(trial.evidence["checks"]) == 1
    steps.look(cluster)
    assert Study.objects.count() == 2


@pytest.mark.parametrize(
    ("told", "half_life", "state"), [(BETTER, 8, "kept"), (AS_EVER, 7, "taken_back")]
)
def test_after_a_week_it_is_kept_only_if_the_week_agrees(cluster, told, half_life, state):
    stepped(cluster)
    later(cluster, days=6)
    checked(cluster, told)
    assert (half_life_d(cluster), only_trial().state) == (half_life, state)


def test_check_replays_the_days_since_with_both_values(cluster):
    trial = stepped(cluster)
    later(cluster, days=2)
    steps.look(cluster)
    made = trials.open_trial(cluster).study
    assert made.begin == trial.begun_at
    assert [one.name for one in made.variants.all()] == ["As in force", "7 d"]


def test_step_that_no_replay_tells_of_is_taken_back_after_two_weeks(cluster):
    stepped(cluster)
    later(cluster, days=14)
    steps.look(cluster)
    assert (half_life_d(cluster), only_trial().state) == (7, TrialState.TAKEN_BACK)


def test_next_parameter_in_turn_is_asked_a_day_later(cluster):
    for name in ("half_life", "reservation", "backfill", "packing", "charge", "half_life"):
        trial = asked(cluster)
        assert trial.parameter == name
        answer(trial.study, {})
        steps.look(cluster)
        steps.look(cluster)
        assert trials.open_trial(cluster) is None
        later(cluster, days=1)


def test_pinned_parameter_is_passed_over(cluster):
    trials.pin(cluster=cluster, name="half_life", is_pinned=True, author=None)
    assert asked(cluster).parameter == "reservation"


def test_all_pinned_is_said_and_nothing_asked(cluster):
    for name in BY_NAME:
        trials.pin(cluster=cluster, name=name, is_pinned=True, author=None)
    steps.look(cluster)
    assert Adaptation.objects.get().why == "Every parameter is pinned."
    assert not Study.objects.exists()


@pytest.mark.parametrize("state", ["judging", "trying"])
def test_switching_off_ends_the_trial_and_leaves_the_value(cluster, state):
    (asked if state == "judging" else stepped)(cluster)
    before = half_life_d(cluster)
    assert trials.switch(cluster=cluster, is_on=False, author=None)
    assert (half_life_d(cluster), only_trial().state) == (before, TrialState.STOPPED)
    assert not trials.switch(cluster=cluster, is_on=False, author=None)


def test_pinning_ends_the_trial_of_that_parameter_alone(cluster):
    stepped(cluster)
    trials.pin(cluster=cluster, name="charge", is_pinned=True, author=None)
    assert only_trial().state == TrialState.TRYING
    trials.pin(cluster=cluster, name="half_life", is_pinned=True, author=None)
    assert (half_life_d(cluster), only_trial().state) == (8, TrialState.STOPPED)


@pytest.mark.django_db(transaction=True)
def test_edit_of_a_person_ends_the_trial_at_once(cluster, settings):
    settings.WEIR_SUBSCRIBERS = {
        "scheduling.services.studies.adapting.trials.hear": ("policy.set",)
    }
    stepped(cluster)
    admin = User.objects.get(username="admin")
    set_policy(cluster=cluster, values={"charge_s": 1800}, author=admin, reason="why")
    assert only_trial().state == TrialState.TRYING
    set_policy(cluster=cluster, values={"usage_half_life_s": 3600}, author=admin, reason="why")
    trial = only_trial()
    assert (trial.state, trial.sentence) == ("stopped", "admin has set it; it stays where it is.")


@pytest.mark.parametrize("state", ["judging", "trying"])
def test_value_that_was_set_elsewhere_ends_the_trial_and_is_left_alone(cluster, state):
    trial = (asked if state == "judging" else stepped)(cluster)
    if state == "judging":
        answer(trial.study, {"C": BETTER})
    set_policy(cluster=cluster, values={"usage_half_life_s": 3600}, author=None, reason="why")
    steps.look(cluster)
    assert (half_life_d(cluster) * DAY_S, only_trial().state) == (3600, TrialState.STOPPED)


def test_edit_in_the_last_moment_is_not_overwritten(cluster, monkeypatch):
    trial = asked(cluster)
    answer(trial.study, {"C": BETTER})
    cluster.usage_half_life_s = 3600
    cluster.save(update_fields=["usage_half_life_s"])
    monkeypatch.setattr(trials, "stop_if_edited", lambda trial: False)
    steps.look(cluster)
    assert (half_life_d(cluster) * DAY_S, only_trial().state) == (3600, TrialState.JUDGING)


def test_young_ledger_is_told_and_asked_again_tomorrow(cluster):
    Workload.objects.filter(submitted_at__lt=NOW - timedelta(days=14)).delete()
    steps.look(cluster)
    row = Adaptation.objects.get()
    assert row.why.startswith("The ledger has not all of it.")
    assert steps.due_at(cluster, row) == row.looked_at + timedelta(days=1)


@pytest.mark.parametrize("what", ["cancelled", "dropped", "failed"])
def test_replays_that_tell_nothing_leave_the_value_and_say_so(cluster, what):
    trial = asked(cluster)
    if what == "cancelled":
        doors.cancel(trial.study)
    elif what == "dropped":
        doors.drop(trial.study)
    else:
        Variant.objects.update(state=StudyState.FAILED, fault="The engine finds no rest.")
    steps.look(cluster)
    assert only_trial().state == TrialState.NO_BETTER
    assert "not judged" in only_trial().sentence


def test_too_few_replays_tell_nothing(cluster, settings):
    settings.WEIR_ADAPTING_REPLAYS = 4
    trial = asked(cluster)
    answer(trial.study, {"C": BETTER})
    steps.look(cluster)
    assert (half_life_d(cluster), only_trial().state) == (7, TrialState.NO_BETTER)


class KilledError(BaseException):
    """The process is gone."""


@pytest.mark.parametrize(
    ("where", "name"),
    [(trials, "set_policy"), (trials, "announce"), (steps, "_decide_step"), (steps, "_evidence")],
)  # fmt: skip
def test_kill_in_a_step_leaves_all_or_nothing(cluster, monkeypatch, where, name):
    trial = asked(cluster)
    answer(trial.study, {"C": BETTER})

    def killed(*args, **more):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr(where, name, killed)
        with pytest.raises(KilledError):
            steps.look(cluster)
    assert (half_life_d(cluster), only_trial().state) == (7, TrialState.JUDGING)
    steps.look(cluster)
    assert (half_life_d(cluster), only_trial().state) == (8, TrialState.TRYING)


def test_kill_while_replays_are_asked_leaves_none_behind(cluster, monkeypatch):
    def killed(*args, **more):
        raise KilledError

    with monkeypatch.context() as broken:
        broken.setattr(steps.doors, "start", killed)
        with pytest.raises(KilledError):
            steps.look(cluster)
    assert not Study.objects.exists()
    asked(cluster)
    assert Study.objects.count() == AdaptingTrial.objects.count() == 1


def test_replays_of_the_shipped_engine_judge_a_step(cluster):
    trial = asked(cluster)
    while running.work(trial.study_id):
        pass
    steps.look(cluster)
    step = only_trial().evidence["step"]
    assert (step["fault"], step["lives"]) == ("", 6)
    assert [one["value"] for one in step["values"]] == [6 * DAY_S, 8 * DAY_S]
    assert only_trial().state in ("no_better", "trying")


def test_task_looks_at_clusters_that_are_on(cluster, monkeypatch):
    sent = []
    monkeypatch.setattr(
        tasks.look_for_studies, "apply_async", lambda args, **how: sent.append(*args)
    )
    tasks.request_studies()
    assert sent == [cluster.pk]
    tasks.look_for_studies(cluster.pk)
    assert AdaptingTrial.objects.count() == 1
    tasks.look_for_studies(0)
    trials.switch(cluster=cluster, is_on=False, author=None)
    tasks.request_studies()
    assert sent == [cluster.pk]


def test_old_trials_are_forgotten_and_open_ones_stay(cluster):
    asked(cluster)
    later(cluster, days=500)
    assert steps.forget(cluster) == 0
    trials.pin(cluster=cluster, name="half_life", is_pinned=True, author=None)
    assert steps.forget(cluster) == 0
    later(cluster, days=500)
    assert steps.forget(cluster) == 1
