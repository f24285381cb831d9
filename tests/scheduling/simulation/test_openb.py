"""Alibaba's GPU trace and FGD's protocol on it, on a small cluster of the same format."""

from __future__ import annotations

from pathlib import Path

import pytest

from scheduling.simulation.fragmentation import allocated_pct, arrivals, frame_of
from scheduling.simulation.traces import TraceError
from scheduling.simulation.traces.openb import find_list, read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn1,16000,65536,2,T4\nn2,8000,65536,2,P100\n"
PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
    "p1,1000,1024,1,500,\np2,2000,1024,2,1000,T4|P100\np3,6000,1024,0,0,\np4,1000,1024,1,1000,P100\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_default.csv").write_text(PODS)
    return tmp_path


def test_pod_asks_for_the_gpus_of_all_its_devices_and_the_models_it_names(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))

    assert [p.gpus for p in pods] == [500, 2000, 0, 1000]
    assert [p.models for p in pods] == [(), ("P100", "T4"), (), ("P100",)]


def test_broken_pod_line_names_file_line_and_column(folder: Path) -> None:
    file = folder / "broken.csv"
    file.write_text(PODS + "p5,many,1024,1,1000,\n")

    with pytest.raises(
        TraceError, match=r"broken.csv:6: expected a whole number as cpu_milli, found 'many'"
    ):
        read_pods(file)


def test_missing_column_is_named(folder: Path) -> None:
    file = folder / "nodes.csv"
    file.write_text("sn,gpu\nn1,2\n")

    with pytest.raises(TraceError, match="columns cpu_milli, memory_mib, model"):
        read_nodes(file)


def test_arrivals_shuffle_the_list_and_go_on_until_they_ask_for_every_gpu(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))
    frame = frame_of(read_nodes(folder / "openb_node_list_gpu_node.csv"), pods)

    order = arrivals(frame, len(pods), seed=42)

    asked = frame.work.need[0, order]
    assert asked.sum() >= 4000 > asked[:-1].sum()
    assert sorted(order[:4]) == [0, 1, 2, 3]


def test_allocated_share_is_the_same_for_the_same_seed_and_never_above_all(folder: Path) -> None:
    pods = read_pods(find_list(folder, "default"))
    frame = frame_of(read_nodes(folder / "openb_node_list_gpu_node.csv"), pods)

    shares = [allocated_pct(frame, len(pods), seed) for seed in (42, 43, 42)]

    assert shares[0] == shares[2]
    assert all(50 <= share <= 100 for share in shares)
