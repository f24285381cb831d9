"""The image built twice: what the Dockerfile adds to its base is the same but for compiled kernels."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy import image
from tests.fresh.roots import KEPT, NoRootError, end_all

pytestmark = [
    pytest.mark.deploy,
    pytest.mark.long,
    pytest.mark.skipif(
        os.environ.get("HYPOTHESIS_PROFILE") != "nightly", reason="two whole builds: at night"
    ),
]
ADDED = ("venv", "weir")
"""Folders of the image that are no base's."""
KERNELS = "weir/var/numba/"
"""Machine code of the engine, in files of the same names; of some the bytes differ from build to build."""


@pytest.fixture(scope="module")
def twice() -> Iterator[list[dict[str, str]]]:
    roots = [KEPT / f"trixie.twice-{n}" for n in (1, 2)]
    try:
        yield [printed(image.build(root, anew=True).root) for root in roots]
    except NoRootError as error:
        if "RUN " in str(error):
            raise
        pytest.skip(str(error))
    finally:
        for root in (*roots, *(root.with_name(f"{root.name}.build") for root in roots)):
            end_all(root)
            subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=True)


def printed(root: Path) -> dict[str, str]:
    """Each file and link below ADDED: its rights, owner and content."""
    return {
        str(path.relative_to(root)): _print(path)
        for top in ADDED
        for path in sorted((root / top).rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def _print(path: Path) -> str:
    about = path.lstat()
    content = os.readlink(path).encode() if path.is_symlink() else path.read_bytes()
    return f"{about.st_mode:o} {about.st_uid}:{about.st_gid} {hashlib.sha256(content).hexdigest()[:16]}"


def test_two_builds_have_the_same_files_with_the_same_bytes(twice: list[dict[str, str]]) -> None:
    first, second = twice
    assert len(first) > 10_000
    assert set(first) ^ set(second) == set()

    differing = {name for name in first if first[name] != second[name]}
    assert {name for name in differing if not name.startswith(KERNELS)} == set()
