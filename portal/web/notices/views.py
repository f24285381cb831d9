"""The inbox of a person, and how they want to be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse

from portal.boundary.reading import whole_or
from portal.notices import inbox, webhooks
from portal.notices.forms import WebhookForm
from portal.notices.letters import is_mail_set_up, last_of
from portal.notices.models import Kind, Letter, Way, Webhook, When
from portal.notices.times import hours_of, preferences_of, ways_of
from portal.teams.access import is_operator
from portal.web.frame.pages import page_of
from portal.web.frame.requests import PersonRequest, act_view, acted, page_view

HOOK = "hook-%s"


@dataclass(frozen=True)
class WebhookRow:
    """A webhook, and the letter that was tried last."""

    webhook: Webhook
    last: Letter | None

    @property
    def host(self) -> str:
        return urlsplit(self.webhook.address).netloc


def ways_card(request: PersonRequest) -> dict[str, Any]:
    last = last_of(request.user)
    places = [WebhookRow(one, last.get(one.pk)) for one in request.user.webhooks.all()]
    return {
        "mail_is_set_up": is_mail_set_up(),
        "mail_last": last.get(None),
        "places": places,
        "most_places": webhooks.MOST,
        "is_operator": is_operator(request.user),
        "is_demo": settings.DEMO,
        "hook_form": WebhookForm(auto_id=HOOK, initial={"address": sink_address()}),
        "secret": "",
    }


def hook_form(request: PersonRequest) -> WebhookForm:
    return WebhookForm(request.POST, auto_id=HOOK)


def sink_address() -> str:
    """Where a demo's webhooks go; empty outside of one."""
    return f"{settings.WEIR_ADDRESS}{reverse('web:sent_sink')}" if settings.DEMO else ""


BADGES = {
    Kind.EVICTED: ("evicted", "warn"),
    Kind.STARTED: ("running", "ok"),
    Kind.FINISHED: ("finished", "ok"),
    Kind.FAILED: ("error", "err"),
    Kind.SOON: ("clock", "info"),
    Kind.LATE: ("clock", "neutral"),
    Kind.MOVED: ("clock", "warn"),
    Kind.NEEDS_ME: ("mark", "info"),
    Kind.DECIDED: ("finished", "ok"),
    Kind.COMMENT: ("list", "neutral"),
    Kind.ENDS: ("clock", "warn"),
    Kind.BUDGET: ("chart", "warn"),
    Kind.IDLE: ("clock", "warn"),
    Kind.ALERT: ("error", "err"),
    Kind.REPORT: ("chart", "info"),
}
NOTES = {
    Kind.EVICTED: "in quiet hours too",
    Kind.STARTED: "of 2 h and more",
    Kind.FINISHED: "your work, once it is done",
    Kind.FAILED: "your work, with why and what to do",
    Kind.SOON: "15 min before its median",
    Kind.LATE: "past nine of ten cases",
    Kind.MOVED: "what you were told holds no longer",
    Kind.ENDS: "3 d before",
    Kind.BUDGET: "GPU-hours of the month",
    Kind.IDLE: "of your work, once a day",
    Kind.ALERT: "begins and ends",
    Kind.REPORT: "each Monday, of saved views that ask for it",
}
HOURS = range(24)
NO_HOUR = -1


@dataclass(frozen=True)
class KindPreference:
    """How one kind is told."""

    kind: Kind
    note: str
    when: When
    ways: frozenset[Way]


@page_view
def notices(request: PersonRequest) -> HttpResponse:
    """Grouped by the thing: what needs the reader first, then what is new."""
    return page(request)


def page(request: PersonRequest, status: int = 200, **more: Any) -> HttpResponse:
    """The inbox, with the ways by which notices go; ``more`` is what a form brings back."""
    rows = inbox.visible(request.user)
    chosen = request.GET.get("show", "")
    chosen = chosen if chosen in ("new", "needs") else "all"
    listed = rows if chosen == "all" else rows.filter(read_at=None)
    if chosen == "needs":
        listed = listed.filter(kind__in=inbox.NEEDS)
    whens, ways = preferences_of(request.user), ways_of(request.user)
    part = page_of(request, inbox.in_order(listed))
    context = {
        "page": part,
        "groups": inbox.grouped(part),
        "badges": BADGES,
        "chosen": chosen,
        **inbox.counts(request.user),
        "first": next(filter(inbox.needs, part), None),
        "preferences": [
            KindPreference(kind, NOTES.get(kind, ""), whens[kind], ways[kind]) for kind in Kind
        ],
        "whens": When.choices,
        "ways": Way.choices,
        "hours": hours_of(request.user),
        "hour_choices": HOURS,
        **ways_card(request),
        **more,
    }
    return render(request, "web/notices/notices.html", context, status=status)


@act_view
def read(request: PersonRequest) -> HttpResponse:
    """Mark as read: those of one thing, or all."""
    about = request.POST.get("about")
    inbox.mark_read(request.user, about=about or None)
    return redirect("web:notices")


@act_view
def preferences(request: PersonRequest) -> HttpResponse:
    """When to be told of which kind, and the hours of the digest and of quiet."""
    post = request.POST
    quiet = [whole_or(post.get(name, ""), NO_HOUR) for name in ("quiet_from", "quiet_until")]

    def save() -> None:
        inbox.set_preferences(
            request.user,
            preferences={kind: post[kind] for kind in Kind.values if kind in post},
            ways={kind: post.getlist(f"ways_{kind}") for kind in Kind.values if kind in post},
            digest_hour=whole_or(post.get("digest_hour", "8"), 8),
            quiet_from=None if quiet[0] == NO_HOUR else quiet[0],
            quiet_until=None if quiet[1] == NO_HOUR else quiet[1],
        )

    acted(request, save, "Saved. It holds for what comes from now on.")
    return redirect("web:notices")
