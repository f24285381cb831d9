"""Where the programs come from, and what is said when they come from nowhere."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from scheduling.services.clusters.checkup import SUPPORTED
from workshop.testbed.control_plane import binaries
from workshop.testbed.control_plane.binaries import PROGRAMS, NoBinariesError, find


def furnish(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).touch(mode=0o755)
    return folder


def test_assets_named_by_the_environment_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(furnish(tmp_path, *PROGRAMS)))
    assert find().path("etcd") == str(tmp_path / "etcd")


def test_incomplete_assets_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(furnish(tmp_path, "etcd", "kube-apiserver")))
    with pytest.raises(NoBinariesError, match="kube-controller-manager, kube-scheduler"):
        find()


def test_without_go_both_ways_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(binaries, "GO", (str(tmp_path / "go"),))
    with pytest.raises(NoBinariesError, match=r"KUBEBUILDER_ASSETS.*install Go"):
        find()


def test_build_is_made_once_and_kept_under_the_checksum_of_its_modules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The Go of this test notes that it ran and makes what `go install` makes."""
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    installed = " ".join("server" if name == "etcd" else name for name in PROGRAMS)
    go = furnish(tmp_path / "bin") / "go"
    go.write_text(
        f'#!/bin/sh\nsleep 0.2; echo ran >> "{tmp_path}/runs"\nmkdir "$GOBIN"\n'
        f'for name in {installed}; do touch "$GOBIN/$name"; chmod +x "$GOBIN/$name"; done\n'
    )
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    with ThreadPoolExecutor() as at_once:
        first, second = at_once.map(lambda _: find(), range(2))
    assert first == second == find()
    assert first.folder.parent == tmp_path / "cache" / "weir" / "control-plane"
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_build_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go = furnish(tmp_path / "bin") / "go"
    go.write_text('#!/bin/sh\nmkdir "$GOBIN"\nexit 1\n')
    go.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")

    with pytest.raises(NoBinariesError, match="failed"):
        find()
    left = (tmp_path / "cache" / "weir" / "control-plane").iterdir()
    assert [path.suffix for path in left] == [".lock"]


@pytest.mark.parametrize(("chosen", "version"), [("newest", "v1.37.2"), ("oldest", "v1.36.3")])
def test_version_is_the_one_that_is_pinned(
    monkeypatch: pytest.MonkeyPatch, chosen: str, version: str
) -> None:
    monkeypatch.setenv(binaries.CHOICE, chosen)

    assert binaries.kubernetes_version() == version


@pytest.mark.parametrize(("chosen", "number"), [("oldest", SUPPORTED[0]), ("newest", SUPPORTED[1])])
def test_both_ends_of_what_is_supported_are_built(
    monkeypatch: pytest.MonkeyPatch, chosen: str, number: tuple[int, int]
) -> None:
    monkeypatch.setenv(binaries.CHOICE, chosen)

    assert binaries.kubernetes_version().startswith(f"v{number[0]}.{number[1]}.")


def test_choice_that_there_is_not_is_refused_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(binaries.CHOICE, "1.12")

    with pytest.raises(NoBinariesError, match="newest, oldest"):
        binaries.kubernetes_version()
