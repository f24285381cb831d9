"""Studies by the command line: begun with a file or a trace, followed, listed, cancelled."""

import json
from datetime import timedelta

import pytest
import yaml

from scheduling.models import Study
from scheduling.services.snapshot import build as snapshots
from scheduling.services.studies import doors, running
from tests.factories import NOW
from tests.foresight import live_of
from tests.lab import empty_experiment, with_work
from tests.weir.conftest import lines

pytestmark = pytest.mark.django_db


@pytest.fixture
def asked(cluster, monkeypatch, tmp_path):
    """A file that asks for B beside A; nobody lives what is begun."""
    with_work(cluster)
    monkeypatch.setattr(snapshots, "live", live_of)
    monkeypatch.setattr(doors, "start", lambda made: None)
    file = tmp_path / "order.yaml"
    file.write_text(
        yaml.safe_dump(
            {
                "name": "Order in November",
                "begin": (NOW - timedelta(days=8)).isoformat(),
                "end": (NOW - timedelta(days=4)).isoformat(),
                "warm_up_days": 2,
                "replays": 5,
                "variants": [
                    {
                        "name": "Shortest first",
                        "changes": [
                            {"kind": "policy", "setting": "order", "value": "shortest_predicted"}
                        ],
                    }
                ],
            }
        )
    )
    return file


def test_run_begins_one_and_shows_it(weir, asked):
    done = weir("study", "experiment", "-f", str(asked), "--no-wait", user="admin")
    assert done.exit_code == 0, done.output
    told = yaml.safe_load(done.stdout)
    assert [one["letter"] for one in told["variants"]] == ["A", "B"]
    made = Study.objects.get()
    assert (made.name, made.author, made.replays) == ("Order in November", "admin", 5)


def test_run_waits_until_all_is_lived(weir, asked, monkeypatch):
    def live(made):
        while running.work(made.pk):
            pass

    monkeypatch.setattr(doors, "start", live)
    done = weir("-o", "json", "study", "experiment", "-f", str(asked), user="admin")
    told = json.loads(done.stdout)
    assert {one["state"] for one in told["variants"]} == {"done"}
    assert [one["done"] for one in told["answer"]["variants"]] == [5, 5]
    assert isinstance(told["answer"]["variants"][1]["lacks"], list)


def test_trace_is_sent_and_its_days_may_be_left_out(weir, asked, tmp_path):
    told = yaml.safe_load(asked.read_text())
    del told["begin"], told["end"]
    asked.write_text(yaml.safe_dump(told | {"warm_up_days": 0}))
    trace = tmp_path / "week.ledger.csv"
    rows = [f"2025-03-0{1 + i % 5}T10:00:00,3600,2,speech,u-{i},0" for i in range(20)]
    trace.write_text("submitted,run_s,gpus,queue,user,asked_s\n" + "\n".join(sorted(rows)) + "\n")
    done = weir(
        "study", "experiment", "-f", str(asked), "--trace", str(trace), "--no-wait", user="admin"
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    made = Study.objects.get()
    source = made.basis["source"]
    assert (source["kind"], source["name"], made.basis["jobs"]) == ("trace", "week.ledger.csv", 20)


def test_trace_with_a_fault_is_refused_by_its_line(weir, asked, tmp_path):
    trace = tmp_path / "week.ledger.csv"
    trace.write_text(
        "submitted,run_s,gpus,queue,user,asked_s\n2025-03-01T10:00:00,0,2,speech,u,0\n"
    )
    done = weir("study", "experiment", "-f", str(asked), "--trace", str(trace), user="admin")
    assert done.exit_code != 0
    assert "week.ledger.csv:2: expected whole seconds" in done.stderr
    assert not Study.objects.exists()


def test_trace_that_is_neither_kept_nor_a_file_is_refused(weir, asked):
    done = weir("study", "experiment", "-f", str(asked), "--trace", "philly", user="admin")
    assert done.exit_code != 0
    assert "There is no such trace." in done.stderr


def test_too_large_a_trace_is_not_sent(weir, asked, tmp_path):
    trace = tmp_path / "year.swf"
    trace.write_bytes(b";" * (700 * 1024 + 1))
    done = weir("study", "experiment", "-f", str(asked), "--trace", str(trace), user="admin")
    assert done.exit_code != 0
    assert "larger than 700 KiB" in done.stderr


def test_file_that_holds_no_experiment_is_refused(weir, cluster, tmp_path):
    file = tmp_path / "none.yaml"
    file.write_text("- a list\n")
    done = weir("study", "experiment", "-f", str(file), user="admin")
    assert done.exit_code != 0
    assert "holds no experiment" in done.stderr


def test_fault_of_a_variant_is_told_with_its_place(weir, asked):
    told = yaml.safe_load(asked.read_text())
    told["variants"][0]["changes"] = [
        {"kind": "quota", "queue": "nowhere", "gpu_class": "h100-80gb", "nominal_gpus": 4}
    ]
    asked.write_text(yaml.safe_dump(told))
    done = weir("study", "experiment", "-f", str(asked), user="admin")
    assert done.exit_code != 0
    assert "nowhere" in done.stderr


def test_list_tells_each_with_the_state_of_its_variants(weir, cluster):
    made = empty_experiment(cluster)
    heads, row = lines(weir("study", "list", user="admin"))
    assert heads == ["NO.", "KIND", "NAME", "AUTHOR", "BEGUN", "STATE"]
    assert (row[0], row[1], row[2], row[-1]) == (
        str(made.pk), "experiment", made.name, "A waiting, B waiting",
    )  # fmt: skip


def test_show_tells_one(weir, cluster):
    made = empty_experiment(cluster)
    told = yaml.safe_load(weir("study", "show", str(made.pk), user="admin").stdout)
    assert (told["id"], told["name"]) == (made.pk, made.name)
    assert [one["done"] for one in told["variants"]] == [0, 0]


def test_cancel_stops_one_variant_or_all(weir, cluster):
    made = empty_experiment(cluster)
    assert (
        "A waiting, B cancelled" in weir("study", "cancel", str(made.pk), "B", user="admin").stdout
    )
    weir("study", "cancel", str(made.pk), user="admin")
    assert set(made.variants.values_list("state", flat=True)) == {"cancelled"}


@pytest.mark.parametrize("words", [("list",), ("show", "1"), ("cancel", "1")])
def test_who_operates_nothing_finds_nothing(weir, cluster, words):
    empty_experiment(cluster)
    assert weir("study", *words, user="researcher").exit_code == 4


def test_study_of_capacity_is_begun(weir, asked):
    done = weir("study", "capacity", "--days", "7", "--queue", "speech", "--no-wait", user="admin")
    assert done.exit_code == 0, done.output
    told = yaml.safe_load(done.stdout)
    assert (told["kind"], told["state"]) == ("capacity", "waiting")
    assert Study.objects.get().queue.name == "speech"
