"""A list of a card ends after ten rows with where the rest stands, whatever there are many of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from html.parser import HTMLParser
from typing import Any

import pytest
from django.apps import apps
from django.db import IntegrityError, models, transaction

from portal.accounts.models import User
from tests.portal.test_permission_matrix import ADDRESSES

pytestmark = [pytest.mark.django_db, pytest.mark.long]
MANY, MOST = 12, 10
OURS = ("portal.", "scheduling.")
ONE_OF_ITS_KIND = {"Cluster", "ChainHead", "Cursor", "AuditEntry"}
"""Tables that a page shows one row of, or that only grow by their own door."""
NOUNS: tuple[type[models.Model], ...] = tuple(
    kind
    for kind in apps.get_models()
    if kind.__module__.startswith(OURS)
    and kind.__name__ not in ONE_OF_ITS_KIND
    and not kind.__name__.startswith("Historical")
)
OWN = ("user", "owner")
NAMES = (
    "name", "username", "number", "uid", "path", "digest", "group", "source", "key", "begin", "session_key",
)  # fmt: skip
WHOLE = {
    "web:people": "the list itself, which pages",
    "web:teams": "the list itself, which pages",
    "web:workloads": "the list itself, which pages",
    "web:my_workloads": "the list itself, which pages",
    "web:audit": "the list itself, which pages",
    "web:requests": "the list itself, which pages",
    "web:service_accounts": "the list itself: programs of one team",
    "web:cluster": "guardrails out of step, which page",
    "web:quota_changes": "the list itself, which pages",
    "web:request": "the life of one request",
    "web:cycle": "what one cycle decided, which pages",
    "web:group_rules": "the list itself: rules of one directory",
    "web:dead_letters": "the list itself, which pages",
    "web:nodes": "a map of every node",
    "web:capacity": "GPU classes of the cluster, a line each",
    "web:person": "capabilities, of which there are so many",
    "web:notices": "kinds of notices, of which there are so many",
}
"""Addresses of what is no list of many on a page about something else; a report is its table."""


def multiply(kind: type[models.Model], admin: User) -> None:
    """More of what there is one of; what is somebody's is also the admin's."""
    row = kind._default_manager.order_by("pk").last()
    if row is None:
        return
    for i in range(MANY):
        with suppress(IntegrityError), transaction.atomic():
            _unlike(row, i, admin).save(force_insert=True)


def _unlike(row: models.Model, i: int, admin: User) -> models.Model:
    made = copy(row)
    made._state = copy(row._state)
    made.pk, made._state.adding = None, True
    for field in row._meta.concrete_fields:
        value = getattr(made, field.attname)
        if field.name in OWN and field.related_model is User and not field.unique:
            setattr(made, field.attname, admin.pk)
        elif field.is_relation and field.unique:
            used = type(row)._default_manager.values(field.attname)
            setattr(made, field.name, field.related_model.objects.exclude(pk__in=used).first())
        elif field.name == "is_default":
            setattr(made, field.attname, False)
        elif (field.unique or field.name in NAMES) and isinstance(value, int | str) and value:
            more = f"{value}-{i}" if isinstance(value, str) else value + 1000 + i
            setattr(made, field.attname, more)
    return made


class Lists(HTMLParser):
    """Of a page the lists in cards that are longer than ``MOST``, and lead nowhere else."""

    PARTS = ("section", "details", "tbody", "ul", "ol")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, str, list[int]]] = []
        self.long: list[tuple[str, int]] = []
        self.leads_on = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in self.PARTS:
            self.open.append((tag, given.get("aria-labelledby") or given.get("id") or "", [0]))
            if tag == "section":
                self.leads_on = False
        elif tag in ("tr", "li") and self.open and "hidden" not in given:
            self.open[-1][2][0] += 1

    def handle_data(self, data: str) -> None:
        self.leads_on |= data.strip().split(" ")[0] in ("All", "Next", "Previous")

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.PARTS or not self.open:
            return
        kind, _, (rows,) = self.open.pop()
        around = [one[:2] for one in self.open]
        sections = [label for part, label in around if part == "section"]
        is_folded = any(part == "details" for part, _ in around)
        ends = self.leads_on or is_folded or rows <= MOST
        if kind in ("tbody", "ul", "ol") and sections and not ends:
            self.long.append((sections[-1], rows))


@pytest.fixture
def many(world: Any) -> Any:
    admin = User.objects.get(username="admin")
    for kind in NOUNS:
        multiply(kind, admin)
    return world


def pages(world: Any) -> Iterator[tuple[str, str]]:
    """Address and text of each page that the admin may read."""
    client = world.client("admin")
    for name in ADDRESSES:
        if name.startswith("api:"):
            continue
        answer = client.get(world.url(name))
        if answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html"):
            yield name, answer.content.decode()


def test_list_of_a_card_ends_after_ten_rows_with_where_the_rest_stands(many):
    walked, long = 0, []
    for name, text in pages(many):
        walked += 1
        found = Lists()
        found.feed(text)
        if name not in WHOLE and not name.startswith("reports:"):
            long += [f"{name}: {rows} rows of {card}" for card, rows in found.long]
    assert walked > 60
    assert not long, "\n".join(long)
