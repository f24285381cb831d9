"""Work that runs without a queue comes into one by a person's decision: a label, and whose it is. Nothing
else of it is written, so that it runs on as it did.

By the account that acts for people, with the rights of ``docker/kubernetes/adopt.yaml``: an admin of the
cluster binds it to them in a namespace, for as long as its work is adopted.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Any

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser

from scheduling.cluster.adapters import ADAPTERS
from scheduling.cluster.connection.client import Client, ConflictError, ForbiddenError
from scheduling.cluster.vocabulary.labels import QUEUE, USER
from scheduling.models import Cluster, ClusterMode
from scheduling.services.clusters.connection import acting_on
from scheduling.services.clusters.outside import Outside, look
from scheduling.services.errors import ServiceError
from scheduling.services.events import announce

Json = dict[str, Any]
OBJECTS = {adapter.kind: adapter for adapter in ADAPTERS}
PODS = "/api/v1/namespaces/{}/pods/{}"
ROLE = "weir-adopter"
ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9.-]+):([a-z0-9.-]+)")


def adopt(
    cluster: Cluster, uids: Collection[str], *, owner: str = "", author: AbstractBaseUser
) -> list[Outside]:
    """Label those of ``uids`` that are outside now with the queue of their namespace, and return them.

    With ``owner`` they are that person's from then on, else whose they say. Raises ServiceError at the first
    that is refused: what was labelled before stays.
    """
    if cluster.mode == ClusterMode.ENFORCE:
        raise ServiceError(
            "enforced",
            f"{cluster.name} is enforced, and labels of work that runs do not change.",
            "Let it end, or observe the cluster first.",
        )
    chosen = [one for one in look(cluster) if one.uid in uids and one.line]
    if not chosen:
        raise ServiceError(
            "nothing", "Nothing of that is outside any more.", "Look at the list again."
        )
    with acting_on(cluster) as client:
        return [one for one in chosen if _bring_in(cluster, client, one, owner, author)]


def _bring_in(
    cluster: Cluster, client: Client, one: Outside, owner: str, author: AbstractBaseUser
) -> bool:
    """Whether it was labelled; one that another took the place of since is not."""
    try:
        client.patch(_path(one), _patch(one, owner))
    except ConflictError:
        return False
    except ForbiddenError as refused:
        raise _without_right(one, refused.message) from refused
    announce(
        "work.adopted",
        actor=author,
        cluster=cluster,
        subject=f"{one.kind} {one.namespace}/{one.name}",
        before={"user": one.user},
        after={"queue": one.queue, "user": owner or one.user, "gpus": one.gpus},
    )
    return True


def _path(one: Outside) -> str:
    if one.kind == "Pod":
        return PODS.format(one.namespace, one.name)
    return OBJECTS[one.kind].path(one.namespace, one.name)


def _patch(one: Outside, owner: str) -> Json:
    meta: Json = {"uid": one.uid, "labels": {QUEUE: one.queue}}
    if owner:
        meta["annotations"] = {USER: owner}
    return {"metadata": meta}


def _without_right(one: Outside, said: str) -> ServiceError:
    found = ACCOUNT.search(said)
    space, name = found.groups() if found else (settings.WEIR_ACCOUNTS_NAMESPACE, "weir-portal")
    return ServiceError(
        "no_right",
        f"The cluster lets Weir label nothing in {one.namespace}: {said}",
        f"Bind it there for as long as you adopt: kubectl -n {one.namespace} create rolebinding {ROLE} "
        f"--clusterrole {ROLE} --serviceaccount {space}:{name}",
    )
