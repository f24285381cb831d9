"""Alert rules with their state now, test deliveries, and what fired in 90 days."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Q
from django.http import Http404
from django.shortcuts import get_object_or_404
from rest_framework import serializers

from portal.accounts.models import Scope
from portal.alerts.forms import RuleForm, filled
from portal.alerts.models import Rule, Tell
from portal.alerts.page import RuleRow, rows
from portal.alerts.past import RulePast, Took, past
from portal.alerts.rules import (
    Wish,
    acknowledge_rule,
    as_json,
    delete,
    may_watch,
    save,
    visible,
    wished,
)
from portal.alerts.testing import send_test
from portal.api.bodies import NOT_NAMED, Body, body_of, name_field
from portal.api.calls import call
from portal.api.errors import refuse
from portal.api.nouns import ClusterNoun, verb
from portal.api.scope import ClusterView
from portal.display.format import zone
from portal.teams.access import visible_queues
from portal.teams.people import visible_teams
from scheduling.models import Cluster

MOST_OVER = 366 * 86_400


class AlertSerializer(serializers.Serializer[Any]):
    rule = serializers.IntegerField(help_text="Its number.")
    figure = serializers.CharField()
    queue = serializers.CharField(help_text="Path; empty: of the whole cluster.")
    gpu_class = serializers.CharField()
    over = serializers.FloatField(help_text="Seconds; evictions, GPUs or days by figure.")
    for_s = serializers.IntegerField()
    least_gpus = serializers.IntegerField(help_text="Of one workload, for idle GPUs.")
    tell = serializers.ChoiceField(choices=Tell.choices)
    again_s = serializers.IntegerField(help_text="Seconds within which nobody is told again.")
    escalate_s = serializers.IntegerField(
        help_text="Seconds without acknowledgement after which the second circle is told; 0: never."
    )
    escalate_team = serializers.CharField(help_text="Of the second circle.")
    escalate_people: Any = serializers.ListField(
        child=serializers.CharField(), help_text="Of it. No team and nobody: administrators."
    )
    state = serializers.ChoiceField(choices=["firing", "near", "quiet"])
    now = serializers.CharField(help_text="The figure, in words.")
    since = serializers.DateTimeField(allow_null=True, help_text="Since when it fires.")
    acknowledged_by = serializers.CharField(allow_blank=True)
    escalated_at = serializers.DateTimeField(
        allow_null=True, help_text="When the second circle was told of what fires."
    )
    workload = serializers.CharField(allow_blank=True, help_text="Whom it is about, if you see it.")
    about_queue = serializers.CharField(
        allow_blank=True, help_text="Path of the queue it is about, if you see it."
    )
    about_class = serializers.CharField(
        allow_blank=True, help_text="The GPU class it is about, of a figure that has one."
    )
    fired = serializers.IntegerField(help_text="Times in the last 14 days.")


def _body(name: str, *needs: str) -> Body:
    """Of a rule: ``needs`` are the fields that have to be sent."""
    return body_of(
        RuleForm,
        name,
        needs=needs,
        over=serializers.FloatField(
            min_value=0,
            max_value=MOST_OVER,
            required="over" in needs,
            help_text="See GET; fires above it.",
        ),
        queue=name_field(**NOT_NAMED, max_length=1000, help_text="Path or name; empty: any."),
        gpu_class=name_field(**NOT_NAMED, help_text="Empty: any."),
        escalate_team=name_field(**NOT_NAMED),
    )


class HeardSerializer(serializers.Serializer[Any]):
    user = serializers.CharField()
    circle = serializers.IntegerField(help_text="1 or 2.")
    ways: Any = serializers.ListField(
        child=serializers.CharField(),
        help_text="bell, mail, webhook. Empty: the person has turned alerts off.",
    )
    due_at = serializers.DateTimeField(
        allow_null=True, help_text="From when it shows: later in quiet hours and for a digest."
    )
    stands_in = serializers.BooleanField(
        help_text="In place of an owner or lead whom only a true firing names."
    )


class TookSerializer(serializers.Serializer[Any]):
    count = serializers.IntegerField()
    median_s = serializers.FloatField(allow_null=True)
    p90_s = serializers.FloatField(allow_null=True)


class DaySerializer(serializers.Serializer[Any]):
    day = serializers.DateField()
    begun = serializers.IntegerField(help_text="Firings that began.")
    fired = serializers.BooleanField(help_text="Whether it fired at any time of the day.")


class AlertPastSerializer(serializers.Serializer[Any]):
    rule = serializers.IntegerField()
    fired = serializers.IntegerField()
    unacknowledged = serializers.IntegerField()
    escalated = serializers.IntegerField()
    until_acknowledged = TookSerializer()
    until_resolved = TookSerializer()
    days = DaySerializer(many=True)


class Alerts(ClusterNoun):
    """Rules that you see: all for operators, those of your queues for leads. Firing ones first."""

    at, key, names = "alerts", "<int:pk>", ("alerts", "alert")
    one = "One rule with its state now."
    serializer_class, takes, takes_new = (
        AlertSerializer,
        _body("AlertWrite"),
        _body("NewAlert", "figure", "over"),
    )
    write_scope = Scope.ALL
    queryset = Rule.objects.none()
    pagination_class = None

    def watched(self) -> Cluster:
        """Absent for whoever may watch nothing in the cluster."""
        if not may_watch(self.person, self.cluster):
            raise Http404
        return self.cluster

    def rows(self) -> Any:
        return rows(self.person, self.watched())

    def filter_queryset(self, queryset: Any) -> Any:
        """As many as there are, in their order: they are no rows of one table."""
        return [_as_json(row) for row in queryset]

    def edited_row(self) -> Rule:
        return get_object_or_404(visible(self.person, self.watched()), pk=self.kwargs["pk"])

    def get_object(self) -> Any:
        return self._answer(self.edited_row())

    def _answer(self, rule: Rule) -> Any:
        (row,) = (row for row in self.rows() if row.rule.pk == rule.pk)
        return _as_json(row)

    def make(self) -> Any:
        """Watch for something more."""
        cluster = self.watched()
        return self._answer(save(by=self.person, cluster=cluster, wish=self._wish({})))

    def change(self, row: Rule) -> Any:
        """Change what is sent of a rule. What fires ends with it, unless only the second circle changed."""
        wish = self._wish(wished(row))
        return self._answer(save(by=self.person, cluster=self.cluster, wish=wish, rule=row))

    def remove(self, row: Any) -> None:
        """Watch for it no longer. What fires by it ends."""
        delete(self.edited_row(), by=self.person)

    def _wish(self, before: Mapping[str, Any]) -> Wish:
        """``before`` with what is sent."""
        given = dict(self.given)
        for name, find in self._finders().items():
            if name in given:
                given[name] = find(given[name]) if given[name] else None
        if "escalate_people" in given:
            given["escalate_people"] = tuple(dict.fromkeys(given["escalate_people"]))
        return Wish(**{**before, **filled(given)})

    def _finders(self) -> Mapping[str, Callable[[str], Any]]:
        def queue(text: str) -> Any:
            seen = visible_queues(self.person).filter(cluster=self.cluster)
            found = seen.filter(Q(path=text) | Q(name=text)).first()
            return found or refuse("queue", "You see no such queue.")

        def gpu_class(name: str) -> Any:
            found = self.cluster.gpu_classes.filter(name=name).first()
            return found or refuse("gpu_class", "There is no such GPU class.")

        def team(name: str) -> Any:
            found = visible_teams(self.person).filter(name=name).first()
            return found or refuse("escalate_team", "There is no such team. Name one that you see.")

        return {"queue": queue, "gpu_class": gpu_class, "escalate_team": team}

    @verb("acknowledge", AlertSerializer)
    def acknowledge(self) -> Any:
        """Look after what fires: the second circle is not told of it."""
        rule = self.edited_row()
        acknowledge_rule(rule, by=self.person, now=self.cluster.now())
        return self._answer(rule)

    @verb("test", HeardSerializer, many=True)
    def test(self) -> Any:
        """Send a made-up firing, marked as a test, to all who would hear of a true one: once a minute."""
        return send_test(self.edited_row(), by=self.person)


class AlertPast(ClusterView):
    serializer_class = AlertPastSerializer
    queryset = Rule.objects.none()
    pagination_class = None

    @call(AlertPastSerializer, many=True)
    def get(self) -> Any:
        """What fired in the last 90 days, by rule and day, and how long until acknowledged and over."""
        if not may_watch(self.person, self.cluster):
            raise Http404
        name = self.person.display_time_zone or self.cluster.display_time_zone
        seen = past(self.person, self.cluster, zone(name))
        return [_past(row) for row in seen.rows]


def _as_json(row: RuleRow) -> dict[str, Any]:
    rule, firing = as_json(row.rule), row.firing
    return {
        "rule": row.rule.pk,
        **rule,
        "state": row.verdict.value,
        "now": row.value,
        "since": firing.since if firing else None,
        "acknowledged_by": firing.acknowledged_by if firing else "",
        "escalated_at": firing.escalated_at if firing else None,
        "workload": row.work.name if row.work else "",
        "about_queue": row.queue.path if row.queue else "",
        "about_class": row.gpu_class,
        "fired": row.fired,
    }


def _past(row: RulePast) -> dict[str, Any]:
    return {
        "rule": row.rule.pk,
        "fired": row.fired,
        "unacknowledged": row.unacknowledged,
        "escalated": row.escalated,
        "until_acknowledged": _took(row.acknowledged),
        "until_resolved": _took(row.resolved),
        "days": row.days,
    }


def _took(took: Took) -> dict[str, Any]:
    def known(value: float) -> float | None:
        return None if math.isnan(value) else value

    return {"count": took.count, "median_s": known(took.median_s), "p90_s": known(took.p90_s)}
