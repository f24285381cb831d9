"""Whither notices go besides the bell: how mail stands, and the person's webhooks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.urls import reverse

from portal.notices import webhooks
from portal.notices.letters import is_mail_set_up, last_of
from portal.notices.models import Letter, Webhook
from portal.teams.access import is_operator
from portal.web.frame.requests import PersonRequest


@dataclass(frozen=True)
class Place:
    """A webhook, and the letter that was tried last."""

    webhook: Webhook
    last: Letter | None

    @property
    def host(self) -> str:
        return urlsplit(self.webhook.address).netloc


def ways_card(request: PersonRequest) -> dict[str, Any]:
    last = last_of(request.user)
    places = [Place(one, last.get(one.pk)) for one in request.user.webhooks.all()]
    return {
        "mail_is_set_up": is_mail_set_up(),
        "mail_last": last.get(None),
        "places": places,
        "most_places": webhooks.MOST,
        "is_operator": is_operator(request.user),
        "is_demo": settings.DEMO,
        "address": sink_address() if settings.DEMO else "",
        "name": "",
        "refusal": None,
        "secret": "",
    }


def sink_address() -> str:
    """Where a demo's webhooks go; empty outside of one."""
    return f"{settings.WEIR_ADDRESS}{reverse('web:sent_sink')}"
