"""snapshot, plan and explain: the file, what is printed, and what is said of a broken one."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings
from django.core.management import CommandError, call_command

from scheduling.engine import document
from scheduling.engine import model as m
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
node_sets: [{name: ssd, nodes: [n1]}]
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


def test_explain_for_people_says_what_has_no_limit(snapshot_file: Path) -> None:
    shares = run("explain", str(snapshot_file), "w2").splitlines()[-1]
    assert shares == (
        "research, h100: fair share 8, potential 8, allocated 8, nominal 8, no limit, demand 12, pending 4"
    )


def test_explain_of_what_runs_undisturbed_says_so(snapshot_file: Path) -> None:
    assert "the plan leaves it alone" in run("explain", str(snapshot_file), "w1")


def test_explain_of_an_unknown_workload_is_refused(snapshot_file: Path) -> None:
    assert refused("explain", str(snapshot_file), "w9") == [
        "WORKLOAD: found 'w9', expected the name of one of workloads: 'w1', 'w2'"
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
    assert all(line.startswith(f"{path}:") for line in lines)
    assert {line.split(": ")[1] for line in lines} == {
        "queues[0].quotas.h100.nominal", "workloads[1].gpus", "extra",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("gpus: 4", "gpus: .inf", "workloads[1].gpus: found inf, expected a finite number"),
        ("gpus: 4", "gpus: .nan", "workloads[1].gpus: found nan, expected a finite number"),
        ("gpus: 4", "gpus: 1e30", "workloads[1].gpus: found '1e30', expected a number"),
        ("gpus: 4", "gpus: 1.0e+30", "workloads[1].gpus: found 1e+30, expected at most 100,000"),
        ("gpus: 4", "gpus: true", "workloads[1].gpus: found True, expected a number"),
        ("gpus: 4", "gpus: -1", "workloads[1].gpus: found -1, expected at least 0"),
        ("gpus: 4", "gpus: '4'", "workloads[1].gpus: found '4', expected a number"),
        ("gpus: 4", "gpus: 1.5",
         "workloads[1].gpus: found 1.5, expected whole GPUs for each member, or less than 1 for a share"),
        ("{n1: 1}", "{n1: 1000000000000}",
         "workloads[0].placement.n1: found 1000000000000, expected at most 100,000"),
        ("{n1: 1}", "{n1: 1}, devices: {n1: [8]}",
         "workloads[0].devices.n1: found 8, expected a GPU of n1, below 8"),
        ("gpus: 4,", "gpus: 4, leaving_members: {n1: 1},",
         "workloads[1].leaving_members: found {'n1': 1}, expected nothing, because it is pending"),
        ("gpus: 4,", "gpus: 4, topology: {required: zone},",
         "workloads[1].topology.required: found 'zone', expected one of block, rack, node"),
        ("{n1: 1}", "{n1: 1}, devices: {n9: [0]}",
         "workloads[0].devices.n9: found 'n9', expected a name of nodes"),
        ("{n1: 1}", "{n1: 1}, node_set: hdd",
         "workloads[0].node_set: found 'hdd', expected a name of node_sets"),
        ("nodes: [n1]", "nodes: [n1, n9]",
         "node_sets[0].nodes[1]: found 'n9', expected a name of nodes"),
        ("{name: ssd,", "{name: ssd}, {name: ssd,",
         "node_sets[1].name: found 'ssd', expected a name that stands once"),
        ("value: 50", "value: 100000000000000000000",
         "priority_classes[0].value: found 100000000000000000000, expected at most 1,000,000,000"),
        ("now: 2026-01-05T10:00:00Z", "now: 1767607200",
         "now: found 1767607200, expected a time, as 2026-01-05T10:00:00Z"),
        ("now: 2026-01-05T10:00:00Z", "now: 0001-01-01T00:00:00+14:00",
         "now: found 0001-01-01 00:00:00+14:00, expected a time in the years 1971 to 2199"),
        ("now: 2026-01-05T10:00:00Z", "now: 2026-13-05",
         "now: found '2026-13-05', expected a time, as 2026-01-05T10:00:00Z"),
        ("quotas: {", "stop: halt, quotas: {",
         "queues[0].stop: found 'halt', expected 'none', 'hold' or 'drain'"),
        ("{name: train, value: 50}", "train",
         "priority_classes[0]: found 'train', expected keys with values"),
        ("name: w2, queue: research", "name: w2",
         "workloads[1].queue: found nothing, expected a value: it has no default"),
    ],
)  # fmt: skip
def test_fault_says_where_what_stands_there_and_what_belongs_there(
    tmp_path: Path, good: str, bad: str, said: str
) -> None:
    path = tmp_path / "broken.yaml"
    path.write_text(FILE.replace(good, bad))

    (line,) = refused("plan", str(path))
    where, remedy = line.split(f": {said}; ")
    assert remedy
    number = int(where.removeprefix(f"{path}:"))
    assert bad in path.read_text().splitlines()[number - 1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [1", "expected YAML or JSON"),
        ("", "document: found nothing, expected keys with values"),
        ("a: 1\na: 2", ":2: found key 'a' twice"),
        ("[" * 9000 + "]" * 9000, "found lists inside lists without end"),
        ("now: !!int abc", "found a tag that belies its value"),
        ("1: 2", "now: found nothing"),
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


def test_node_that_lost_gpus_in_use_is_written_as_overfull_and_read_back(world: World) -> None:  # noqa: F811
    world.job("w1", gpus=8)
    world.cycles_until(lambda: world.row("w1").state == "running")
    held = document.parse(yaml.safe_load(run("snapshot", "test"))).workloads[0].placement
    (name,) = held
    shrunk = world.kube.get(f"/api/v1/nodes/{name}")
    shrunk["status"]["allocatable"]["nvidia.com/gpu"] = "7"
    world.kube.replace(f"/api/v1/nodes/{name}/status", shrunk)

    written = yaml.safe_load(run("snapshot", "test"))

    marks = {node["name"]: node.get("overfull", False) for node in written["nodes"]}
    assert marks == {"n1": name == "n1", "n2": name == "n2"}
    assert document.parse(written).workloads[0].placement == held


AT = datetime(2026, 1, 5, 10, tzinfo=UTC)
USUAL = m.Workload(
    name="w", queue="research", priority_class="train", submitted=AT, gpu_classes=("h100",)
)
RUNS = replace(USUAL, phase=m.Phase.RUNNING, started=AT, gpu_class="h100")
ODD: dict[str, m.Workload] = {
    "runs without a pod on a node": RUNS,
    "runs with one pod too many": replace(RUNS, placement={"n1": 2}),
    "starts with half its gang": replace(RUNS, members=m.Members(2, 2), placement={"n1": 1}),
    "is stale": replace(RUNS, members=m.Members(2, 2), placement={"n1": 1}, stale_since=AT),
    "asks for 2 million GPUs": replace(USUAL, gpus=2**31 - 1),
    "asks for one GPU and a half": replace(USUAL, gpus=1500),
    "has 150,000 members": replace(USUAL, members=m.Members(150_000, 150_000)),
    "checkpointed in the year 9999": replace(
        USUAL, checkpointed=datetime(9999, 12, 31, tzinfo=UTC)
    ),
    "names its user in red": replace(USUAL, user="\x1b[31mroot\n"),
    "has a user of 10,000 characters": replace(USUAL, user="u" * 10_000),
    "asks for a class with a NUL": replace(USUAL, gpu_classes=("h\0",)),
}


@pytest.mark.parametrize("oddity", ODD)
def test_oddity_of_a_live_cluster_is_written_so_that_it_reads_back(oddity: str) -> None:
    live = m.Snapshot(
        now=AT,
        gpu_classes=(m.GpuClass("h100"),),
        nodes=(m.Node("n1", "h100", 1000, foreign_gpus=1000),),
        queues=(m.Queue("research"),),
        priority_classes=(m.PriorityClass("train"),),
        workloads=(ODD[oddity],),
    )

    text = yaml.safe_dump(document.dump(live))
    (read,) = document.parse(yaml.safe_load(text)).workloads

    assert (read.name, read.phase, read.placement) == (
        "w",
        live.workloads[0].phase,
        ODD[oddity].placement,
    )
    assert read.user.isprintable()
