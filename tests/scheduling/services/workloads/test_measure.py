"""A look at the GPUs of the embedded cluster, whose Prometheus address tells what its pods do."""

from __future__ import annotations

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.cluster.metrics import MetricsError
from scheduling.models import Cluster, Credential, IdleEnd, IdleSpell
from scheduling.services.errors import ServiceError
from scheduling.services.worker.cluster_turns import held_of
from scheduling.services.workloads import idle, submit
from scheduling.services.workloads.gpu_metrics import set_source
from scheduling.services.workloads.measure import measure, read_token
from tests.scheduling.kube import World, eventually

pytestmark = pytest.mark.django_db(transaction=True)
USE = "weir.dev/simulated-use"


def running(world: World, use: str, name: str = "train", **more: object) -> None:
    manifest = world.manifest(name, gpus=2, pods=2, **more)
    manifest["spec"]["template"].setdefault("metadata", {})["annotations"] = {USE: use}
    world.kube.create("/apis/batch/v1/namespaces/default/jobs", manifest)
    world.cycles_until(lambda: world.row(name).state == "running")
    Cluster.objects.filter(pk=world.cluster.pk).update(metrics_url=f"{world.server.url}/prometheus")
    world.cluster.refresh_from_db()


def look(world: World) -> int:
    held = held_of(world.cluster, on_change=lambda: None)
    world.catch_up()
    return measure(world.cluster, held.link.mirror)


def test_gpus_of_running_pods_are_measured(world: World) -> None:
    running(world, "0.8:1")

    assert look(world) == 4

    world.cluster.refresh_from_db()
    assert world.cluster.measured_gpus == 4
    assert world.cluster.metrics_fault == ""
    assert not IdleSpell.objects.exists()


def test_work_on_whose_gpus_nothing_runs_is_noted(world: World) -> None:
    running(world, "0.8:0")

    look(world)

    spell = IdleSpell.objects.get()
    assert (spell.workload.name, spell.gpus) == ("train", 4000)


def test_address_that_does_not_answer_is_told_with_the_cluster(world: World) -> None:
    running(world, "0.8:1")
    Cluster.objects.update(metrics_url="http://127.0.0.1:9")
    world.cluster.refresh_from_db()

    with pytest.raises(MetricsError):
        look(world)

    world.cluster.refresh_from_db()
    assert "does not answer" in world.cluster.metrics_fault


def test_idle_notebook_is_cancelled_and_said_to_be(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, object]] = []
    monkeypatch.setattr(
        submit, "announce", lambda kind, **said: told.append((kind, said.get("after")))
    )
    running(world, "0.8:0")
    row = world.row("train")
    row.type = "interactive"
    row.save()
    look(world)
    now = world.cluster.now()
    IdleSpell.objects.update(since=now - idle.KEPT, first_told_at=now - idle.KEPT)
    world.cluster.cull_after_s = 3600

    assert idle.cull(world.cluster, now) == 1

    def is_gone() -> bool:
        try:
            world.read("train")
        except NotFoundError:
            return True
        return False

    eventually(is_gone)
    assert IdleSpell.objects.get().ended == IdleEnd.CULLED
    assert told == [("work.culled", {"idle_s": idle.KEPT.total_seconds(), "gpus": 4})]


def test_observed_cluster_culls_nothing(world: World) -> None:
    world.cluster.mode = "observe"

    assert idle.cull(world.cluster, world.cluster.now()) == 0


def test_address_is_kept_once_it_tells_of_gpus(world: World) -> None:
    running(world, "0.8:1")
    url = f"{world.server.url}/prometheus"

    found = set_source(cluster=world.cluster, url=url, token="s3", activity="", author=None)

    assert found is not None
    assert (found.gpus, found.pods) == (4, 2)
    world.cluster.refresh_from_db()
    assert read_token(world.cluster.metrics_token_file) == "s3"

    Credential.objects.all().delete()
    with pytest.raises(ServiceError) as refused:
        set_source(cluster=world.cluster, url=url, token="", activity="", author=None)
    assert refused.value.field == "token"


@pytest.mark.parametrize(
    ("url", "field"),
    [
        ("ftp://x", "url"),
        ("http://me:pw@x", "url"),
        ("http://127.0.0.1:9", "url"),
        ("nowhere", "url"),
    ],
)
def test_address_that_tells_nothing_is_refused_and_nothing_is_kept(
    world: World, url: str, field: str
) -> None:
    with pytest.raises(ServiceError) as refused:
        set_source(cluster=world.cluster, url=url, token="", activity="", author=None)

    assert refused.value.field == field
    world.cluster.refresh_from_db()
    assert world.cluster.metrics_url == ""
