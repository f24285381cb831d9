"""What the deployment files say is run, read from them: nothing here repeats a command."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

DOCKER = Path(__file__).resolve().parents[2] / "docker"
COMPOSE = DOCKER / "compose.yaml"
DOCKERFILE = DOCKER / "Dockerfile"
OURS = "docker/Dockerfile"
TOOLS = {"venv", "compileall"}


@dataclass(frozen=True)
class Service:
    name: str
    command: tuple[str, ...]
    """As the container runs it."""
    restart: str


def compose() -> dict[str, Any]:
    """The file as a mapping, with what its anchors merge in."""
    return yaml.safe_load(COMPOSE.read_text())


def services() -> dict[str, Service]:
    """The services that run Weir's own image, by name; without a command they run the image's."""
    return {
        name: Service(name, tuple(said.get("command") or image_command()), said["restart"])
        for name, said in compose()["services"].items()
        if said.get("build", {}).get("dockerfile") == OURS
    }


def environment() -> dict[str, str]:
    """What compose gives to each of them, before anything is put in."""
    return compose()["x-weir"]["environment"]


def image_command() -> list[str]:
    """The last CMD of the image."""
    found = re.findall(r"^CMD (\[.*?\])$", _joined(), re.MULTILINE)
    return json.loads(found[-1])


def build_commands() -> list[list[str]]:
    """What RUN lines of the image call of Weir's own: every command of theirs that begins with python and is
    no tool of Python's own."""
    lines = re.findall(r"^RUN (.*)$", _joined(), re.MULTILINE)
    commands = [shlex.split(part) for line in lines for part in line.split("&&")]
    return [c for c in commands if c[:1] == ["python"] and not TOOLS.intersection(c)]


def _joined() -> str:
    return re.sub(r"\\\n\s*", "", DOCKERFILE.read_text())
