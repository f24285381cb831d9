"""Documents lead where they say."""

import re

from django.conf import settings


def test_every_link_between_documents_leads_somewhere():
    for path in [settings.BASE_DIR / "README.md", *(settings.BASE_DIR / "docs").glob("*.md")]:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)", path.read_text()):
            assert (path.parent / target).exists(), f"{path.name} links to {target}"
