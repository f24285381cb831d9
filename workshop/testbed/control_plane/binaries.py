"""The control plane's programs: from KUBEBUILDER_ASSETS, else built once from their Go modules.

``build/newest`` pins the newest Kubernetes that Weir is tested with, ``build/oldest`` the oldest. A build
lands in a cache outside the checkout, under the checksum of its ``go.sum``: the same modules give the same
programs, so only the first run on a machine pays for it.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from workshop.alone import alone

MODULES = Path(__file__).parent / "build"
CHOICE = "WEIR_KUBERNETES"
"""The variable that names one of the folders of MODULES."""
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
GO = ("go", "/usr/local/go/bin/go")
"""On the path, or where its installer puts it."""
_INSTALLED_AS = {"server": "etcd"}
"""`go install` names a program after the last part of its path; etcd's is `server`."""
_COMPILER_FLAGS = "-gcflags=all=-dwarf=false -l"
"""Neither debugging tables nor inlining: 43 CPU-s instead of 60 for `core/v1`, `runtime` and their parts."""
_STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
"""Packages that carry the version; without a stamp the API server calls itself v0.0.0-master."""


class NoBinariesError(Exception):
    """There are no programs to run, and what can be done about it."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """A folder with all of PROGRAMS."""

    folder: Path

    def path(self, program: str) -> str:
        return str(self.folder / program)


def find(say: Callable[[str], None] = lambda line: None) -> Binaries:
    """The programs, built first if need be; ``say`` hears about what takes minutes.

    Raises NoBinariesError.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    if assets:
        return _complete(Path(assets))
    folder = _cache() / "control-plane" / _checksum()
    if not folder.exists():
        with alone(folder.with_name(f"{folder.name}.lock")):
            if not folder.exists():
                _build(folder, say)
    return _complete(folder)


def _complete(folder: Path) -> Binaries:
    missing = [name for name in PROGRAMS if not os.access(folder / name, os.X_OK)]
    if missing:
        raise NoBinariesError(
            f"{folder} lacks {', '.join(missing)}. Put all of {', '.join(PROGRAMS)} there and name "
            "the folder in KUBEBUILDER_ASSETS, or leave that unset to have them built with Go."
        )
    return Binaries(folder)


def _cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    return (Path(given) if given else Path.home() / ".cache") / "weir"


def module() -> Path:
    """The folder whose go.mod pins what is built. Raises NoBinariesError."""
    chosen = os.environ.get(CHOICE) or "newest"
    known = sorted(folder.name for folder in MODULES.iterdir())
    if chosen not in known:
        raise NoBinariesError(f"{CHOICE} is {chosen!r}; set it to one of {', '.join(known)}")
    return MODULES / chosen


def _checksum() -> str:
    return hashlib.sha256((module() / "go.sum").read_bytes()).hexdigest()[:16]


def _build(folder: Path, say: Callable[[str], None]) -> None:
    """Build beside ``folder`` and rename, so that a killed build leaves nothing half done."""
    go = next(filter(None, map(shutil.which, GO)), None)
    if go is None:
        raise NoBinariesError(
            "There is no Kubernetes control plane here. Either set KUBEBUILDER_ASSETS to a folder "
            f"with {', '.join(PROGRAMS)}, or install Go (https://go.dev/dl/) so that they can be "
            "built from their modules."
        )
    say("Building a Kubernetes control plane from its Go modules, once: about 5 minutes")
    making = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(making, ignore_errors=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOBIN": str(making)}
    command = [go, "install", "-trimpath", _COMPILER_FLAGS, "-ldflags", _linker_flags(), "tool"]
    built = subprocess.run(command, cwd=module(), env=environment, check=False)  # noqa: S603 - go itself
    if built.returncode != 0:
        shutil.rmtree(making, ignore_errors=True)
        raise NoBinariesError(f"Building the control plane failed: {' '.join(command[:2])} above")
    for name, wanted in _INSTALLED_AS.items():
        (making / name).rename(making / wanted)
    making.rename(folder)


def _linker_flags() -> str:
    version = kubernetes_version()
    major, minor = version.removeprefix("v").split(".")[:2]
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X {package}.{k}={v}" for package in _STAMPED for k, v in values.items()]
    return " ".join(["-s -w", *stamps])


def kubernetes_version() -> str:
    """The version that go.mod pins, such as v1.37.2."""
    required = re.findall(r"k8s\.io/kubernetes (v\S+)", (module() / "go.mod").read_text())
    return str(required[0])
