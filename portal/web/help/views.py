"""Answers to the questions that pages raise. They hold no data, so they are the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from portal.selectors.reasons import REASONS
from portal.web.frame.requests import page_view
from portal.web.help.words import WORDS

TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "share": ("How your share is computed", "What a queue is entitled to now, in four steps."),
    "waiting": ("Why does it wait?", "What each reason means, and what you can do."),
    "evicted": ("Why was I evicted?", "Who may take GPUs back, from whom, and what it costs you."),
    "glossary": ("Glossary", "One word for each thing; pages, API and documents use the same."),
    "keyboard": ("Keyboard", "Everything can be reached without a mouse."),
}
"""By address: title and what the page answers."""


@page_view
def index(request: HttpRequest) -> HttpResponse:
    return render(request, "web/help/index.html", {"topics": _topics("")})


@page_view
def page(request: HttpRequest, topic: str) -> HttpResponse:
    if topic not in TITLES:
        raise Http404
    title, lead = TITLES[topic]
    context: dict[str, Any] = {"topic": topic, "title": title, "answer": lead}
    context |= {"topics": _topics(topic), "words": WORDS, "reasons": REASONS}
    return render(request, f"web/help/{topic}.html", context)


def _topics(current: str) -> Sequence[tuple[str, str, str, bool]]:
    return [(name, title, lead, name == current) for name, (title, lead) in TITLES.items()]
