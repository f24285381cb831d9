"""Experiments: asked, lived replay by replay, cancelled, compared, promoted."""

from datetime import timedelta

import pytest

from scheduling.models import Announcement, Result, Study, Variant
from scheduling.services.errors import ServiceError
from scheduling.services.studies import doors, running
from scheduling.services.studies.experiments import promoting
from scheduling.services.studies.experiments.results import document, results
from tests.factories import NOW, example_cluster
from tests.lab import CHANGES, NODES, ORDER, experiment, lived, with_work

pytestmark = pytest.mark.django_db
ARRIVAL = {"kind": "arrival", "queue": "speech", "gpu_classes": ["h100-80gb"]}


@pytest.fixture
def cluster():
    found = example_cluster()
    with_work(found)
    return found


def states(made):
    return dict(made.variants.values_list("letter", "state"))


def test_experiment_is_written_with_a_and_a_row_for_every_replay(cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    assert [str(one) for one in made.variants.all()] == [
        "A As in force", "B Shortest first", "C Less for speech",
    ]  # fmt: skip
    assert Result.objects.count() == 18
    assert made.basis["jobs"] > 0
    assert made.basis["recorded"]["avg_wait_s"] > 0


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"name": " "}, "name"),
        ({"end": NOW + timedelta(days=1)}, "end"),
        ({"end": NOW - timedelta(days=9)}, "end"),
        ({"begin": NOW - timedelta(days=80), "end": NOW - timedelta(days=70)}, "begin"),
        ({"begin": NOW - timedelta(days=40)}, "begin"),
        ({"warm_up": timedelta(days=27)}, "begin"),
        ({"warm_up": timedelta(days=29)}, "warm_up_days"),
        ({"replays": 0}, "replays"),
        ({"replays": 41}, "replays"),
        ({"variants": [ORDER] * 6}, "variants"),
        ({"variants": [{**ORDER, "name": ""}]}, "variants.0.name"),
        ({"variants": [{"name": "n", "changes": []}]}, "variants.0.changes"),
        (
            {"variants": [ORDER, {"name": "n", "changes": [{**CHANGES["changes"][0], "queue": "nowhere"}]}]},
            "variants.1.changes.0.queue",
        ),
        (
            {"variants": [{"name": "n", "changes": [ARRIVAL]}]},
            "variants.0.changes.0.kind",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_at_its_field(cluster, monkeypatch, wrong, field):
    with pytest.raises(ServiceError) as caught:
        experiment(cluster, monkeypatch, **wrong)
    assert caught.value.field == field
    assert caught.value.remedy
    assert not Study.objects.exists()


def test_all_replays_are_lived_and_compared(cluster, monkeypatch):
    made = lived(cluster, monkeypatch)
    assert states(made) == dict.fromkeys("ABC", "done")
    told = document(made, results(made))
    assert [one["done"] for one in told["variants"]] == [6, 6, 6]
    assert told["variants"][0]["figures"]["avg_wait_s"]["verdict"] == ""
    assert told["variants"][1]["figures"]["avg_wait_s"]["verdict"] in ("better", "worse", "noise")
    assert {row["queue"] for row in told["queues"]}
    assert told["comparisons"] == 14


def test_variant_that_is_a_again_is_noise_without_width(cluster, monkeypatch):
    same = [{"kind": "policy", "setting": "cooldown_s", "value": cluster.cooldown_s}]
    made = lived(cluster, monkeypatch, variants=[{"name": "same", "changes": same}])
    for cell in results(made).rows[1].cells:
        assert (cell.difference.mean, cell.difference.half, cell.verdict) == (0.0, 0.0, "noise")


def test_same_seeds_give_the_same_figures(cluster, monkeypatch):
    first, second = (
        document(one, results(one)) for one in [lived(cluster, monkeypatch) for _ in range(2)]
    )
    for told in (first, second):
        for one in told["variants"]:
            del one["cpu_s"]
    assert first == second


def test_more_nodes_lower_utilization_and_no_wait_grows(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, variants=[NODES])
    more = results(made).rows[1]
    assert more.cell("utilization_pct").verdict == "worse"
    assert more.cell("avg_wait_s").difference.mean <= 0


def test_fewer_than_five_replays_are_not_judged(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, replays=4)
    told = document(made, results(made))["variants"][1]["figures"]["avg_wait_s"]
    assert (told["verdict"], told["difference"]) == ("too few", None)


def test_exactly_once_lives_the_period_as_it_came(cluster, monkeypatch):
    made = lived(cluster, monkeypatch, is_drawn=False)
    assert set(Result.objects.values_list("seed", flat=True)) == {0}
    assert states(made) == dict.fromkeys("ABC", "done")


def test_sharing_by_promise_and_throughput_is_lived(cluster, monkeypatch):
    variants = [
        {"name": way, "changes": [{"kind": "queue", "queue": "research", "sharing": way}]}
        for way in ("promise", "throughput")
    ]
    made = lived(cluster, monkeypatch, variants=variants)
    assert states(made) == dict.fromkeys("ABC", "done")


def test_cancelled_variant_is_left_alone_and_others_go_on(cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    assert doors.cancel(made, letter="C", author="admin") == 1
    while running.work(made.pk):
        pass
    assert states(made) == {"A": "done", "B": "done", "C": "cancelled"}
    assert not Result.objects.filter(variant__letter="C").exclude(done_at=None).exists()


def test_world_that_contradicts_itself_fails_its_variant_alone(cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    Variant.objects.filter(letter="C").update(changes=[{**CHANGES["changes"][0], "queue": "gone"}])
    while running.work(made.pk):
        pass
    assert states(made) == {"A": "done", "B": "done", "C": "failed"}
    assert "no queue gone" in Variant.objects.get(letter="C").fault


def test_promotion_names_its_doors_and_is_announced(cluster, monkeypatch, settings):
    settings.WEIR_SUBSCRIBERS = {"tests.lab.nobody": ["*"]}
    made = lived(cluster, monkeypatch, variants=[{"name": "all", "changes": [
        *ORDER["changes"], *CHANGES["changes"], *NODES["changes"]]}])  # fmt: skip
    found = promoting.promote(variant=made.variants.get(letter="B"), author="admin", reason="waits")
    assert found.policy == {"order": "shortest_predicted"}
    assert [one["queue"] for one in found.quotas] == ["speech"]
    assert found.left_out == ("capacity",)
    assert Announcement.objects.filter(kind="lab.promoted", reason="waits").exists()
    cluster.refresh_from_db()
    assert cluster.order != "shortest_predicted"


@pytest.mark.parametrize(
    ("letter", "reason", "field"),
    [("B", " ", "reason"), ("C", "why", "variant"), ("A", "why", "variant")],
)
def test_promotion_needs_a_reason_and_a_door(cluster, monkeypatch, letter, reason, field):
    made = lived(cluster, monkeypatch, variants=[ORDER, NODES])
    with pytest.raises(ServiceError) as caught:
        promoting.promote(variant=made.variants.get(letter=letter), author="admin", reason=reason)
    assert caught.value.field == field


def test_variant_that_was_not_lived_is_not_promoted(cluster, monkeypatch):
    made = experiment(cluster, monkeypatch)
    with pytest.raises(ServiceError, match="Nothing was lived"):
        promoting.promote(variant=made.variants.get(letter="B"), author="admin", reason="why")
