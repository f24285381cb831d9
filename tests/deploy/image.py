"""The stages of docker/Dockerfile, built into root file systems without a registry or a daemon.

A base image is the Debian it is named after, with that Debian's Python. Stages before the last, which copy
single files, are kept under their checksum, as a builder keeps layers; the last one is made anew.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import string
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.fresh.roots import KEPT, NoRootError, copy_pristine, environment
from tests.manual import ROOT

DOCKERFILE = ROOT / "docker/Dockerfile"
BASE = re.compile(
    r"python:(?P<python>[\d.]+)-slim-(?P<suite>\w+)@(?P<digest>sha256:[0-9a-f]{64})(?: AS (?P<name>\w+))?$"
)
PYTHON = (
    "apt-get update -qq && apt-get install -y -qq python3-venv"
    " && ln -s /usr/bin/python3 /usr/local/bin/python"
)
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass
class Stage:
    """A root file system, and how a container of it runs."""

    root: Path
    environment: dict[str, str] = field(default_factory=lambda: {"PATH": PATH})
    folder: str = "/"
    user: str = "0"
    command: list[str] = field(default_factory=list)


def instructions() -> list[list[tuple[str, str]]]:
    """Stages of the Dockerfile, each as its instructions."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"(?m)^\s*#.*\n", "", DOCKERFILE.read_text()))
    lines = [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line.strip()]
    starts = [place for place, line in enumerate(lines) if line[0] == "FROM"]
    return [
        [(name, rest) for name, rest in lines[start:end]]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True)
    ]


def build(folder: Path, *, anew: bool = False) -> Stage:
    """The last stage, in ``folder``; ``anew`` with nothing that was kept. Raises NoRootError."""
    made: dict[str, Stage] = {}
    *before, last = instructions()
    for stage in before:
        found = BASE.match(stage[0][1])
        assert found
        before_it = folder.with_name(f"{folder.name}.{found['name']}")
        made[found["name"]] = _build(stage, before_it, made) if anew else _kept(stage, made)
    return _build(last, folder, made)


def _kept(stage: list[tuple[str, str]], made: dict[str, Stage]) -> Stage:
    copied = [ROOT / rest.split()[0] for name, rest in stage if name == "COPY"]
    told = json.dumps(stage) + "".join(path.read_text() for path in copied)
    folder = KEPT / f"image-{hashlib.sha256(told.encode()).hexdigest()[:16]}"
    if folder.exists():
        return Stage(folder)
    half = folder.with_suffix(".half")
    shutil.rmtree(half, ignore_errors=True)
    _build(stage, half, made)
    half.rename(folder)
    return Stage(folder)


def _build(stage: list[tuple[str, str]], root: Path, made: dict[str, Stage]) -> Stage:
    base = BASE.match(stage[0][1])
    assert base, f"{stage[0][1]}: a base that no packages make"
    copy_pristine(base["suite"], root)
    here = Stage(root)
    _run(here, PYTHON)
    for name, rest in stage[1:]:
        DOES[name](here, rest, made)
    return here


def _run(stage: Stage, line: str, made: dict[str, Stage] | None = None) -> None:
    script = (
        "set -e; mount -t proc proc $0/proc; mount --rbind /dev $0/dev; cache=$0/root/.cache/pip; "
        f'mkdir -p $cache {KEPT}/pip; mount --bind {KEPT}/pip $cache; exec chroot $0 "$@"'
    )
    inside = ["env", f"--chdir={stage.folder}", "sh", "-ec", line.replace("--no-cache-dir ", "")]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, str(stage.root), *inside],
        env={**environment(), **stage.environment, "DEBIAN_FRONTEND": "noninteractive"},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise NoRootError(f"RUN {line}\n{done.stdout[-1500:]}{done.stderr[-1500:]}")


def _copy(stage: Stage, rest: str, made: dict[str, Stage]) -> None:
    source, target = [word for word in rest.split() if not word.startswith("--")]
    there = stage.root / target.lstrip("/")
    if origin := re.search(r"--from=(\w+)", rest):
        path = made[origin[1]].root / source.lstrip("/")
        subprocess.run(["cp", "--archive", "--reflink=auto", path, there], check=True)
    elif source == ".":
        for name in context():
            (there / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, there / name)
    else:
        shutil.copyfile(ROOT / source, there)


def context() -> list[str]:
    """Files of the checkout that .dockerignore lets into the image."""
    told = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    ignored = tuple((ROOT / ".dockerignore").read_text().split())
    names = [name for name in told.stdout.splitlines() if name.split("/")[0] not in ignored]
    return [name for name in names if (ROOT / name).is_file()]


def _env(stage: Stage, rest: str, made: dict[str, Stage]) -> None:
    for word in shlex.split(rest):
        name, _, value = word.partition("=")
        stage.environment[name] = string.Template(value).safe_substitute(stage.environment)


def _set(name: str) -> object:
    return lambda stage, rest, made: setattr(stage, name, rest)


def _cmd(stage: Stage, rest: str, made: dict[str, Stage]) -> None:
    stage.command = json.loads(rest)


DOES = {
    "RUN": _run, "COPY": _copy, "ENV": _env, "WORKDIR": _set("folder"), "USER": _set("user"), "CMD": _cmd,
    "EXPOSE": lambda stage, rest, made: None,
}  # fmt: skip
