"""The structure that the docs promise, as failing tests."""

import ast
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import call_command

ROOT = settings.BASE_DIR
SOURCES = sorted(
    path
    for top in ("portal", "scheduling", "weir")
    for path in (ROOT / top).rglob("*.py")
    if "migrations" not in path.parts
)
MAX_FILE_LINES = 600
MAX_P95_FILE_LINES = 400
MAX_MEDIAN_FUNCTION_LINES = 12


def functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.name}"


def test_imports_follow_the_contracts():
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_system_checks_find_nothing():
    call_command("check", fail_level="WARNING", stdout=StringIO())


@pytest.mark.django_db
def test_models_have_no_missing_migration():
    call_command("makemigrations", check=True, dry_run=True, stdout=StringIO())


def test_no_file_is_larger_than_a_reader_can_hold():
    lines = sorted((path.read_text().count("\n"), str(path.relative_to(ROOT))) for path in SOURCES)
    assert [row for row in lines if row[0] > MAX_FILE_LINES] == []
    assert lines[int(len(lines) * 0.95)][0] <= MAX_P95_FILE_LINES


def test_typical_function_is_small():
    sizes = sorted(size for path in SOURCES for size, _ in functions(path))
    assert sizes[len(sizes) // 2] <= MAX_MEDIAN_FUNCTION_LINES


def test_no_file_holds_a_path_of_a_machine_or_a_note_for_later():
    for path in SOURCES:
        text = path.read_text()
        for word in ("/root/", "/home/", "TODO", "FIXME"):
            assert word not in text, f"{path.relative_to(ROOT)} holds {word!r}"
