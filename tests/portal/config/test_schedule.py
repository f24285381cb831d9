"""The table of tasks is what settings, deployment and the processes of one machine follow."""

from __future__ import annotations

import shlex
from contextlib import nullcontext

import pytest
from celery import current_app
from django.conf import settings

from portal.config.schedule import DUTIES
from scheduling.services.worker import parts
from scheduling.services.worker.names import CLUSTERS, GENERAL, LOWEST, NICE, STUDIES
from tests.parts import deployment

LANES = (CLUSTERS, GENERAL, STUDIES)


@pytest.fixture(scope="module")
def tasks() -> set[str]:
    current_app.loader.import_default_modules()
    return {name for name in current_app.tasks if not name.startswith("celery.")}


def test_every_task_stands_in_the_table_and_no_other(tasks: set[str]) -> None:
    assert set(DUTIES) == tasks


def test_every_task_that_is_asked_for_by_the_clock_expires_before_the_next() -> None:
    for entry in settings.CELERY_BEAT_SCHEDULE.values():
        assert entry["options"]["expires"] <= entry["schedule"]


@pytest.mark.parametrize("name", [name for name, duty in DUTIES.items() if duty.lane != CLUSTERS])
def test_task_waits_in_its_lane(tasks: set[str], name: str) -> None:
    route = current_app.amqp.router.route({}, name)
    assert route["queue"].name == DUTIES[name].lane


def test_what_is_no_cycle_gives_way_to_all() -> None:
    assert {lane: NICE[lane] for lane in LANES} == {CLUSTERS: 0, GENERAL: LOWEST, STUDIES: LOWEST}


@pytest.mark.parametrize("lane", LANES)
def test_compose_serves_each_lane_by_a_service_that_gives_way_as_the_table_says(lane: str) -> None:
    (name,) = [n for n, s in deployment.services().items() if lanes_of(s.command) == [lane]]
    said = deployment.compose()["services"][name]
    command = shlex.join(said["command"])
    assert command.startswith(f"nice -n {NICE[lane]} celery ") is (NICE[lane] > 0)
    # Niceness counts within one container alone.
    assert (said.get("cpu_shares") == 2) is (NICE[lane] > 0)


def lanes_of(command: tuple[str, ...]) -> list[str]:
    return command[command.index("--queues") + 1].split(",") if "--queues" in command else []


def test_one_machine_serves_each_lane_by_a_process_that_gives_way_as_the_table_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    served: dict[str, int] = {}
    nice: list[int] = []
    monkeypatch.setattr(parts, "give_way", nice.append)
    monkeypatch.setattr(parts, "engine_queues", lambda: [CLUSTERS])
    monkeypatch.setattr(parts, "beating", lambda _: nullcontext())
    monkeypatch.setattr(parts, "FIRST", ())
    monkeypatch.setattr(parts, "consume", lambda _, lanes, __: served.update({lanes[0]: nice[-1]}))
    for part in parts.parts():
        part.run()
    assert served == NICE


def test_shares_of_what_is_no_cycle_leave_half_a_core_at_least() -> None:
    general = [d.share for d in DUTIES.values() if d.lane == GENERAL and d.share < 1]
    assert sum(general) <= 0.75
    studies = [d.share for d in DUTIES.values() if d.lane == STUDIES and d.share < 1]
    assert sum(studies) <= 1
