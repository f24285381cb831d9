"""Long lists, a part at a time: ``components/pages.html`` leads on."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

PAGE = 50


def page_of(
    request: HttpRequest, rows: Any, *, size: int = PAGE, count: int | None = None
) -> Page[Any]:
    """The part of ``rows``, which are in order, that the address asks for; the nearest one that there is.
    ``count`` of them, where that is known, is not asked for."""
    pages = Paginator(rows, size)
    if count is not None:
        pages.count = count
    return pages.get_page(request.GET.get("page"))
