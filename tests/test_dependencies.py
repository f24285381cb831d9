"""The audit of `make check` finds what it is there for."""

from __future__ import annotations

import importlib.util
from importlib.metadata import PathDistribution
from pathlib import Path
from types import ModuleType

import pytest
from django.conf import settings


def program(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, settings.BASE_DIR / "docker" / f"{name}.py")
    assert spec
    assert spec.loader
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


audit, parts = program("audit_dependencies"), program("install_parts")


@pytest.mark.parametrize(
    "line",
    [
        "django", "django>=5", "django==5.*", "django==5.2,<6", "git+https://example.org/x.git",
        "django @ https://example.org/d.whl", "-e .", "django===5",
    ],
)  # fmt: skip
def test_requirement_that_is_no_pin_is_told_with_its_line(line: str) -> None:
    (fault,) = audit.pins(["# why", line], "requirements.txt")

    assert fault.startswith("requirements.txt:2: ")


def test_pin_with_a_marker_is_one() -> None:
    (pin,) = audit.pins(["colorama==0.4.6 ; sys_platform == 'win32'"], "requirements.txt")

    assert pin.name == "colorama"


def test_wish_without_a_pin_is_told() -> None:
    (fault,) = audit.unpinned_wishes(["-c x.txt", "numpy  # arrays", "scipy"], {"scipy"}, "a.in")

    assert fault == "a.in:2: numpy has no pin; run 'make lock'"


def test_installed_that_differs_from_the_pins_is_told() -> None:
    present = {"django": "5.2.1", "stray": "1", "pip": "23"}

    faults = list(audit.differences({"django": "5.2.2", "numpy": "2"}, present))

    assert [fault.split()[0].rstrip(":") for fault in faults] == ["django", "numpy", "stray"]


@pytest.mark.parametrize(
    ("licence", "wanted"),
    [
        ("MIT", True), ("Apache-2.0 OR GPL-3.0", True), ("LGPL-3.0-only", True), ("", False),
        ("GPL-3.0-or-later", False), ("AGPL-3.0", False), ("Proprietary", False),
    ],
)  # fmt: skip
def test_licence_is_wanted_or_not(licence: str, wanted: bool) -> None:
    assert (audit.unwanted("x", licence) is None) is wanted


def test_file_that_is_not_as_its_wheel_had_it_is_told(tmp_path: Path) -> None:
    info = tmp_path / "x-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: x\nVersion: 1\n")
    (info / "RECORD").write_text(
        "x.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\ny.py,sha256=a,1\n"
    )
    (tmp_path / "x.py").write_text("")
    installed = PathDistribution(info)
    assert list(audit.changed_files(installed)) == ["y.py of x is gone; reinstall it"]

    (tmp_path / "x.py").write_text("import os")

    assert "x.py of x is not as its wheel had it; reinstall it" in audit.changed_files(installed)


@pytest.mark.parametrize(
    ("last", "said"),
    [
        (
            "ERROR: No matching distribution found for numba==0.68.1",
            "numba==0.68.1 can't be had for Python",
        ),
        ("ERROR: Failed to build 'scipy' when installing", "scipy can't be had for Python"),
        ("ERROR: Connection refused", "the package index does not answer"),
        ("ERROR: No space left on device", "the lines above say why"),
    ],
)
def test_part_that_cannot_be_had_is_named_with_the_remedy(last: str, said: str) -> None:
    assert said in parts.why(["Collecting django==5.2", last])
