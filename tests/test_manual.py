"""What README and the manual tell people to type is run: here, or by the test that the table names."""

from __future__ import annotations

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from tests.manual import PAGES, ROOT, manage, typed
from tests.parts import deployment
from tests.test_readme import beside, folder  # noqa: F401 - fixtures

HERE = "tests/test_manual.py"
ELSEWHERE = {
    r"cluster add": ("tests/scheduling/management/test_cluster_command.py", '"add"'),
    r"cluster keep": ("tests/scheduling/models/test_credentials.py", '"keep"'),
    r"cluster mode \w+ enforce": (
        "tests/scheduling/management/test_cluster_command.py",
        '"enforce"',
    ),
    r"check --deploy": ("tests/security/test_deployment.py", '"--deploy"'),
    r"first-admin": ("tests/portal/config/test_rotation.py", '"first-admin"'),
    r"doctor": ("tests/portal/config/test_doctor.py", "doctor"),
    r"demo_week": ("tests/portal/demo/test_week.py", "week"),
    r"bench": ("tests/scheduling/services/benches/test_bench.py", "bench"),
    r"migrate": ("tests/parts/test_days.py", '"migrate"'),
    r"audit verify --expect": ("tests/parts/test_days.py", '"--expect"'),
}
"""Commands of manage.py that want a world of their own -> the test that runs them, words that it has."""
PROOFS = (
    (r"exec deployment/weir-\w+ -- python manage\.py", "tests/deploy/test_image.py", "manage.py"),
    (r"exec web python manage\.py", "tests/deploy/test_image.py", "manage.py"),
    *((rf"manage\.py {words}\b", *proof) for words, proof in ELSEWHERE.items()),
    (r"manage\.py ", HERE, "def test_commands_of_manage_run"),
    (r"make ", HERE, "def test_targets_of_make_are_there"),
    (r"python -c", HERE, "def test_key_of_the_manual_is_long_enough"),
    (r"docker compose .* up |export ", HERE, "def test_compose_gets_what_it_asks_for"),
    (r"docker (build|push)", "tests/deploy/test_image.py", "image.build("),
    (r"helm upgrade --install", "tests/deploy/test_pages.py", "def test_commands_install"),
    (r"helm (upgrade|rollback)", "tests/deploy/test_release.py", "def test_next_version"),
    (r"pg_(dump|restore) ", "tests/parts/test_days.py", "told("),
    (r"kubectl ", "tests/deploy/test_typed.py", "def test_kubectl_takes"),
)
"""Pattern of commands, the first that fits counts -> the test that runs them, words that it has."""


def proof(command: str) -> tuple[str, str]:
    found = [(path, words) for pattern, path, words in PROOFS if re.search(pattern, command)]
    assert found, f"no test runs {command!r}: add it to PROOFS"
    return found[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_command_is_run_by_a_test(page: Path) -> None:
    for command in typed(page):
        path, words = proof(command)

        assert words in (ROOT / path).read_text(), f"{path} no longer runs {command!r}"


def test_no_proof_is_left_of_a_command_that_is_gone() -> None:
    commands = [command for page in PAGES for command in typed(page)]

    assert [one for one, _, _ in PROOFS if not any(re.search(one, c) for c in commands)] == []


def run(line: str) -> str:
    """What a command of manage.py prints; one that found faults says them, and may end with 1."""
    out = io.StringIO()
    try:
        call_command(*shlex.split(line), stdout=out, stderr=io.StringIO())
    except CommandError:
        if not out.getvalue():
            raise
    return out.getvalue()


@pytest.mark.usefixtures("beside")
@pytest.mark.parametrize("page", PAGES[1:], ids=lambda page: page.stem)
def test_commands_of_manage_run_one_after_the_other(page: Path, folder: Path) -> None:  # noqa: F811
    """In this process, on the example organisation's cluster; those that tell of faults may end with 1."""
    for command in typed(page):
        if proof(command)[0] != HERE or not manage(command):
            continue
        line, _, file = (manage(command) or "").partition(" > ")
        said = run(line.replace("NAME", "fra1"))
        if file:
            Path(file).write_text(said)


@pytest.mark.parametrize(
    "command", sorted({c for page in PAGES for c in typed(page) if c.startswith("make ")})
)
def test_targets_of_make_are_there(command: str) -> None:
    done = subprocess.run(
        [*shlex.split(command), "--dry-run"], cwd=ROOT, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr


def test_key_of_the_manual_is_long_enough() -> None:
    """50 characters are asked for: ``weir.E001``."""
    (line,) = (c for page in PAGES for c in typed(page) if c.startswith("python -c"))
    _, *words = shlex.split(line)
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)

    assert len(done.stdout.strip()) >= 50


def test_compose_gets_what_it_asks_for() -> None:
    (line,) = (c for page in PAGES for c in typed(page) if c.startswith("export "))
    given = set(re.findall(r"(\w+)=", line))

    assert set(re.findall(r"\$\{(\w+):\?", deployment.COMPOSE.read_text())) <= given
    assert "web" in deployment.services()


def test_command_that_is_gone_has_no_proof() -> None:
    with pytest.raises(AssertionError, match="no test runs"):
        proof("weirctl frobnicate")
