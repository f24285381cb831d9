"""What a worker keeps of a cycle that acted: what had changed, what it wrote, and where its time went."""

from __future__ import annotations

from datetime import timedelta

import pytest

from scheduling.cluster.adapters.merging import merged
from scheduling.cluster.connection.client import Client, InvalidError
from scheduling.cluster.vocabulary import labels
from scheduling.models import Cycle, CycleRecord, Quota, State
from scheduling.services.cycle.record.causes import MOST, Cause, What
from scheduling.services.cycle.record.records import WRITING
from scheduling.services.ledger.retention import retain
from tests.scheduling.kube import JOBS, World, eventually

pytestmark = pytest.mark.django_db


def newest() -> CycleRecord:
    return CycleRecord.objects.select_related("cycle").latest("cycle__number")


def told(record: CycleRecord, what: What) -> list[object]:
    return [row.get("workload") or row["name"] for row in record.causes if row["what"] == what]


def test_cycle_that_starts_work_keeps_who_was_submitted_and_what_was_written(world: World) -> None:
    world.job("w1", gpus=4)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    record = CycleRecord.objects.get()
    pk = world.row("w1").pk
    assert told(record, What.SUBMITTED) == [pk]
    [write] = record.writes
    assert (write["workload"], write["kind"], write["name"]) == (pk, "Job", "w1")
    assert (write["purpose"], write["method"], write["code"]) == ("start", "PUT", 0)
    assert (record.written, record.refused) == (1, 0)


def test_phases_of_a_cycle_stand_in_their_order(world: World) -> None:
    world.job("w1", gpus=4)
    world.cycles_until(CycleRecord.objects.exists)
    assert [name for name, _ in newest().phases] == [
        "Read the policy", "Look at the cluster", "Make the snapshot", "Read it into arrays", "Decide",
        "Put it into words", "Fit namespace quotas", "Commit to the ledger", WRITING, "Look again",
    ]  # fmt: skip


def test_end_of_other_work_and_a_new_quota_are_causes_of_the_start_they_allow(world: World) -> None:
    world.job("w1", gpus=8, run_s=1)
    world.job("w2", gpus=8)
    world.cycles_until(lambda: world.row("w2").state == State.RUNNING)
    ended = world.row("w1")
    world.job("w3", gpus=8)
    world.cycle()
    Quota.objects.filter(queue__name="research").update(weight=3)
    eventually(lambda: world.read("w1")["status"].get("completionTime"))
    world.cycles_until(lambda: world.row("w3").state == State.RUNNING)
    causes = [row for record in CycleRecord.objects.all() for row in record.causes]
    assert {"what": "policy", "name": "quotas"}.items() <= _about(causes, What.POLICY).items()
    assert _about(causes, What.ENDED)["workload"] == ended.pk


def _about(causes: list[dict[str, object]], what: What) -> dict[str, object]:
    return next(row for row in causes if row["what"] == what)


def test_refused_write_is_kept_with_the_servers_own_words(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise InvalidError(422, "Invalid", "spec.suspend: no")

    world.job("w1", gpus=4)
    monkeypatch.setattr(Client, "replace", refuse)
    world.cycle()
    record = newest()
    [write] = record.writes
    assert (write["code"], write["message"], record.refused) == (422, "spec.suspend: no", 1)


def test_many_causes_are_counted_beyond_the_first(world: World) -> None:
    for number in range(MOST + 2):
        world.job(f"w{number:02}", gpus=1)
    world.cycles_until(CycleRecord.objects.exists)
    record = CycleRecord.objects.earliest("cycle__number")
    assert len(record.causes) == MOST
    assert record.more_causes >= 2


def test_node_that_takes_no_more_work_is_a_cause(world: World) -> None:
    world.job("w1", gpus=4)
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    world.kube.patch("/api/v1/nodes/n2", {"spec": {"unschedulable": True}})
    world.job("w2", gpus=4)
    world.catch_up()
    world.cycle()
    assert told(newest(), What.NODE_DOWN) == ["n2"]


def test_edit_by_its_author_is_a_cause_and_what_weir_wrote_is_none(world: World) -> None:
    world.kube.create(JOBS, merged(world.manifest("w1", gpus=4), _hold("true")))
    world.cycle()
    world.edit("w1", _hold(None))
    world.cycles_until(lambda: world.row("w1").state == State.RUNNING)
    assert [row["what"] for row in newest().causes] == [What.EDITED]


def _hold(value: str | None) -> dict[str, object]:
    return {"metadata": {"annotations": {labels.HOLD: value}}}


def test_cause_names_its_workload_by_key_and_others_by_name(world: World) -> None:
    at = world.cluster.now()
    assert Cause(What.NODE_DOWN, at, name="n1").as_json() == {
        "what": "node down", "at": at.isoformat(), "name": "n1",
    }  # fmt: skip


@pytest.mark.parametrize(("days", "evicted", "left"), [(2, 0, 0), (2, 1, 1), (15, 1, 0), (0, 0, 1)])
def test_retention_keeps_records_a_day_and_two_weeks_where_gpus_were_taken(
    world: World, days: int, evicted: int, left: int
) -> None:
    at = world.cluster.now() - timedelta(days=days, minutes=1)
    cycle = Cycle.objects.create(cluster=world.cluster, number=1, at=at, evicted=evicted)
    CycleRecord.objects.create(cycle=cycle)
    retain(world.cluster)
    assert CycleRecord.objects.count() == left
