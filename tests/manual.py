"""Commands that README and the manual tell people to type, read from those pages."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs/operations").glob("*.md")))
PROGRAMS = ("python", "manage.py", "kubectl", "make", "helm", "docker", "pg_dump", "pg_restore")
"""Text in backticks that begins with one of these, and goes on, is a command too."""


def typed(page: Path) -> list[str]:
    """Every command of ``page``, in order, each on one line."""
    text = page.read_text()
    blocks = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    lines = [
        line.strip()
        for language, block in blocks.findall(text)
        if language == "sh"
        for line in block.replace("\\\n", " ").splitlines()
    ]
    prose = (" ".join(found.split()) for found in re.findall(r"`([^`]+)`", blocks.sub("", text)))
    inline = [one for one in prose if one.split()[0] in PROGRAMS and " " in one]
    return [re.sub(r"\s+", " ", line) for line in [*lines, *inline] if line]


def manage(command: str) -> str | None:
    """What follows ``manage.py`` in ``command``, None where nothing does."""
    found = re.search(r"\bmanage\.py (.*)", command)
    return found[1] if found else None
