"""Documents lead where they say."""

import re

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
