"""snapshot, plan and explain: the file, what is printed, and what is said of a broken one."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import CommandError, call_command

from scheduling.engine import document
from scheduling.models import Cluster
from tests.scheduling.kube import World
from tests.scheduling.services.conftest import server, world  # noqa: F401 - fixtures

FILE = """
now: 2026-01-05T10:00:00Z
gpu_classes: [{name: h100}]
nodes: [{name: n1, gpu_class: h100, gpus: 8}]
queues:
  - {name: research, quotas: {h100: {nominal: 8}}}
priority_classes: [{name: train, value: 50}]
workloads:
  - {name: w1, queue: research, priority_class: train, gpus: 8, gpu_classes: [h100],
     submitted: 2026-01-05T09:00:00Z, state: running, started: 2026-01-05T09:10:00Z, placement: {n1: 1}}
  - {name: w2, queue: research, priority_class: train, gpus: 4, gpu_classes: [h100],
     submitted: 2026-01-05T09:30:00Z}
"""


@pytest.fixture
def snapshot_file(tmp_path: Path) -> Path:
    path = tmp_path / "now.yaml"
    path.write_text(FILE)
    return path


def run(*args: str) -> str:
    out = io.StringIO()
    call_command(*args, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def refused(*args: str) -> list[str]:
    err = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command(*args, stdout=io.StringIO(), stderr=err)
    assert ended.value.code == 2
    return err.getvalue().splitlines()


def test_schema_in_the_docs_is_the_parsers() -> None:
    shipped = (settings.BASE_DIR / "docs" / "snapshot.schema.json").read_text()

    assert json.loads(shipped) == document.schema(), (
        "run: manage.py plan --schema > docs/snapshot.schema.json"
    )
    assert run("plan", "--schema") == shipped


def test_plan_in_json_names_shares_and_decisions(snapshot_file: Path) -> None:
    plan: dict[str, Any] = json.loads(run("plan", str(snapshot_file), "--json"))

    share = plan["fair_share"]["research"]["h100"]
    assert (share["fair_share"], share["allocated"], share["oversubscribed"]) == (8.0, 8.0, False)
    (wait,) = plan["decisions"]
    assert (wait["workload"], wait["action"], wait["position"]) == ("w2", "wait", 1)
    assert wait["reason"]
    assert wait["until"] is None


def test_plan_for_people_has_a_table_and_a_sentence_a_line(snapshot_file: Path) -> None:
    lines = run("plan", str(snapshot_file)).splitlines()

    assert lines[0].split()[:3] == ["queue", "class", "fair"]
    assert lines[1].split() == ["research", "h100", "8.000", "8.000", "8.000", "8.000", "4.000"]
    assert lines[-1].startswith("wait     w2: ")


def test_dash_reads_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(FILE))

    assert json.loads(run("plan", "-", "--json"))["decisions"]


def test_explain_gives_the_reason_and_its_numbers(snapshot_file: Path) -> None:
    told = json.loads(run("explain", str(snapshot_file), "w2", "--json"))

    assert told["decisions"][0]["numbers"]
    assert told["queue_shares"]["h100"]["nominal"] == 8
    assert "w2: wait" in run("explain", str(snapshot_file), "w2")


def test_explain_of_what_runs_undisturbed_says_so(snapshot_file: Path) -> None:
    assert "the plan leaves it alone" in run("explain", str(snapshot_file), "w1")


def test_explain_of_an_unknown_workload_is_refused(snapshot_file: Path) -> None:
    assert refused("explain", str(snapshot_file), "w9") == [
        "WORKLOAD: found 'w9', expected the name of one of workloads"
    ]


def test_broken_input_has_one_line_per_fault(tmp_path: Path) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(
        FILE.replace("gpus: 4,", "gpus: -4,")
        .replace("nominal: 8", "nominal: many")
        .replace("queues:", "extra: 1\nqueues:")
    )
    lines = refused("plan", str(path))

    assert len(lines) == 3
    assert all(": found " in line and ", expected " in line for line in lines)
    assert {line.split(":")[0] for line in lines} == {
        "queues[0].quotas.h100.nominal", "workloads[1].gpus", "extra",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "expected YAML or JSON"),
        ("", "expected"),
        ("a: 1\na: 2", "key 'a' twice in line 2"),
    ],
)
def test_file_that_is_no_snapshot_is_refused(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(text)

    assert words in refused("plan", str(path))[0]


def test_file_that_is_not_there_is_refused() -> None:
    assert refused("plan", "/nowhere.yaml")[0].startswith("/nowhere.yaml: found nothing readable")


def test_live_snapshot_reads_back_and_names_what_runs(world: World) -> None:  # noqa: F811
    world.job("w1", gpus=8)
    world.job("lost", queue="nowhere")
    world.cycles_until(lambda: world.row("w1").state == "running")
    read = document.parse(yaml.safe_load(run("snapshot", "test")))

    works = {w.name: w for w in read.workloads}
    assert works["default/w1"].placement == {"n1": 1}
    assert works["default/lost"].queue == "nowhere"
    assert [n.gpus for n in read.nodes] == [8000, 8000]
    assert {q.name for q in read.queues} == {"research", "products"}


@pytest.mark.django_db
def test_unknown_cluster_is_refused_with_the_known_ones() -> None:
    Cluster.objects.create(name="fra1")

    with pytest.raises(CommandError, match=r"no cluster 'x'\. Known: fra1"):
        call_command("snapshot", "x")
