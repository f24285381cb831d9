"""Scenario files: services that follow the hour, elastic gangs, and what is said of a file that cannot be."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import islice
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.conf import settings
from django.core.management import call_command

from scheduling.engine.model import Members
from scheduling.files import read
from scheduling.simulation.run.jobs import Submission
from workshop.scenario import Organisation, Rhythm, Service, generate, stream
from workshop.scenario.document import ScenarioError, parse
from workshop.scenario.stream import HOUR_S, replicas
from workshop.simulator.simulator import simulate

EXAMPLE = Path(settings.BASE_DIR) / "docs" / "scenario.example.yaml"
BERLIN = ZoneInfo("Europe/Berlin")
MONDAY = datetime(2026, 11, 2, 3, tzinfo=UTC)  # 04:00 in Berlin
CHAT = Service("chat", "serving", "dee", "inference", "h100", 2, 4, 20)
Json = dict[str, Any]


def hour(moment: datetime) -> int:
    return int(moment.timestamp()) // HOUR_S


def served(drawn: list[Submission], number: int) -> int:
    """Replicas whose time covers the middle of that hour."""
    middle = datetime.fromtimestamp((number + 0.5) * HOUR_S, UTC)
    return sum(s.submitted <= middle < s.submitted + timedelta(seconds=s.duration_s) for s in drawn)


def organisation(*services: Service) -> Organisation:
    return Organisation((), {"h100": 64}, zone=BERLIN, services=services)


def test_service_wants_least_in_the_quietest_hour_and_most_in_the_busiest() -> None:
    wanted = [replicas(CHAT, hour(MONDAY) + h, BERLIN, 0) for h in range(168)]

    assert (min(wanted), max(wanted)) == (4, 20)
    assert wanted[6] == 20  # 10:00 in Berlin
    assert max(wanted[5 * 24 :]) < 10  # the weekend


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_workloads_of_a_service_are_what_each_hour_wants(noise: float) -> None:
    service = Service("chat", "serving", "dee", "inference", "h100", 2, 4, 20, noise=noise)
    drawn = generate(organisation(service), MONDAY, 7, 3)

    for number in range(hour(MONDAY), hour(MONDAY) + 168):
        assert served(drawn, number) == replicas(service, number, BERLIN, 3)
    assert {(s.workload.gpus, s.workload.members) for s in drawn} == {(2000, Members(1, 1))}


def test_replicas_are_deployed_anew_each_day() -> None:
    flat = Service("embed", "serving", "dee", "inference", "h100", 1, 3, 3, Rhythm.FLAT)

    drawn = generate(organisation(flat), MONDAY, 2, 0)

    assert [s.duration_s for s in drawn] == [86_400] * 6
    assert {s.submitted.astimezone(BERLIN).hour for s in drawn} == {4}


def test_stream_with_services_can_go_on_from_any_moment() -> None:
    noisy = Service("chat", "serving", "dee", "inference", "h100", 1, 2, 12, noise=0.4)
    whole = generate(organisation(noisy), MONDAY, 3, 7)
    moment = MONDAY + timedelta(hours=31, minutes=5)

    rest = list(islice(stream(organisation(noisy), moment, 7), 20))

    assert rest == [s for s in whole if s.submitted >= moment][:20]


def example() -> Json:
    found: Json = read(EXAMPLE.read_text(), EXAMPLE.name)
    return found


def test_elastic_gangs_start_small_and_grow_when_there_is_room() -> None:
    scenario = parse(example())

    jobs = simulate(
        scenario.cluster, generate(scenario.organisation, scenario.cluster.now, 2, 1)
    ).jobs

    elastic = [job for job in jobs if job.workload.elastic]
    assert {job.workload.members for job in elastic} == {Members(1, 4)}
    held = [[run.members for run in job.runs] for job in elastic]
    assert any(members[0] < members[-1] for members in held)
    assert all(job.end_s is not None for job in jobs)


def test_same_file_and_seed_give_the_same_bytes_and_another_seed_others() -> None:
    first, again, other = (played("--days", "1", "--seed", seed) for seed in ("1", "1", "2"))

    assert first == again
    assert first != other
    rows = json.loads(first)["work"]
    assert [(row["queue"], row["not_started"]) for row in rows] == [("research", 0), ("serving", 0)]


def played(*options: str) -> str:
    told = StringIO()
    call_command("scenario", str(EXAMPLE), "--json", *options, stdout=told)
    return told.getvalue()


BROKEN: list[tuple[Callable[[Json], Any], str, str]] = [
    (lambda d: d["services"][0].update(most=3), "services[0].most", "at least 4"),
    (lambda d: d["services"][0].update(queue="nobody"), "services[0].queue", "research, serving"),
    (lambda d: d["services"][0].update(gpus=9), "services[0].gpus", "at most 8"),
    (lambda d: d["services"][0].update(rhythm="noon"), "services[0].rhythm", "office"),
    (lambda d: d["services"][0].update(noise=-1), "services[0].noise", "at least 0"),
    (lambda d: d["kinds"][0]["sizes"][2].update(most=0), "kinds[0].sizes[2].most", "at least 1"),
    (lambda d: d["kinds"][0]["sizes"][2].update(members=5), "kinds[0].sizes[2].most", "at least 5"),
    (lambda d: d["kinds"][0].update(failing=0.9, cancelled=0.2), "kinds[0].failing", "at most 1"),
    (lambda d: d["kinds"][0].update(colour="red"), "kinds[0].colour", "no such key"),
    (lambda d: d["sources"][0]["kinds"].update(x=1), "sources[0].kinds.x", "training"),
    (lambda d: d["sources"][0].pop("users"), "sources[0].users", "a value"),
    (lambda d: d.update(zone="Moon/Base"), "zone", "a time zone"),
    (lambda d: d["cluster"]["nodes"][0].update(gpus=-1), "cluster.nodes[0].gpus", "at least 0"),
]


@pytest.mark.parametrize(("spoil", "path", "expected"), BROKEN, ids=[row[1] for row in BROKEN])
def test_broken_scenario_is_refused_by_field(spoil, path: str, expected: str) -> None:
    document = copy.deepcopy(example())
    spoil(document)

    with pytest.raises(ScenarioError) as refused:
        parse(document)

    (fault,) = refused.value.faults
    assert fault.path == path
    assert expected in fault.expected
    assert fault.remedy


def test_command_names_file_line_and_field_of_what_it_refuses(tmp_path: Path, capsys) -> None:
    file = tmp_path / "broken.yaml"
    file.write_text(EXAMPLE.read_text().replace("least: 4", "least: 40"))

    with pytest.raises(SystemExit) as ended:
        call_command("scenario", str(file))

    line = file.read_text().splitlines().index("    most: 20") + 1
    assert ended.value.code == 2
    assert f"{file}:{line}: services[0].most: found 20" in capsys.readouterr().err


def test_more_work_than_can_be_lived_is_refused_before_it_is_drawn(tmp_path: Path, capsys) -> None:
    file = tmp_path / "much.yaml"
    file.write_text(
        EXAMPLE.read_text().replace("median_s: 5400, sigma: 1.0", "median_s: 1, sigma: 0.0")
    )

    with pytest.raises(SystemExit):
        call_command("scenario", str(file), "--days", "300")

    assert "workloads in 300 days, expected at most 200,000" in capsys.readouterr().err
