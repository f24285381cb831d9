"""What every view of a cluster starts with: the cluster itself, if the person may see it."""

from __future__ import annotations

from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404
from django.utils.functional import cached_property
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer, ModelSerializer, SlugRelatedField

from portal.accounts.models import User
from portal.api.guards import guarded
from portal.teams.access import visible_clusters
from portal.teams.rights import keep_rights
from scheduling.models import Cluster


def person(request: Request) -> User:
    """The signed-in person; every view of the API asks for one."""
    assert isinstance(request.user, User)  # noqa: S101 - IsAuthenticated guards every view
    return request.user


Sent = TypeVar("Sent", bound=BaseSerializer[Any])
Written = TypeVar("Written", bound=Model)


def sent(kind: type[Sent], request: Request) -> Sent:
    """The body of the call, read and right. Raises ValidationError."""
    body = kind(data=request.data)
    body.is_valid(raise_exception=True)
    return body


def named(by: str = "name", **more: Any) -> Any:
    """Of a serializer: what the row refers to, by its name. It is only read."""
    return SlugRelatedField(slug_field=by, read_only=True, **more)


class RowSerializer(ModelSerializer[Written]):
    # The API's document would say a docstring of this class of every row.

    def get_extra_kwargs(self) -> dict[str, Any]:
        """Rows of ``Meta.model`` are written, and none is read."""
        return {name: {"read_only": True} for name in self.Meta.fields}


class PersonView(GenericAPIView[Any]):
    """A view that answers to one person."""

    takes: type[BaseSerializer[Any]] | None = None
    """What reads the body of this call; see ``calls.call``."""

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        keep_rights(request.user)
        method = request.method or ""
        if method.lower() in self.http_method_names and hasattr(self, method.lower()):
            # The framework asks the view for its handler after this.
            handler = getattr(self, method.lower())
            setattr(self, method.lower(), guarded(self, method, handler))

    def get_queryset(self) -> QuerySet[Any]:
        if not self.is_schema:
            return self.rows()
        meta = getattr(self.get_serializer_class(), "Meta", None)
        model = getattr(meta, "model", None)
        return super().get_queryset().none() if model is None else model._default_manager.none()

    def rows(self) -> QuerySet[Any]:
        """Those that the person may see. Not asked while the schema is drawn."""
        return super().get_queryset()

    @property
    def person(self) -> User:
        return person(self.request)

    @cached_property
    def sent(self) -> Any:
        """The body of the call, read and right. Raises ValidationError."""
        assert self.takes is not None  # noqa: S101 - asked for by calls that take something
        return sent(self.takes, self.request)

    @property
    def given(self) -> Any:
        """The values of the body, by field."""
        return self.sent.validated_data

    @property
    def is_schema(self) -> bool:
        """True while the schema is drawn: there is no person and no address then."""
        return getattr(self, "swagger_fake_view", False)


class ClusterView(PersonView):
    """A view below ``clusters/{cluster}/``."""

    @cached_property
    def cluster(self) -> Cluster:
        return get_object_or_404(visible_clusters(self.person), name=self.kwargs["cluster"])
