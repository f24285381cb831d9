"""Step 4: queues proposed from what namespaces hold, from a YAML file, or by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from difflib import get_close_matches
from typing import Any

import yaml
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from portal.display.format import counted, gpus
from portal.web.frame.requests import PersonRequest, acted
from portal.web.setup.cluster_facts import look
from portal.web.setup.forms import TreeForm
from portal.web.setup.replacement import sentence
from portal.web.studies.ways import sentences
from scheduling.models import Cluster, Sharing
from scheduling.services.clusters.discovery import Discovery, propose
from scheduling.services.errors import ServiceError
from scheduling.services.queues.knobs import set_policy
from scheduling.services.queues.save import grid
from scheduling.services.queues.sharing import name_of
from scheduling.services.queues.shift import given_to, room
from scheduling.services.queues.tree import offering
from scheduling.services.queues.tree_files import (
    QueueSpec,
    StandingError,
    TreeError,
    apply_tree,
    parse,
    tree_of,
)

REASON = "First set-up"


def queues(request: PersonRequest, cluster: Cluster) -> HttpResponse | dict[str, Any]:
    if "sharing" in request.POST:
        return _share(request, cluster)
    seen = look(cluster)
    proposal = propose(seen) if seen else []
    form = TreeForm(request.POST if "file" in request.POST else None)
    faults: list[str] = []
    if "keep" in request.POST:
        proposal, faults = _edited(proposal, request.POST)
        if not faults and _apply(request, cluster, proposal, form):
            return redirect("web:set_up_step", "people")
    elif "file" in request.POST and form.is_valid():
        try:
            tree = parse(form.cleaned_data["tree"], cluster)
        except TreeError as error:
            faults = [str(fault) for fault in error.faults]
        else:
            form.missing = _missing(request, cluster, tree, seen)
            if not form.missing and _apply(request, cluster, tree, form):
                return redirect("web:set_up_step", "people")
    classes = list(cluster.gpu_classes.all())
    return {
        "rows": _rows(proposal, [c.name for c in classes], request.POST),
        "classes": classes,
        "lowest": len(_lowest(proposal)),
        "sums": _sums(proposal, [c.name for c in classes], seen),
        "held_outside": _outside(seen, proposal),
        "form": form,
        "example": form["tree"].value() or as_yaml(proposal, cluster),
        "faults": faults + [str(error) for error in form.non_field_errors()],
        "ways": sentences(of=cluster),
        "there": cluster.queues.exclude(parent=None).order_by("path"),
        "asks_file": "file" in request.POST,
        "faulty": bool(faults or form.errors or form.standing or form.missing),
        "root": cluster.queues.filter(parent=None).first(),
    }


def _share(request: PersonRequest, cluster: Cluster) -> HttpResponse:
    """Say how what is above nominal is given out, and go on with the queues."""
    way = request.POST["sharing"]
    values, author = {"sharing": way}, request.user
    acted(
        request,
        lambda: set_policy(cluster=cluster, values=values, author=author, reason=REASON),
        lambda _: f"{name_of(Sharing(way))} is in force with the next cycle.",
    )
    return redirect("web:set_up_step", "queues")


def _apply(
    request: PersonRequest, cluster: Cluster, tree: Sequence[QueueSpec], form: TreeForm
) -> bool:
    taking, root = request.POST.getlist("taking"), cluster.queues.get(parent=None)
    before = grid(root, cluster.now())
    try:
        made = apply_tree(
            cluster=cluster, queues=tree, author=request.user, reason=REASON, taking=taking
        )
    except StandingError as refused:
        form.standing = [*taking, *refused.names]
        form.sentence, form.offer = refused.sentence, offering(*form.standing)
        return False
    except ServiceError as refused:
        if not form.is_bound:
            messages.error(request, str(refused))
        else:
            form.add_error(None, str(refused))
        return False
    messages.success(
        request, f"{counted(len(made), 'queue')} set. Nothing on {cluster} was changed."
    )
    names = {spec.name for top in tree for spec, _ in top.walk()}
    if replaced := sentence(before, grid(root, cluster.now()), names):
        messages.info(request, replaced)
    for warning in _past_installed(cluster, tree):
        messages.warning(request, warning)
    return True


NEARLY = 0.7
"""How alike two names are, of 1, that may be one name misspelt."""


def _missing(
    request: PersonRequest, cluster: Cluster, tree: Sequence[QueueSpec], seen: Discovery | None
) -> list[tuple[str, str]]:
    """Namespaces of the tree that are not there, and were not said to be meant: enforcing would make them."""
    if seen is None:
        return []
    known = {*seen.names, *cluster.queues.values_list("namespace", flat=True), ""}
    named = {spec.namespace for top in tree for spec, _ in top.walk()}
    if named - known <= set(request.POST.getlist("making")):
        return []
    return [
        (name, next(iter(get_close_matches(name, seen.names, n=1, cutoff=NEARLY)), ""))
        for name in sorted(named - known)
    ]


def _past_installed(cluster: Cluster, tree: Sequence[QueueSpec]) -> list[str]:
    """Of each class of which the queues below the root are guaranteed more than there is."""
    root, now = cluster.queues.get(parent=None), cluster.now()
    top = root.children.first()
    found = []
    for one in cluster.gpu_classes.filter(name__in={n for spec in tree for n in spec.nominal}):
        installed, left = given_to(root, one, now), room(top, one, now) if top else 0
        if left < 0:
            found.append(
                f"Guaranteed are {gpus(installed - left)} {one}, installed {gpus(installed)}: "
                "where all ask at once, each gets its part of what there is."
            )
    return found


def _edited(
    proposal: Sequence[QueueSpec], typed: Mapping[str, str]
) -> tuple[list[QueueSpec], list[str]]:
    """The proposal with the figures as they were typed; a sum follows from what is below it."""
    faults: list[str] = []

    def leaf(spec: QueueSpec) -> QueueSpec:
        nominal = {}
        for name, amount in spec.nominal.items():
            text = typed.get(f"{spec.name}:{name}", str(amount)).strip() or "0"
            nominal[name] = figure(text)
            if nominal[name] < 0:
                faults.append(f"{spec.name}, {name}: write 0 or more, at most 999,999.")
        return replace(spec, nominal=nominal)

    def walk(spec: QueueSpec) -> QueueSpec:
        if not spec.queues:
            return leaf(spec)
        below = [walk(queue) for queue in spec.queues]
        names = {name for queue in below for name in queue.nominal}
        sums = {n: sum((q.nominal.get(n, Decimal(0)) for q in below), Decimal(0)) for n in names}
        return replace(spec, queues=below, nominal=dict(sorted(sums.items())))

    return [walk(spec) for spec in proposal], faults


def figure(text: str) -> Decimal:
    """The number of GPUs that ``text`` says; below zero where it says none."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return Decimal(-1)
    return number if number.is_finite() and 0 <= number < 10**6 else Decimal(-1)


def _rows(
    proposal: Sequence[QueueSpec], classes: Sequence[str], typed: Mapping[str, str]
) -> list[dict[str, Any]]:
    return [
        {
            "spec": spec,
            "depth": depth,
            "cells": [
                (name, typed.get(f"{spec.name}:{name}", f"{spec.nominal.get(name, 0)}"))
                for name in classes
            ],
        }
        for top in proposal
        for spec, depth in top.walk()
    ]


@dataclass(frozen=True, slots=True)
class ClassSum:
    """What the lowest queues are given of the GPUs of one class that are ready."""

    given: Decimal
    ready: int

    @property
    def left(self) -> Decimal:
        return self.ready - self.given


def _sums(
    proposal: Sequence[QueueSpec], classes: Sequence[str], seen: Discovery | None
) -> list[ClassSum]:
    """By class; none where the cluster does not answer."""
    if seen is None:
        return []
    ready = {one.gpu_class.name: one.ready_gpus for one in seen.classes}
    lowest = _lowest(proposal)
    none = Decimal(0)
    return [
        ClassSum(
            sum((max(none, q.nominal.get(name, none)) for q in lowest), none), ready.get(name, 0)
        )
        for name in classes
    ]


def _lowest(proposal: Sequence[QueueSpec]) -> list[QueueSpec]:
    return [spec for top in proposal for spec, _ in top.walk() if not spec.queues]


def _outside(seen: Any, proposal: Sequence[QueueSpec]) -> list[Any]:
    """Namespaces that hold GPUs and get no queue."""
    named = {spec.namespace for top in proposal for spec, _ in top.walk()}
    return [space for space in seen.namespaces if space.name not in named] if seen else []


def as_yaml(proposal: Sequence[QueueSpec], cluster: Cluster) -> str:
    """What is there as the file that says the same; before the first queue the proposal."""
    if cluster.queues.exclude(parent=None).exists():
        return yaml.safe_dump({"queues": tree_of(cluster, cluster.now())}, sort_keys=False)

    def row_of(spec: QueueSpec) -> dict[str, Any]:
        row: dict[str, Any] = {"name": spec.name}
        if spec.namespace:
            row["namespace"] = spec.namespace
        row["nominal"] = {name: int(gpus) for name, gpus in spec.nominal.items()}
        return {**row, "queues": [row_of(q) for q in spec.queues]} if spec.queues else row

    rows = [row_of(spec) for spec in proposal] or [{"name": "research", "nominal": {}}]
    return yaml.safe_dump({"queues": rows}, sort_keys=False)
