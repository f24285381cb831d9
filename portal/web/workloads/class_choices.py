"""GPU classes in order of preference, as forms ask for them: one field for each place in the order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms

from portal.display.format import class_number
from scheduling.models import Cluster, GpuClass

CHOICE = "class_"
"""Begins the name of each such field; the place, from 1, ends it."""


class ClassChoices(forms.Form):
    """Places ``class_1``, ``class_2`` … as many as the cluster has classes; ``known`` is class by name."""

    known: dict[str, GpuClass]

    def offer_classes(self, cluster: Cluster, *, first_required: bool) -> None:
        self.known = {one.name: one for one in cluster.gpu_classes.all()}
        choices = [("", "–"), *((name, name) for name in self.known)]
        for place in range(1, len(self.known) + 1):
            self.fields[f"{CHOICE}{place}"] = forms.ChoiceField(
                required=first_required and place == 1,
                choices=choices,
                label=f"{_nth(place)} choice",
            )

    @property
    def choices_of_class(self) -> list[forms.BoundField]:
        return [self[name] for name in self.fields if name.startswith(CHOICE)]

    @property
    def colours_of_class(self) -> dict[str, int]:
        """By the name of each class, the number of the colour that it has on every page."""
        return {name: class_number(one.position) for name, one in self.known.items()}

    @property
    def class_faults(self) -> list[str]:
        """What is wrong with any place: they are one list to whoever reads it."""
        return [str(fault) for field in self.choices_of_class for fault in field.errors]

    def chosen_classes(self, data: Mapping[str, Any]) -> list[str]:
        """In order of preference, what is chosen twice too."""
        return [data[name] for name in self.fields if name.startswith(CHOICE) and data.get(name)]


def _nth(n: int) -> str:
    return {1: "1st", 2: "2nd", 3: "3rd"}.get(n, f"{n}th")
