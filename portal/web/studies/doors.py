"""Where the changes of a promoted variant go on: pages that preview an edit before anybody saves it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from portal.accounts.models import User
from portal.teams.access import dividable_queues, is_admin
from portal.web.studies.drafts import DRAFT, draft_of
from portal.web.studies.what_if import WORDS
from scheduling.models import Variant
from scheduling.services.studies.experiments.promoting import Promotion, promotion_of


@dataclass(frozen=True, slots=True)
class Door:
    """``why_not`` where the person may not go through it."""

    words: str
    address: str = ""
    why_not: str = ""


def doors(user: User, variant: Variant) -> list[Door]:
    """In the order in which its changes stand."""
    found = promotion_of(variant)
    return [
        *_policy(user, variant, found),
        *_quotas(user, variant, found),
        *_queues(user, variant, found),
    ]


def left_out(variant: Variant) -> str:
    """Kinds of changes without a door."""
    return ", ".join(WORDS.get(kind, kind) for kind in promotion_of(variant).left_out)


def _policy(user: User, variant: Variant, found: Promotion) -> Iterator[Door]:
    if not found.policy:
        return
    words = f"The policy: {', '.join(f'{name} = {value}' for name, value in found.policy.items())}"
    if not is_admin(user):
        yield Door(words, why_not="An admin changes the policy.")
        return
    typed = {name: "" if value is None else str(value) for name, value in found.policy.items()}
    page = reverse("web:policy", args=[variant.study.cluster.name])
    yield Door(words, f"{page}?{urlencode({DRAFT: '1', 'reason': variant.reason, **typed})}")


def _quotas(user: User, variant: Variant, found: Promotion) -> Iterator[Door]:
    if not found.quotas:
        return
    cluster = variant.study.cluster
    draft = draft_of(user, cluster, list(found.quotas), variant.reason)
    words = f"Quotas of {', '.join(sorted({one['queue'] for one in found.quotas}))}"
    if draft is None:
        yield Door(words, why_not="People who divide all of these queues change them.")
        return
    yield Door(words, draft.address)


def _queues(user: User, variant: Variant, found: Promotion) -> Iterator[Door]:
    cluster = variant.study.cluster
    divided = {one.name for one in dividable_queues(user).filter(cluster=cluster)}
    for one in found.queues:
        fields = {name: value for name, value in one.items() if name not in ("kind", "queue")}
        words = f"Queue {one['queue']}: {', '.join(f'{name} = {value}' for name, value in fields.items())}"
        if one["queue"] not in divided:
            yield Door(words, why_not="People who divide this queue change it.")
            continue
        page = reverse("web:queue_edit", args=[cluster.name, one["queue"]])
        yield Door(words, f"{page}?{urlencode({DRAFT: '1', **fields})}")
