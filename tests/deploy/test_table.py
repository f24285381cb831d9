"""One table of processes: the image, compose, the chart and the page of the engine say what it says."""

from __future__ import annotations

import re

import pytest
import yaml

from portal.web.operations.processes import STARTED_BY
from scheduling.models import Role
from scheduling.services.worker.deployment import DEPLOYED, MIGRATE
from tests.deploy.charts import CHART, ROOT
from tests.parts import deployment

CHARTED = yaml.safe_load((CHART / "files/processes.yaml").read_text())
VALUES = yaml.safe_load((CHART / "values.yaml").read_text())
SIZES = yaml.safe_load((CHART / "files/sizes.yaml").read_text())
NAMES = {one.name for one in DEPLOYED}


def test_table_has_every_role_once() -> None:
    assert sorted(one.role for one in DEPLOYED) == sorted(Role.values)


def test_compose_runs_the_commands_of_the_table() -> None:
    services = deployment.services()

    assert {name: service.command for name, service in services.items()} == {
        **{one.name: one.command for one in DEPLOYED},
        "migrate": MIGRATE,
    }


def test_image_serves_the_web_by_itself() -> None:
    (web,) = (one for one in DEPLOYED if one.name == "web")

    assert tuple(deployment.image_command()) == web.command


def test_chart_runs_the_commands_of_the_table_under_its_accounts() -> None:
    assert {name: (tuple(one["command"]), one["account"]) for name, one in CHARTED.items()} == {
        one.name: (one.command, one.account) for one in DEPLOYED
    }


def test_page_of_the_engine_names_the_commands_of_the_table() -> None:
    assert {role.value: command for role, command in STARTED_BY.items()} == {
        one.role: " ".join(one.command) for one in DEPLOYED
    }


def test_what_does_more_as_many_can_be_many_in_the_chart() -> None:
    counted = {name for name in NAMES if "replicas" in VALUES[name]}

    assert {one.name for one in DEPLOYED if one.many} <= counted
    assert "beat" not in counted, "two beats ask for everything twice"


@pytest.mark.parametrize("size", SIZES)
def test_each_size_says_what_each_process_asks_for(size: str) -> None:
    assert set(SIZES[size]) == NAMES
    for asked in SIZES[size].values():
        assert set(asked) == {"cpu", "memory"}


def test_chart_is_of_the_version_of_the_product() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    (version,) = re.findall(
        r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )

    assert chart["version"] == chart["appVersion"] == version
