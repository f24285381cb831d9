"""The structure that the docs promise, as failing tests."""

import ast
import re
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
WORKSHOP = [
    path for path in sorted((ROOT / "workshop").rglob("*.py")) if "migrations" not in path.parts
]
NO_NOUNS = {"told", "asked", "held", "due", "kept"}
IRREGULAR = (
    "told foretold held kept sent left made unmade known drawn given taken seen unseen foreseen lost spent"
    " said shown written chosen taught found paid due coming waiting missing leaving"
    " departing remaining lacking"
)
PARTICIPLES = {*IRREGULAR.split()}
NOUNS_IN_ED = {"need", "feed", "seed", "testbed"}
WRITTEN_DOWN = {
    # Columns of the database, and the demo's rows of one of them.
    "portal/web/mine/active.py:Active.held",
    "portal/alerts/models.py:Firing.told",
    "portal/idempotency/models.py:KeptAnswer.asked",
    "scheduling/models/metrics.py:IdleSpell.told",
    "scheduling/models/processes.py:Process.held",
    "scheduling/models/workloads.py:Workload.held",
    "workshop/demo/past/usage.py:_keep.told",
    # Keys of the snapshot file, and the value that is read from it by the same name.
    "scheduling/engine/document/schema.py:WorkloadDoc.held",
    "scheduling/engine/workload.py:Workload.held",
    # Keys of figures that the ledger keeps with a decision.
    "scheduling/engine/reasons/figures.py:Departure.held",
    # What the API sends, and takes in an address.
    "portal/api/processes.py:ProcessSerializer.held",
    "portal/api/workload_rows.py:LearnedCheckpointSerializer.told",
    "portal/display/filters.py:WorkloadFilter.held",
    "portal/web/overview/queue_table.py:Amounts.held",
}
"""Names that stay because something outside the code is read by them: none may come to these."""
TABLES = {"portal/teams/models.py:Submitted"}
"""Classes whose name is one of the database."""
NAMED_BY_DJANGO = {"Meta", "Command"}
MAX_FILE_LINES = 600
MAX_P95_FILE_LINES = 400
MAX_MEDIAN_FUNCTION_LINES = 12


def functions(path: Path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.end_lineno - node.lineno + 1, f"{path.relative_to(ROOT)}:{node.name}"


def names_in(node: ast.AST, scope: tuple[str, ...] = ()):
    """Each name that is bound below ``node``, with the functions and classes around it."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        match child:
            case (
                ast.FunctionDef(name=name)
                | ast.AsyncFunctionDef(name=name)
                | ast.ClassDef(name=name)
            ):
                yield scope, name
                inner = (*scope, name)
            case ast.arg(arg=name):
                yield scope, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield scope, name
            case (
                ast.alias(asname=str(name))
                | ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                yield scope, name
        yield from names_in(child, inner)


def test_no_participle_names_a_thing():
    found = {
        f"{path.relative_to(ROOT)}:{'.'.join((*scope, name))}"
        for path in (*SOURCES, *WORKSHOP)
        for scope, name in names_in(ast.parse(path.read_text()))
        if name.strip("_") in NO_NOUNS
    }
    assert found == WRITTEN_DOWN


def classes(path: Path) -> list[str]:
    tree = ast.walk(ast.parse(path.read_text()))
    return [node.name for node in tree if isinstance(node, ast.ClassDef)]


def is_participle(word: str) -> bool:
    return word in PARTICIPLES or (word.endswith("ed") and word not in NOUNS_IN_ED)


def test_no_class_is_named_by_what_happened_to_it():
    found = {
        f"{path.relative_to(ROOT)}:{name}"
        for path in (*SOURCES, *WORKSHOP)
        for name in classes(path)
        if is_participle(re.findall("[A-Z]?[a-z0-9]*", name.strip("_"))[-2].lower())
    }
    assert found == TABLES


def test_no_module_is_named_by_what_happened_to_it():
    places = {
        place
        for path in (*SOURCES, *WORKSHOP)
        for place in (path.relative_to(ROOT), *path.relative_to(ROOT).parents)
    }
    assert [place for place in places if is_participle(place.stem.rpartition("_")[2])] == []


def test_a_floor_has_no_two_classes_of_one_name():
    floors: dict[tuple[tuple[str, ...], str], list[Path]] = {}
    for path in (*SOURCES, *WORKSHOP):
        for name in {*classes(path)} - NAMED_BY_DJANGO:
            floor = path.relative_to(ROOT).parent.parts[:2]
            floors.setdefault((floor, name), []).append(path)
    assert [key for key, places in floors.items() if len(places) > 1] == []


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
