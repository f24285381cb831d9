"""Answers to the questions that pages raise. They hold no data, so they are the same for everybody."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from portal.selectors.reasons import REASONS
from portal.web.frame.requests import page_view
from scheduling.services.words.rules import rules_in_words

WORDS: Final[Sequence[tuple[str, str]]] = (
    ("Team", "People. Every team is bound to one queue."),
    (
        "Persona",
        "A named bundle of what a member may do (submit, edit quotas, approve, operate, read costs) and of "
        "the class of service of what they submit.",
    ),
    (
        "Queue",
        "A node of the quota tree. The lowest hold workloads; those above share what is spare among the "
        "queues below them.",
    ),
    ("GPU class", "GPUs that can stand for each other. Quotas, shares and prices are per class."),
    (
        "Slice",
        "A part of a GPU that was cut by MIG, with a class of its own. Where classes are added up, seven "
        "slices of 1g are one GPU.",
    ),
    (
        "Request",
        "Anything that somebody asks for: quota, a boost that ends, a queue, or access to a GPU class or a "
        "priority. Its lead forwards it, an approver decides.",
    ),
    ("Giver", "The queue from whose nominal quota a request is granted."),
    ("Nominal quota", "The GPUs of a class that a queue is guaranteed."),
    ("Borrowing limit", "The most that a queue may hold above its nominal quota."),
    ("Lending limit", "The most of its idle nominal quota that others may use."),
    ("Kept back", "Idle nominal quota that the lending limit keeps from others."),
    (
        "Over-quota weight",
        "The ratio in which spare GPUs are split. With weight 0 a queue gets nothing above nominal.",
    ),
    ("Fair share", "The GPUs that the division entitles a queue to now."),
    ("Potential share", "The fair share that it would have if it asked for everything."),
    (
        "Workload",
        "All that is admitted as one: a gang of pods between its least and its most members.",
    ),
    (
        "Priority class",
        "How important a workload is inside its queue, whether it may be preempted, and how long it runs "
        "undisturbed first.",
    ),
    ("Demand, allocated, usage", "Asked for; held now; held over time, in GPU-hours."),
    ("Pending", "Waits for its first admission."),
    ("Admitted", "Has its GPUs; its pods are not all running yet."),
    ("Requeued", "Was evicted and waits again. It keeps its submit time."),
    ("Reclaim", "To take lent GPUs back from another queue, for one that is entitled to them."),
    ("Preempt", "To displace lower priority inside one queue."),
    ("Evict", "The act on the victim of either: its pods are told to stop, and it waits again."),
    (
        "Checkpoint",
        "The state a run has saved. The work after the last one is lost in an eviction.",
    ),
    ("Cycle", "One pass of the engine. It reads everything, decides, and writes down why."),
    ("Reason", "Why a decision fell as it did: one code, its figures, and a sentence."),
    ("Fragmentation", "Free GPUs that what waits, or what usually runs, cannot use."),
    (
        "Topology domain",
        "Nodes that are close together: a block, a rack, or what else the cluster calls it; or one node.",
    ),
    ("P50, P90", "Half of all cases are below P50, nine of ten below P90."),
)


TITLES: Final[Mapping[str, tuple[str, str]]] = {
    "share": (
        "How your share is computed",
        "The share that a queue is entitled to now, in four steps.",
    ),
    "waiting": ("Why does it wait?", "The meaning of each reason, and what you can do."),
    "evicted": (
        "Why was I evicted?",
        "The rules by which GPUs are taken back, from whom, and what it costs you.",
    ),
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
    context |= {
        "topics": _topics(topic),
        "words": WORDS,
        "reasons": REASONS,
        "rules": rules_in_words(),
    }
    return render(request, f"web/help/{topic}.html", context)


def _topics(current: str) -> Sequence[tuple[str, str, str, bool]]:
    return [(name, title, lead, name == current) for name, (title, lead) in TITLES.items()]
