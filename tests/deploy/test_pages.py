"""What README and the manual tell people to type works: helm's lines render, names in kubectl's are made."""

from __future__ import annotations

import re
import shlex

import pytest
import yaml
from django.core.management import get_commands

from tests.deploy.charts import CHART, ROOT, Json, helm

README = (ROOT / "README.md").read_text()
INSTALL = (ROOT / "docs/operations/install.md").read_text()
SIZE = (ROOT / "docs/operations/size.md").read_text()
SIZES = yaml.safe_load((CHART / "files/sizes.yaml").read_text())
UNITS = {"Mi": 1, "Gi": 1024}


def commands(page: str) -> list[list[str]]:
    """Words of each command of the shell blocks of ``page``."""
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip()]


def rendered(command: list[str]) -> list[Json]:
    """What `helm upgrade --install` would apply."""
    assert command[:3] == ["helm", "upgrade", "--install"]
    done = helm("template", *(word for word in command[3:] if word != "--create-namespace"))
    assert done.returncode == 0, done.stderr
    return [one for one in yaml.safe_load_all(done.stdout) if one]


@pytest.mark.deploy
@pytest.mark.parametrize("page", [README, INSTALL], ids=["README", "install"])
def test_commands_install_what_the_next_ones_name(page: str) -> None:
    typed = commands(page)
    (install,) = (one for one in typed if one[0] == "helm")
    objects = rendered(install)
    made = {f"{one['kind'].lower()}/{one['metadata']['name']}" for one in objects}
    named = {word for one in typed for word in one if re.match(r"(deployment|service)/", word)}

    assert named <= made
    images = {
        container["image"]
        for one in objects
        if one["kind"] == "Deployment"
        for container in one["spec"]["template"]["spec"]["containers"]
    }
    assert len(images) == 1
    pushed = {word for one in typed if one[0] == "docker" for word in one if "weir:" in word}
    assert pushed in (set(), images)


def test_installation_takes_ten_lines_and_no_more() -> None:
    block = re.findall(r"^```sh\n(.*?)^```", README, re.MULTILINE | re.DOTALL)[0]

    assert len(block.splitlines()) <= 10


def test_secret_of_the_manual_has_what_pods_need() -> None:
    (made,) = (one for one in commands(INSTALL) if "secret" in one and "create" in one)
    keys = {re.match(r"--from-literal=(\w+)=", word)[1] for word in made if "literal" in word}

    assert keys == {"WEIR_SECRET_KEY", "DATABASE_URL", "WEIR_BROKER_URL", "WEIR_METRICS_TOKEN"}


def test_commands_of_manage_are_there() -> None:
    notes = (CHART / "templates/NOTES.txt").read_text()
    named = set(
        re.findall(r"manage\.py ([a-z-]+)", notes + "\n".join(map(" ".join, commands(README))))
    )

    assert {"doctor", "first-admin"} <= named <= set(get_commands())


@pytest.mark.parametrize("size", SIZES)
def test_table_of_sizes_adds_up(size: str) -> None:
    asked = [one for name, one in SIZES[size].items() for _ in range(2 if name == "web" else 1)]
    cores = sum(
        int(one["cpu"][:-1]) / 1000 if one["cpu"].endswith("m") else int(one["cpu"])
        for one in asked
    )
    memory = sum(int(one["memory"][:-2]) * UNITS[one["memory"][-2:]] for one in asked) / 1024
    (row,) = re.findall(rf"^\| `{size}` \|.*\| ([\d.]+), ([\d.]+) GiB \|$", SIZE, re.MULTILINE)

    assert (float(row[0]), float(row[1])) == (
        pytest.approx(cores, abs=0.06),
        pytest.approx(memory, abs=0.06),
    )
