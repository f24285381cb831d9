"""What ``pip install .`` gives."""

import tomllib
from pathlib import Path

from django.conf import settings
from packaging.requirements import Requirement

ROOT = Path(settings.BASE_DIR)
TOLD = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_package_holds_every_folder_of_the_command_line():
    folders = {
        ".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "weir").rglob("*.py")
    }
    assert set(TOLD["tool"]["setuptools"]["packages"]) == folders


def test_dependencies_are_met_by_what_is_pinned():
    pins = {
        wanted.name.lower(): str(wanted.specifier).removeprefix("==")
        for line in (ROOT / "requirements.txt").read_text().splitlines()
        if "==" in line and (wanted := Requirement(line.partition("#")[0].strip().rstrip("\\")))
    }
    for text in TOLD["project"]["dependencies"]:
        wanted = Requirement(text)
        assert wanted.specifier.contains(pins[wanted.name.lower()]), text
