"""What a person sends of a queue: by page, and of a new one by API."""

from __future__ import annotations

import dataclasses
from typing import Any

from django import forms
from django.db.models import QuerySet

from portal.boundary.reading import one_line
from scheduling.models import MILLI, PodSecurity, Queue, Sharing, Stop
from scheduling.services.errors import ServiceError, name_refused
from scheduling.services.queues.sharing import name_of
from scheduling.services.queues.tree import MOST_PRIORITY, NAME_TAKEN, Bounds, Limits

STOPS = [
    (Stop.NONE.value, "No: work is admitted"),
    (Stop.HOLD.value, "Hold: nothing new is admitted, what runs goes on"),
    (Stop.DRAIN.value, "Drain: nothing new is admitted, what runs is evicted"),
]
SHARINGS = [("", "As the queue above"), *((way.value, name_of(way)) for way in Sharing)]
SECURITY = [
    ("", "As the queue above says; baseline where none does"),
    (PodSecurity.PRIVILEGED.value, "Privileged: pods may do all that the node can"),
    (PodSecurity.BASELINE.value, "Baseline: nothing of the node is given away"),
    (PodSecurity.RESTRICTED.value, "Restricted: pods give up every privilege"),
]
OPERATORS_ONLY = ("access_group", "pod_security", "max_cpus", "max_memory_gib", "max_pods")
MIB_PER_GIB = 1024

LIMIT_ERRORS = {
    "invalid": "Write a number, or leave it empty for no limit.",
    "min_value": "Write 0 or more, or leave it empty for no limit.",
}
MOST_AT_ONCE = 1_000_000


class NewQueueForm(forms.Form):
    # The API's document would say a docstring of this class of the body.

    name = forms.CharField(
        max_length=63,
        validators=[one_line],
        error_messages={"required": "A queue needs a name. Workloads carry it."},
    )
    parent: forms.ModelChoiceField[Queue] = forms.ModelChoiceField(
        Queue.objects.none(),
        to_field_name="name",
        empty_label=None,
        error_messages={
            "required": "A queue hangs below another. Choose one.",
            "invalid_choice": "Choose one of the listed queues.",
        },
    )
    priority = forms.IntegerField(
        min_value=-MOST_PRIORITY,
        max_value=MOST_PRIORITY,
        error_messages={
            "required": "Write a whole number, 0 for the common tier.",
            "invalid": "Write a whole number, 0 for the common tier.",
        },
    )
    stop = forms.ChoiceField(choices=STOPS)
    namespace = forms.CharField(max_length=63, required=False, validators=[one_line])
    taking = forms.CharField(
        max_length=63,
        required=False,
        validators=[one_line],
        help_text="The namespace once more, by an admin who was shown in a refusal what stands in it.",
    )


class QueueForm(NewQueueForm):
    """With how it shares, and its limits. The service checks the rest."""

    stands = False
    """Whether its namespace was refused for what runs there, which an admin may say they looked at."""

    sharing = forms.ChoiceField(choices=SHARINGS, required=False)
    access_group = forms.CharField(max_length=200, required=False)
    max_running = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_running_per_user = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_gpus_per_user = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=MOST_AT_ONCE,
        decimal_places=3,
        error_messages={**LIMIT_ERRORS, "max_decimal_places": "Write at most three decimals."},
    )

    pod_security = forms.ChoiceField(choices=SECURITY, required=False)
    max_cpus = forms.DecimalField(
        required=False,
        min_value=0,
        max_value=MOST_AT_ONCE,
        decimal_places=3,
        error_messages={**LIMIT_ERRORS, "max_decimal_places": "Write at most three decimals."},
    )
    max_memory_gib = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )
    max_pods = forms.IntegerField(
        required=False, min_value=0, max_value=MOST_AT_ONCE, error_messages=LIMIT_ERRORS
    )

    def __init__(self, *args: Any, parents: QuerySet[Queue], operator: bool, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.operator = operator
        self.fields["parent"].queryset = parents  # type: ignore[attr-defined]
        for name in () if operator else OPERATORS_ONLY:
            del self.fields[name]

    def refuse(self, error: ServiceError, seen: QuerySet[Queue]) -> None:
        """Put a service's refusal at the field it names; of queues that are not ``seen`` it tells nothing."""
        if error.code == NAME_TAKEN and not seen.filter(name=self.cleaned_data["name"]).exists():
            error = name_refused()
        self.stands = error.code == "namespace_stands"
        known = error.field if error.field in self.fields else None
        self.add_error(known, str(error))

    def values(self) -> dict[str, Any]:
        data = dict(self.cleaned_data)
        running, each, gpus = (data.pop(field.name) for field in dataclasses.fields(Limits))
        most = None if gpus is None else int(gpus * MILLI)
        bounds = {"bounds": _bounds(data)} if self.operator else {}
        return {**data, "stop": Stop(data["stop"]), "limits": Limits(running, each, most), **bounds}


def _bounds(data: dict[str, Any]) -> Bounds:
    """What an operator typed of a queue's namespace, taken out of ``told``."""
    level, cpus, gib, pods = (data.pop(name) for name in OPERATORS_ONLY[1:])
    return Bounds(
        pod_security=level,
        max_cpus=None if cpus is None else int(cpus * MILLI),
        max_memory_mib=None if gib is None else gib * MIB_PER_GIB,
        max_pods=pods,
    )
