"""Documents lead where they say."""

import re

import pytest
from django.conf import settings


def test_every_link_between_documents_leads_somewhere():
    for path in [settings.BASE_DIR / "README.md", *(settings.BASE_DIR / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"


def test_every_file_that_the_security_page_names_is_there():
    page = (settings.BASE_DIR / "docs" / "security.md").read_text()
    named = re.findall(r"`((?:tests|portal|scheduling|docker|docs)/[\w./-]+)`", page)

    assert [path for path in named if not (settings.BASE_DIR / path).exists()] == []
    assert len(named) > 40


MEASURED = re.compile(r"[0-9a-f]{8}, \d{1,2} [A-Z][a-z]{2} 20\d\d")
"""A commit and a date."""


def undated(page):
    """Rows of a table with figures whose column *measured* does not say of which commit and day they are."""
    place, found = None, []
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not line.startswith("|"):
            place = None
        elif "figure" in cells:
            place = cells.index("measured") if "measured" in cells else -1
        elif place is not None and not set(line) <= set("|-: "):
            said = cells[place] if 0 <= place < len(cells) else ""
            found += [] if MEASURED.fullmatch(said) else [cells[0]]
    return found


def test_every_figure_of_the_benchmarks_states_its_commit_and_date():
    page = (settings.BASE_DIR / "docs" / "benchmarks.md").read_text()

    assert undated(page) == []
    assert len(re.findall(MEASURED, page)) > 40


@pytest.mark.parametrize(
    "row",
    [
        "| quick | `bench x` | 2 s | | ≤ 3 s |",
        "| quick | `bench x` | 2 s | 27 Nov 2026 | ≤ 3 s |",
        "| quick | `bench x` | 2 s | 76748f7c | ≤ 3 s |",
        "| quick | `bench x` | 2 s |",
    ],
)
def test_figure_without_commit_or_date_is_found(row):
    head = "| claim | command | figure | measured | goal |\n|---|---|---|---|---|\n"

    assert undated(head + "| old | a | 1 s | 76748f7c, 27 Nov 2026 | |\n" + row) == ["quick"]


def test_table_of_figures_without_the_column_is_found():
    assert undated("| claim | figure |\n|---|---|\n| quick | 2 s |") == ["quick"]
