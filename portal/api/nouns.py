"""A noun of the API, declared once: its list and its one row, and what is done to them.

A class says where it stands (``at``, ``key``), who sees which rows, and by ``make``, ``change`` and
``remove`` what POST, PUT and DELETE do; an address takes no method that nothing is declared for. The API's
document says what their docstrings say, that of the class of the list, and ``one`` of a row.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from inspect import cleandoc
from typing import Any, ClassVar

from django.http import Http404
from django.urls import URLPattern, path, reverse
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import ViewSetMixin

from portal.api.calls import Handler, Kind, call
from portal.api.scope import ClusterView, PersonView
from portal.teams.access import is_admin

ACTS: Mapping[str, str] = {"create": "make", "update": "change", "destroy": "remove"}
"""Action of the framework -> what a noun declares it by."""
READS = ("list", "retrieve")
NO_NAME = re.compile(r"\W")


def verb(
    at: str, gives: Kind | None = None, *, by: str = "post", **more: Any
) -> Callable[[Handler], Handler]:
    """A call (see ``calls.call``) on one row of a noun: ``by`` that method, a step below its address."""

    def declare(handler: Handler) -> Handler:
        act: Any = call(gives, **more)(handler)
        act.at, act.by = at, by
        return act

    return declare


class Noun(ViewSetMixin, ListModelMixin, RetrieveModelMixin, PersonView):
    at: ClassVar[str]
    key: ClassVar[str] = ""
    """The step of the address that names one of them."""
    names: ClassVar[tuple[str, str]]
    """Of the addresses of the list and of one."""
    one: ClassVar[str] = ""
    """What GET of one tells; without it the list tells all."""
    is_listed: ClassVar[bool] = True
    takes_new: ClassVar[Kind | None] = None
    """What reads the body of POST, where that is not ``takes``."""
    shows_new: ClassVar[Kind | None] = None
    """What writes the answer to POST, where that tells more than any later one."""
    shown_once: ClassVar[str] = ""
    """The field of that answer for the secret which ``make`` gives beside the row."""
    is_located: ClassVar[bool] = False
    """Whether the answer to POST says where the row is from now on."""
    is_for_admins: ClassVar[bool] = False
    """Whether its writes are absent for whoever does not administer."""

    def make(self) -> Any:
        """The new row, with its secret where one is ``shown_once``."""
        raise NotImplementedError

    def edited_row(self) -> Any:
        """What PUT changes."""
        return self.get_object()

    def change(self, row: Any) -> Any:
        """The row as it is from now on; None where nothing is left of it."""
        raise NotImplementedError

    def remove(self, row: Any) -> None:
        raise NotImplementedError

    def create(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self._check()
        self.takes = self.reads()
        row = self._with_secret(*self.make()) if self.shown_once else self.make()
        headers = {"Location": self.address(row)} if self.is_located else None
        return Response(self.get_serializer(row).data, HTTPStatus.CREATED, headers=headers)

    def update(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self._check()
        row = self.change(self.edited_row())
        if row is None:
            return Response(status=HTTPStatus.NO_CONTENT)
        return Response(self.get_serializer(row).data)

    def destroy(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        self._check()
        self.remove(self.get_object())
        return Response(status=HTTPStatus.NO_CONTENT)

    def _check(self) -> None:
        if self.is_for_admins and not is_admin(self.person):
            raise Http404

    def _with_secret(self, row: Any, secret: str) -> Any:
        setattr(row, self.shown_once, secret)
        return row

    def address(self, row: Any) -> str:
        steps = {**self.kwargs, self.lookup_url_kwarg or self.lookup_field: row.pk}
        return reverse(f"api:{self.names[1]}", kwargs=steps)

    def reads(self) -> Kind | None:
        """What reads the body of this action."""
        return self.takes_new or self.takes if self.action == "create" else self.takes

    def get_serializer_class(self) -> Any:
        is_new = self.action == "create" and self.shows_new is not None
        return self.shows_new if is_new else self.serializer_class

    def says(self) -> str:
        """What the API's document says of this action."""
        action, about = str(self.action), type(self).__doc__
        act = getattr(type(self), ACTS.get(action, action if action not in READS else ""), None)
        text = about if action in ("list", "create") else self.one
        return cleandoc((act and act.__doc__) or text or "")

    @classmethod
    def addresses(cls) -> list[URLPattern]:
        """Those of its list, of one and of its verbs, as far as they take any method."""
        taken = [action for action, act in ACTS.items() if cls._declares(act)]
        many = {"get": "list"} if cls.is_listed else {}
        many |= {"post": "create"} if "create" in taken else {}
        one = {"get": "retrieve"} if cls.one else {}
        one |= {"put": "update"} if "update" in taken else {}
        one |= {"delete": "destroy"} if "destroy" in taken else {}
        verbs = [
            (f"{cls.at}/{cls.key}/{act.at}", {act.by: name}, f"{cls.names[1]}_{act.at}")
            for name in dir(cls)
            if hasattr(act := getattr(cls, name), "at")
        ]
        listed, shown = cls.names
        rows: list[tuple[str, dict[str, Any], str]] = [
            (cls.at, many, listed),
            (f"{cls.at}/{cls.key}", one, shown),
            *verbs,
        ]
        return [
            path(at, cls.as_view(actions), name=NO_NAME.sub("_", name))
            for at, actions, name in rows
            if actions
        ]

    @classmethod
    def _declares(cls, act: str) -> bool:
        return getattr(cls, act) is not getattr(Noun, act)


class ClusterNoun(Noun, ClusterView):
    """One below ``clusters/{cluster}/``, of which ``at`` is the rest."""

    @classmethod
    def addresses(cls) -> list[URLPattern]:
        return [
            path(f"clusters/<slug:cluster>/{entry.pattern}", entry.callback, name=entry.name)
            for entry in super().addresses()
        ]
