"""What stood on an object before the first admission: sizes, and what steers the pods of each role.

Kept as JSON in ``weir.dev/original``, so that every admission starts from what a person wrote and not
from what the last admission made of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from scheduling.cluster.adapters.role import Role
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]


@dataclass(slots=True)
class Original:
    """``roles``: name -> what steered its pods; ``sizes``: name -> how many pods at full size."""

    roles: dict[str, Json] = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    members: int | None = None
    """Members that the last admission or resize let in."""
    gpus: int | None = None
    """Milli-GPU a member that the last admission let in."""
    limit_s: int | None = None
    """Run-time limit that the last admission let in."""
    running: bool = False
    uid: str = ""
    """Of the object that says it."""

    def full(self, counted: Sequence[Role]) -> dict[str, int]:
        """Pods of each role at full size.

        A size other than the one Weir set was edited by a person since, and counts from then on;
        only growth past an admission does not.
        """
        now = sum(role.count for role in counted)
        ours = now == self.members or (self.running and now > (self.members or now))
        sizes = self.sizes if ours else {}
        return {role.name: sizes.get(role.name, role.count) for role in counted}

    def dump(self, members: int) -> str:
        document = {"roles": self.roles, "sizes": self.sizes, "set": members, "gpus": self.gpus}
        limit = {} if self.limit_s is None else {"limit_s": self.limit_s}
        return json.dumps({**document, **limit, "uid": self.uid}, sort_keys=True)


def of(obj: Json) -> Original:
    """What ``obj`` says of itself before its first admission; empty when it was never admitted."""
    notes, uid = obj["metadata"].get("annotations") or {}, obj["metadata"].get("uid", "")
    if labels.ORIGINAL not in notes:
        return Original(uid=uid)
    try:
        document = json.loads(notes[labels.ORIGINAL])
        return Original(
            roles={str(name): _steering(role) for name, role in document["roles"].items()},
            sizes={str(name): int(size) for name, size in document["sizes"].items()},
            members=None if document["set"] is None else int(document["set"]),
            gpus=None if document.get("gpus") is None else int(document["gpus"]),
            limit_s=None if document.get("limit_s") is None else int(document["limit_s"]),
            running=labels.GPU_CLASS in notes,
            uid=uid,
        )
    except (AttributeError, KeyError, ValueError, TypeError):
        return Original(uid=uid)


def disown(obj: Json) -> None:
    """Take from ``obj`` what Weir wrote on another object, of which it was made as a copy, and what was
    written in its place on one that is new: nobody knows its uid before it is there."""
    meta = obj["metadata"]
    notes = meta.get("annotations") or {}
    if not ADMITTED.isdisjoint(notes) and meta["uid"] not in notes.get(labels.ORIGINAL, ""):
        annotations = {
            key: note for key, note in notes.items() if key not in labels.WRITTEN_BY_WEIR
        }
        meta["annotations"] = annotations


ADMITTED = frozenset((*labels.MARK, labels.ORIGINAL, labels.GROUP_UID, labels.MOVES_TO))
LISTS = ("terms", "preferred", "tolerations")


def _steering(role: Json) -> Json:
    """``role`` if it was written here. Raises TypeError: others can write on the object as well."""
    lists = [role[key] for key in LISTS] + [role.get("resources", [])]
    put = role.get("put", {})
    maps = [role["selector"], put, put.get("terms", {}), put.get("selector", {})]
    maps += [amounts for each in role.get("resources", []) for amounts in _amounts(each)]
    sound = all(isinstance(each, dict) for each in maps)
    sound = sound and all(isinstance(each, list) for each in lists)
    if not sound or not all(isinstance(item, dict) for each in lists for item in each):
        raise TypeError("not what an admission keeps")
    return role


def _amounts(resources: Json) -> list[Any]:
    return [resources.get(part, {}) for part in ("limits", "requests")]
