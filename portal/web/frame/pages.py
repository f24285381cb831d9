"""Long lists, a part at a time: ``components/pages.html`` leads on."""

from __future__ import annotations

from typing import Any

from django.core.paginator import Page, Paginator
from django.http import HttpRequest

PAGE = 50


def page_of(request: HttpRequest, rows: Any) -> Page[Any]:
    """The part of ``rows``, which are in order, that the address asks for; the nearest one that there is."""
    return Paginator(rows, PAGE).get_page(request.GET.get("page"))
