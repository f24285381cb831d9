"""Every address × who asks, with data present that could leak.

Each row says who may read and who may write. Whoever may not gets the same answer as for something
that does not exist, and no body they receive holds what is sealed from them. An address without a row
fails the first test.

    fra1 ── research ── language ── pretraining, vermilion-queue … ── products … ;  ams1 ── elsewhere
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from portal.accounts.models import ApiToken, Persona, Session, User
from portal.alerts.models import Rule
from portal.approvals.models import ApprovalRule, Comment, LoanOffer, QuotaLoan, QuotaRequest, Step
from portal.demo.organisation import H100
from portal.notices.models import Arrival, Letter, Notice, Webhook
from portal.reports.kinds import KINDS
from portal.reports.models import Budget, SavedView
from portal.teams.models import GroupRule, Membership, ServiceAccount, SubmitTemplate, Team
from scheduling.models import (
    MILLI,
    CapacityStudy,
    Cluster,
    Consolidation,
    Decision,
    Eviction,
    ForecastOutcome,
    GpuClass,
    IdleSpell,
    Queue,
    Quota,
    QuotaChange,
    StartForecast,
    Transition,
    WhatIf,
    WhatIfKind,
    Workload,
)
from scheduling.services.events import announce, deliver_due
from tests.cycles import record, snapshot_of
from tests.factories import (
    NOW,
    example_cluster,
    make_cluster,
    make_member,
    make_user,
    make_workload,
)
from tests.lab import empty_experiment

pytestmark = [pytest.mark.django_db, pytest.mark.long]

SEALED = b"vermilion"
"""Stands in everything of pretraining's that people outside research must not read."""
HIDDEN = b"vermilion-queue"
"""Stands beside pretraining: its members must not read it either."""

PERSONAS = {
    "researcher": ("pretraining", "researcher"),
    "scientist": ("pretraining", "data scientist"),
    "lead": ("research", "team lead"),
    "approver": ("fra1", "approver"),
    "operator": ("fra1", "operator"),
    "finance": ("fra1", "finance"),
    "admin": ("fra1", "admin"),
}
"""Who asks -> the queue of their team and the shipped persona they have there, beside the outsider of another
cluster and the neighbour of another department."""
ANYBODY = frozenset({"outsider", "neighbour", *PERSONAS})
HERE = ANYBODY - {"outsider"}
TEAM = HERE - {"neighbour"}
LEADS = frozenset({"lead", "admin"})
ACTORS = LEADS | {"operator"}
OPERATORS = frozenset({"operator", "admin"})
ADMINS = frozenset({"admin"})
LENDING = ACTORS | {"neighbour"}
"""Who has a page of loans: whoever leads a queue, and operators."""
SUBMITTERS = frozenset({"neighbour", "researcher", "scientist", "lead", "admin"})
AUDITORS = LEADS | {"approver", "operator", "finance"}
ALL_AUDITORS = AUDITORS - {"lead"}
"""They see all work, too."""
NOBODY: frozenset[str] = frozenset()
SIGNED_OUT = frozenset({"anonymous", "nobody"})


@dataclass(frozen=True)
class Row:
    """``read`` by GET; ``write`` by ``by`` (None: the address takes none). ``args`` name what is there."""

    read: frozenset[str] | None
    write: frozenset[str] | None = None
    args: dict[str, object] = field(default_factory=dict)
    query: str = ""
    by: str = "POST"


QUEUE = {"queue": "pretraining"}
DIVIDED = {"queue": "language"}
WORK = {"uid": "uid-sealed"}
TOKEN, CHANGE, TEMPLATE = {"pk": "token"}, {"pk": "change"}, {"pk": "template"}
RULE, PASSKEY = {"pk": "rule"}, {"pk": "passkey"}
TEAM_OF = {"team": "pretraining"}
PROGRAM = {**TEAM_OF, "account": "svc-vermilion"}
PROGRAM_TOKEN = {**PROGRAM, "pk": "program_token"}
WHAT_IF = {"pk": "what_if"}
EXPERIMENT = {"pk": "experiment"}
REPLAY = {"pk": "replay"}
STUDY = {"pk": "study"}
LOAN, OFFER = {"pk": "loan"}, {"pk": "offer"}
ALERT = {"pk": "alert"}
CONSOLIDATION = {"pk": "consolidation"}
VIEW = {"pk": "view"}

REQUEST = {"pk": "request"}
WEBHOOK, LETTER = {"pk": "webhook"}, {"pk": "letter"}
ASKERS = frozenset({"neighbour", "researcher", "scientist", "lead", "admin"})
DECIDERS = frozenset({"lead", "approver", "admin"})

REPORTS = tuple(KINDS)

ROWS = {
    "accounts:sign_out": Row(None, ANYBODY),
    "accounts:account": Row(ANYBODY),
    "accounts:issue_token": Row(None, ANYBODY),
    "accounts:revoke_token": Row(None, NOBODY, TOKEN),
    "accounts:set_time_zone": Row(None, ANYBODY),
    "accounts:password": Row(ANYBODY, ANYBODY),
    "accounts:end_sessions": Row(None, ANYBODY),
    "accounts:end_session": Row(None, NOBODY, {"key": "vermilion-session"}),
    "mfa_index": Row(ANYBODY),
    "mfa_list_webauthn": Row(ANYBODY),
    "mfa_activate_totp": Row(ANYBODY, ANYBODY),
    "mfa_deactivate_totp": Row(NOBODY, NOBODY),
    "mfa_view_recovery_codes": Row(NOBODY),
    "mfa_generate_recovery_codes": Row(ANYBODY, ANYBODY),
    "mfa_add_webauthn": Row(ANYBODY, ANYBODY),
    "mfa_remove_webauthn": Row(NOBODY, NOBODY, PASSKEY),
    "account_reauthenticate": Row(ANYBODY, ANYBODY),
    "mfa_reauthenticate": Row(ANYBODY, ANYBODY),
    "mfa_reauthenticate_webauthn": Row(ANYBODY, ANYBODY),
    "web:group_rules": Row(ADMINS, ADMINS),
    "web:group_rule_delete": Row(None, ADMINS, RULE),
    "web:service_accounts": Row(LEADS, LEADS, TEAM_OF),
    "web:service_account_delete": Row(None, LEADS, PROGRAM),
    "web:service_token_issue": Row(None, LEADS, PROGRAM),
    "web:service_token_revoke": Row(None, LEADS, PROGRAM_TOKEN),
    "web:home": Row(ANYBODY),
    "web:overview": Row(HERE),
    "web:queues": Row(HERE),
    "web:queue": Row(TEAM, args=QUEUE),
    "web:live": Row(HERE),
    "web:search": Row(HERE, query="?q=vermil"),
    "web:my_work": Row(HERE),
    "web:own_workloads": Row(HERE),
    "web:help": Row(ANYBODY),
    "web:help_page": Row(ANYBODY, args={"topic": "share"}),
    "web:workloads": Row(HERE, query="?q=vermil"),
    "web:submit": Row(SUBMITTERS, SUBMITTERS),
    "web:submit_preview": Row(None, SUBMITTERS),
    "web:template_keep": Row(None, SUBMITTERS),
    "web:template_drop": Row(None, NOBODY, TEMPLATE),
    "web:workload": Row(TEAM, args=WORK),
    "web:sooner": Row(TEAM, args=WORK),
    "web:cancel": Row(ACTORS, ACTORS, WORK),
    "web:hold": Row(None, ACTORS, WORK),
    "web:release": Row(None, ACTORS, WORK),
    "web:workloads_act": Row(None, HERE),
    "web:quotas_index": Row(HERE),
    "web:quotas": Row(TEAM, LEADS, DIVIDED),
    "web:quota_changes": Row(TEAM, args=DIVIDED),
    "web:quota_preview": Row(None, LEADS, DIVIDED),
    "web:quota_replay": Row(None, LEADS, DIVIDED),
    "web:quota_replay_state": Row(frozenset({"lead"}), args={**DIVIDED, **REPLAY}),
    "web:quota_replay_cancel": Row(None, frozenset({"lead"}), {**DIVIDED, **REPLAY}),
    "web:quota_change": Row(TEAM, args={**DIVIDED, **CHANGE}),
    "web:quota_revert": Row(LEADS, LEADS, {**DIVIDED, **CHANGE}),
    "web:queue_add": Row(LEADS, LEADS, DIVIDED),
    "web:queue_edit": Row(LEADS, LEADS, QUEUE),
    "web:requests": Row(HERE),
    "web:request_new": Row(ASKERS, ASKERS),
    "web:request_preview": Row(ASKERS),
    "web:request_rules": Row(LEADS, LEADS),
    "web:request": Row(TEAM, args=REQUEST),
    "web:request_edit": Row(NOBODY, NOBODY, REQUEST),
    **{f"web:request_{verb}": Row(None, NOBODY, REQUEST) for verb in ("submit", "withdraw")},
    **{
        f"web:request_{verb}": Row(None, DECIDERS, REQUEST)
        for verb in ("forward", "approve", "ask_changes", "reject", "revoke")
    },
    "web:request_renew": Row(None, ASKERS - {"neighbour"}, REQUEST),
    "web:request_comment": Row(None, TEAM, REQUEST),
    "web:nodes": Row(HERE),
    "web:node": Row(HERE, args={"node": "h100-01"}),
    "web:consolidation": Row(OPERATORS, OPERATORS),
    "web:consolidation_cancel": Row(None, OPERATORS, CONSOLIDATION),
    "web:cluster": Row(OPERATORS),
    "web:cycle": Row(HERE, args={"number": 48213}),
    "web:cycle_candidates": Row(HERE, args={"number": 48213}),
    "web:cycle_snapshot": Row(ALL_AUDITORS, args={"number": 48213}),
    "web:cluster_mode": Row(OPERATORS, OPERATORS, {"mode": "paused"}),
    "web:queue_future": Row(TEAM, args=QUEUE),
    "web:loans": Row(LENDING),
    "web:loan_new": Row(LENDING - {"operator"}, LENDING - {"operator"}),
    "web:loan": Row(ACTORS, args=LOAN),
    "web:loan_act": Row(None, LEADS, {**LOAN, "verb": "decline"}),
    "web:loan_offer_withdraw": Row(None, LEADS, OFFER),
    "web:experiments": Row(OPERATORS),
    "web:experiment_new": Row(OPERATORS, OPERATORS),
    "web:experiment": Row(OPERATORS, args=EXPERIMENT),
    "web:experiment_csv": Row(OPERATORS, args=EXPERIMENT),
    "web:experiment_cancel": Row(None, OPERATORS, EXPERIMENT),
    "web:experiment_promote": Row(None, OPERATORS, EXPERIMENT),
    "web:what_ifs": Row(OPERATORS, OPERATORS),
    "web:what_if": Row(OPERATORS, args=WHAT_IF),
    "web:what_if_cancel": Row(None, OPERATORS, WHAT_IF),
    "web:what_if_keep": Row(None, OPERATORS, WHAT_IF),
    "web:capacity": Row(OPERATORS, OPERATORS),
    "web:capacity_cancel": Row(None, OPERATORS, STUDY),
    "web:capacity_slo": Row(None, ADMINS),
    "web:start_forecasts": Row(HERE),
    "web:adapting": Row(OPERATORS),
    "web:adapting_switch": Row(None, ADMINS),
    "web:adapting_pin": Row(None, ADMINS),
    "web:queue_delete": Row(None, LEADS, QUEUE),
    "web:people": Row(ANYBODY, LEADS),
    "web:person": Row(TEAM, args={"username": "sealed"}),
    "web:person_active": Row(None, ADMINS, {"username": "sealed"}),
    "web:teams": Row(ANYBODY, ADMINS),
    "web:team": Row(TEAM, LEADS, {"team": "pretraining"}),
    "web:team_delete": Row(None, ADMINS, {"team": "pretraining"}),
    "web:member_remove": Row(None, LEADS, {"team": "pretraining", "username": "sealed"}),
    "web:personas": Row(ANYBODY),
    "web:persona_add": Row(ADMINS, ADMINS),
    "web:persona": Row(ADMINS, ADMINS, {"persona": "researcher"}),
    "web:persona_delete": Row(None, ADMINS, {"persona": "researcher"}),
    "web:set_up": Row(ADMINS),
    "web:set_up_step": Row(ADMINS, ADMINS, {"step": "connect"}),
    "web:policy": Row(OPERATORS, ADMINS),
    "web:notices": Row(ANYBODY),
    "web:notices_read": Row(None, ANYBODY),
    "web:notice_preferences": Row(None, ANYBODY),
    "web:mail_test": Row(None, ANYBODY),
    "web:webhook_add": Row(None, ANYBODY),
    "web:webhook_remove": Row(None, NOBODY, WEBHOOK),
    "web:webhook_test": Row(None, NOBODY, WEBHOOK),
    "web:dead_letters": Row(OPERATORS),
    "web:dead_letter_again": Row(None, OPERATORS, LETTER),
    "web:dead_letter_drop": Row(None, OPERATORS, LETTER),
    "web:sent": Row(NOBODY),
    "web:audit": Row(AUDITORS),
    "web:audit_csv": Row(AUDITORS),
    "web:metrics": Row(OPERATORS, ADMINS),
    "web:alerts": Row(LENDING, LENDING),
    "web:alert_preview": Row(LENDING),
    "web:alert_rule": Row(ACTORS, ACTORS, ALERT),
    "web:alert_acknowledge": Row(None, ACTORS, ALERT),
    "web:alert_delete": Row(None, ACTORS, ALERT),
    "web:alert_test": Row(None, ACTORS, ALERT),
    "web:alert_past": Row(LENDING),
    "web:alert_past_csv": Row(LENDING),
    "api:alerts": Row(LENDING),
    "api:alert_past": Row(LENDING),
    "api:alert": Row(ACTORS, ACTORS, ALERT, by="PUT"),
    "api:alert_test": Row(None, ACTORS, ALERT),
    "reports:use_nudge": Row(None, ACTORS, WORK),
    "reports:use_keep": Row(None, NOBODY, WORK),
    "reports:budgets": Row(LENDING - {"operator"}, LENDING - {"operator"}),
    "reports:budget_drop": Row(None, LEADS, {"pk": "budget"}),
    "reports:views": Row(HERE),
    "reports:view_save": Row(None, HERE),
    "reports:view_change": Row(None, NOBODY, VIEW),
    "api:report_views": Row(HERE, HERE),
    "api:report_view": Row(NOBODY, args=VIEW),
    **{
        f"reports:{name}{ending}": Row(HERE) for name in REPORTS for ending in ("", "_csv", "_json")
    },
    "api:me": Row(ANYBODY),
    "api:tokens": Row(ANYBODY, ANYBODY),
    "api:sessions": Row(ANYBODY),
    "api:session": Row(None, NOBODY, {"key": "vermilion-session"}, by="DELETE"),
    "api:group_rules": Row(ADMINS, ADMINS),
    "api:group_rule": Row(ADMINS, ADMINS, RULE, by="DELETE"),
    "api:service_accounts": Row(LEADS, LEADS, TEAM_OF),
    "api:service_account": Row(LEADS, LEADS, PROGRAM, by="DELETE"),
    "api:service_tokens": Row(None, LEADS, PROGRAM),
    "api:service_token": Row(None, LEADS, PROGRAM_TOKEN, by="DELETE"),
    "api:token": Row(None, NOBODY, TOKEN, by="DELETE"),
    "api:people": Row(ANYBODY, LEADS),
    "api:person": Row(TEAM, ADMINS, {"username": "sealed"}, by="PUT"),
    "api:person_may": Row(TEAM, args={"username": "sealed"}),
    "api:teams": Row(ANYBODY, ADMINS),
    "api:team": Row(TEAM, ADMINS, {"name": "pretraining"}, by="PUT"),
    "api:team_member": Row(
        LEADS, LEADS, {"name": "pretraining", "username": "sealed"}, by="DELETE"
    ),
    "api:personas": Row(ANYBODY, ADMINS),
    "api:persona": Row(ADMINS, ADMINS, {"name": "researcher"}, by="PUT"),
    "api:persona_preview": Row(None, ADMINS, {"name": "researcher"}),
    "api:priority_class": Row(ANYBODY, ADMINS, {"name": "best-effort"}, by="PUT"),
    "api:gpu_class": Row(HERE, ADMINS, {"name": H100}, by="PUT"),
    "api:policy": Row(OPERATORS, ADMINS, by="PUT"),
    "api:tree": Row(ADMINS, ADMINS, by="PUT"),
    "api:processes": Row(OPERATORS),
    "api:notices": Row(ANYBODY),
    "api:notices_read": Row(None, ANYBODY),
    "api:notice_preferences": Row(ANYBODY, ANYBODY, by="PUT"),
    "api:webhooks": Row(ANYBODY, ANYBODY),
    "api:webhook": Row(None, NOBODY, WEBHOOK, by="DELETE"),
    "api:webhook_test": Row(None, NOBODY, WEBHOOK),
    "api:dead_letters": Row(OPERATORS),
    "api:dead_letter_again": Row(None, OPERATORS, LETTER),
    "api:dead_letter_drop": Row(None, OPERATORS, LETTER),
    "api:audit": Row(AUDITORS),
    "api:audit_verdict": Row(ALL_AUDITORS),
    "api:priority_classes": Row(ANYBODY, ADMINS),
    "api:clusters": Row(ANYBODY, ADMINS),
    "api:cluster": Row(HERE),
    "api:cluster_mode": Row(None, OPERATORS),
    "api:gpu_classes": Row(HERE, ADMINS),
    "api:nodes": Row(HERE),
    "api:guardrails": Row(OPERATORS),
    "api:queues": Row(HERE, LEADS | {"neighbour"}),
    "api:queue": Row(TEAM, LEADS, {"name": "pretraining"}, by="DELETE"),
    "api:quotas": Row(HERE, HERE),
    "api:quota_preview": Row(None, HERE),
    "api:quota_changes": Row(HERE),
    "api:quota_revert": Row(None, LEADS, CHANGE),
    "api:workloads": Row(HERE, HERE),
    "api:workload": Row(TEAM, args=WORK),
    "api:workload_sooner": Row(TEAM, args=WORK),
    "api:workload_cancel": Row(None, ACTORS, WORK),
    "api:workload_priority": Row(None, ACTORS, WORK),
    "api:workload_actions": Row(None, HERE),
    "api:workload_hold": Row(None, ACTORS, WORK),
    "api:workload_release": Row(None, ACTORS, WORK),
    "api:requests": Row(HERE, HERE),
    "api:loans": Row(HERE, HERE),
    "api:loan": Row(ACTORS, args=LOAN),
    "api:loan_act": Row(None, LEADS, {**LOAN, "verb": "decline"}),
    "api:loan_offers": Row(HERE, HERE),
    "api:loan_offer": Row(LENDING, LEADS, OFFER, by="DELETE"),
    "api:request": Row(TEAM, NOBODY, REQUEST, by="PUT"),
    "api:request_preview": Row(TEAM, args=REQUEST),
    **{f"api:request_{verb}": Row(None, NOBODY, REQUEST) for verb in ("submit", "withdraw")},
    **{
        f"api:request_{verb}": Row(None, DECIDERS, REQUEST)
        for verb in ("forward", "approve", "ask_changes", "reject", "revoke")
    },
    "api:request_renew": Row(None, ASKERS - {"neighbour"}, REQUEST),
    "api:request_comments": Row(None, TEAM, REQUEST),
    "api:request_rules": Row(HERE),
    "api:request_rule": Row(TEAM, LEADS, DIVIDED, by="PUT"),
    "api:cycles": Row(HERE),
    "api:cycle": Row(HERE, args={"number": 48213}),
    "api:decisions": Row(HERE),
    "api:evictions": Row(HERE),
    **{f"api:{name}": Row(HERE) for name in REPORTS},
    "api:experiments": Row(OPERATORS, OPERATORS),
    "api:experiment": Row(OPERATORS, OPERATORS, EXPERIMENT, by="DELETE"),
    "api:experiment_cancel": Row(None, OPERATORS, EXPERIMENT),
    "api:experiment_promote": Row(None, OPERATORS, EXPERIMENT),
    "api:what_ifs": Row(OPERATORS, OPERATORS),
    "api:what_if": Row(OPERATORS, OPERATORS, WHAT_IF, by="DELETE"),
    "api:capacity_studies": Row(OPERATORS, OPERATORS),
    "api:capacity_study": Row(OPERATORS, OPERATORS, STUDY, by="DELETE"),
    "api:forecast_score": Row(HERE),
    "api:adaptation": Row(OPERATORS, ADMINS, by="PUT"),
    "api:adapting_parameter": Row(OPERATORS, ADMINS, {"name": "charge"}, by="PUT"),
    "api:consolidations": Row(OPERATORS, OPERATORS),
    "api:consolidation": Row(OPERATORS, OPERATORS, CONSOLIDATION, by="DELETE"),
    "api:schema": Row(ANYBODY),
    "api:docs": Row(ANYBODY),
    "api:nothing": Row(NOBODY),
    "no_such_api": Row(NOBODY),
}
OPEN = {
    "exported_metrics",
    "accounts:sign_in", "web:first_admin", "accounts:oidc", "account_login", "account_inactive",
    "account_signup", "web:sent_sink",
    "mfa_authenticate", "mfa_login_webauthn", "openid_connect_callback", "socialaccount_signup",
    "socialaccount_login_cancelled",
}  # fmt: skip
"""Addresses for people who are not signed in."""

ABSENT = {
    "cluster": "nowhere", "queue": "nowhere", "name": "nowhere", "uid": "uid-nowhere",
    "mode": "nowhere", "node": "nowhere", "topic": "nowhere",
    "team": "nowhere", "account": "svc-nowhere", "key": "nowhere",
    "verb": "nowhere", "step": "nowhere", "persona": "nowhere", "username": "nobody",
    "pk": 999_999, "number": 999_999,
}  # fmt: skip


def addresses(resolver: URLResolver, namespace: str = "") -> Iterator[tuple[str, set[str]]]:
    """(name, names of its arguments) of every address."""
    for entry in resolver.url_patterns:
        arguments = set(entry.pattern.converters)
        if isinstance(entry, URLPattern):
            yield f"{namespace}{entry.name}", arguments
        else:
            below = f"{entry.namespace}:" if entry.namespace else namespace
            for name, more in addresses(entry, below):
                yield name, arguments | more


ADDRESSES = dict(addresses(get_resolver()))


NO_ADDRESS = {"api:nothing": "/api/v1/no-such-address", "no_such_api": "/api/v0/clusters/"}
"""What answers where nothing is."""


@dataclass
class World:
    cluster: Cluster
    sessions: dict[str, str]
    real: dict[str, int]

    def client(self, who: str) -> Client:
        """A browser of its own each time: a sign-out would empty a shared one."""
        client = Client()
        if who not in SIGNED_OUT:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[who]
        return client

    def url(self, name: str, *, absent: bool = False) -> str:
        row = ROWS[name]
        if name in NO_ADDRESS:
            return NO_ADDRESS[name]
        real = {"cluster": "fra1", **row.args}
        given = {key: self.real.get(value, value) for key, value in real.items()}
        if absent:
            hidden = set(row.args) & ADDRESSES[name] or {"cluster"}
            given |= {key: ABSENT[key] for key in hidden}
        return reverse(name, kwargs={key: given[key] for key in ADDRESSES[name]}) + row.query


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker):
    """Built once: each test runs in a transaction inside this one, so what it writes is undone."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield build()
        transaction.set_rollback(True)


def build() -> World:
    cluster = example_cluster()
    queues = {q.name: q for q in cluster.queues.all()}
    seal(queues)
    far = make_cluster("ams1")
    root = Queue.objects.create(cluster=far, name="ams1")
    elsewhere = Queue.objects.create(cluster=far, parent=root, name="elsewhere")
    everything = {"may_submit": True, "may_edit_quotas": True, "may_approve": True}
    people = {
        "outsider": make_member(elsewhere, name="outsider", **everything),
        "neighbour": make_member(queues["search"], name="neighbour", **everything),
    }
    for name, (team, persona) in PERSONAS.items():
        people[name] = User.objects.filter(username=name).first() or make_user(name)
        join(people[name], queues[team].team, persona)
    join(
        make_user("sealed", last_name="vermilion-person"), queues["pretraining"].team, "researcher"
    )
    announce(
        "quota.saved", cluster=cluster, queue="research/language/pretraining", reason="vermilion"
    )
    deliver_due()
    sessions = {}
    for name, user in people.items():
        client = Client()
        client.force_login(user)
        sessions[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    token, _ = ApiToken.issue(User.objects.get(username="m.okafor"), "vermilion-token")
    change = QuotaChange.objects.get(reason="vermilion-reason")
    owner = User.objects.get(username="m.okafor")
    template = SubmitTemplate.objects.create(cluster=cluster, owner=owner, name="vermilion-set")
    question = WhatIf.objects.create(
        cluster=cluster,
        author="admin",
        title="vermilion-question",
        changes=[{"kind": "capacity", "gpu_class": H100, "nodes": 1}],
        asked_at=NOW,
    )
    terms = {
        "cluster": cluster, "lender": queues["alignment"], "gpus": MILLI, "created_at": NOW,
        "gpu_class": cluster.gpu_classes.get(name=H100), "ends_at": NOW + timedelta(days=900),
    }  # fmt: skip
    offer = LoanOffer.objects.create(**terms)
    loan = QuotaLoan.objects.create(
        **terms, borrower=queues["vision"], state="asked", reason="vermilion-loan", since=NOW
    )
    replay = WhatIf.objects.create(
        cluster=cluster,
        author="lead",
        title="vermilion-edit",
        kind=WhatIfKind.EDIT,
        changes=[],
        asked_at=NOW,
    )
    ordered = Consolidation.objects.create(
        cluster=cluster,
        gpu_class=cluster.gpu_classes.get(name=H100),
        nodes=1,
        most_moves=1,
        author="vermilion-operator",
        asked_at=NOW,
    )
    real = {
        "request": asked_for(queues["pretraining"], owner).pk,
        "token": token.pk,
        "change": change.pk,
        "template": template.pk,
        "what_if": question.pk,
        "experiment": empty_experiment(cluster).pk,
        "replay": replay.pk,
        "study": _study(cluster).pk,
        "loan": loan.pk,
        "offer": offer.pk,
        "consolidation": ordered.pk,
        "budget": _budget(queues["pretraining"]).pk,
        "view": SavedView.objects.create(
            user=owner, cluster=cluster, name="vermilion-view", kind="use"
        ).pk,
        "alert": Rule.objects.create(
            cluster=cluster, figure="longest_wait", over=60, queue=queues["pretraining"]
        ).pk,
    }
    _idle(Workload.objects.get(uid="uid-sealed"))
    real |= told_to(owner, cluster)
    real |= programs(queues["pretraining"], owner)
    return World(cluster, sessions, real)


def _study(cluster: Cluster) -> CapacityStudy:
    return CapacityStudy.objects.create(
        cluster=cluster, author="vermilion-operator", end=NOW, days=7, replications=5, most_cpu_s=60,
        asked_at=NOW, made_at=NOW,
    )  # fmt: skip


def _budget(queue: Queue) -> Budget:
    return Budget.objects.create(queue=queue, amount=1000, begin=NOW.date(), end=NOW.date())


def _idle(work: Workload) -> None:
    """Nothing runs on its GPUs."""
    gpu_class = GpuClass.objects.get(cluster=work.cluster, name=H100)
    IdleSpell.objects.create(
        workload=work, gpu_class=gpu_class, gpus=8 * MILLI, since=NOW - timedelta(hours=1)
    )


def asked_for(queue: Queue, author: User) -> QuotaRequest:
    """What somebody of pretraining asks for, taken from the queue that its members do not see."""
    asked = QuotaRequest.objects.create(
        cluster=queue.cluster, kind="quota", state="approver", queue=queue, place=queue.path,
        gpu_class=H100, gpus=2 * MILLI, giver=Queue.objects.get(name=HIDDEN.decode()),
        reason="vermilion-ask", author=author, created_at=NOW, since=NOW,
    )  # fmt: skip
    Step.objects.create(request=asked, at=NOW, verb="submit", by=author, after="approver")
    Comment.objects.create(request=asked, at=NOW, by=author, text="vermilion-comment")
    ApprovalRule.objects.create(queue=queue.parent, below_gpus=MILLI, at=NOW)
    return asked


def told_to(owner: User, cluster: Cluster) -> dict[str, int]:
    """Somebody else's notice, webhook, and a letter to it that did not arrive."""
    notice = Notice.objects.create(
        user=owner, kind="evicted", cluster=cluster, at=NOW, due_at=NOW, source="eviction 0",
        about="vermilion-work", title="vermilion-notice",
    )  # fmt: skip
    webhook = Webhook.objects.create(
        user=owner,
        name="vermilion-hook",
        address="https://hooks.example.org/vermilion",
        made_at=NOW,
    )
    letter = Letter.objects.create(
        user=owner, way="webhook", webhook=webhook, key="notice 0", made_at=NOW, due_at=NOW,
        state="dead", settled_at=NOW, fault="vermilion-fault",
    )  # fmt: skip
    letter.notices.add(notice)
    Arrival.objects.create(user=owner, way="mail", at=NOW, to="vermilion-to", body="vermilion-body")
    return {"webhook": webhook.pk, "letter": letter.pk}


def programs(queue: Queue, owner: User) -> dict[str, int]:
    """What is somebody else's of sign-in: a session, a passkey; and what is a team's: a program, a rule."""
    team = Team.objects.get(queue=queue)
    persona = Persona.objects.get(name="researcher")
    account = ServiceAccount.objects.create(user=make_user("svc-vermilion"), team=team)
    Membership.objects.create(user=account.user, team=team, persona=persona)
    token, _ = ApiToken.issue(account.user, "vermilion-program")
    rule = GroupRule.objects.create(group="vermilion-group", team=team, persona=persona)
    Session.objects.create(
        pk="vermilion-session", user=owner, expire_date=timezone.now() + timedelta(days=1),
        began_at=timezone.now(), seen_at=timezone.now(),
    )  # fmt: skip
    key = Authenticator.objects.create(
        user=owner, type=Authenticator.Type.WEBAUTHN, data={"name": "vermilion-key"}
    )
    return {"program_token": token.pk, "rule": rule.pk, "passkey": key.pk}


def join(user: User, team: Team, persona: str) -> None:
    held = {"persona": Persona.objects.get(name=persona)}
    Membership.objects.get_or_create(user=user, team=team, defaults=held)


def seal(queues: dict[str, Queue]) -> None:
    """Sealed things in every table that a page or the API reads."""
    language, pretraining = queues["language"], queues["pretraining"]
    cluster, h100 = language.cluster, language.cluster.gpu_classes.get(name=H100)
    hidden = Queue.objects.create(cluster=cluster, parent=language, name=HIDDEN.decode())
    work = make_workload(
        pretraining,
        uid="uid-sealed",
        name="vermilion-work",
        sentence="vermilion-sentence",
        gpus=2 * MILLI,
        submitted_at=NOW.replace(hour=1),
    )
    Transition.objects.create(workload=work, at=NOW, to_state="pending", sentence="vermilion")
    Eviction.objects.create(
        workload=work,
        at=NOW.replace(hour=2),
        rule="reclaim",
        queue=pretraining,
        for_queue=pretraining,
        gpu_class=h100,
        gpus=2 * MILLI,
        sentence="vermilion-eviction",
    )
    _between(work, hidden)
    _foretold(work, hidden)
    runs = ("x/vermilion-work", "x/vermilion-fixed", "x/vermilion-third", "x/vermilion-last")
    record(cluster.cycles.get(), snapshot_of(
        NOW, H100, borrower="pretraining", owner=hidden.name, runs=runs, waits="x/vermilion-queue-work"
    ))  # fmt: skip
    for top, reason in ((language, "vermilion-reason"), (queues["fra1"], "vermilion-above")):
        _change(top, pretraining, hidden, reason)


def _foretold(work: Workload, hidden: Queue) -> None:
    """Forecasts of sealed work: one that waits for that of the hidden queue, one that was late."""
    other = make_workload(hidden, name="vermilion-queue-run", state="running")
    h100 = work.cluster.gpu_classes.get(name=H100)
    later = NOW + timedelta(hours=1)
    StartForecast.objects.create(
        workload=work, at=NOW, p50_at=later, p90_at=later, gpu_class=h100, after=other
    )
    for one in (work, other):
        ForecastOutcome.objects.create(
            workload=one,
            at_submission=True,
            told_at=NOW - timedelta(hours=9),
            p50_s=60,
            p90_s=120,
            raw_p50_s=60,
            raw_p90_s=120,
            gpu_class=h100,
            gpus=MILLI,
            started_at=NOW - timedelta(hours=2),
            cause="quota_edited",
            note="Quotas were edited 2 times in between.",
        )


def _between(work: Workload, hidden: Queue) -> None:
    """What made room for the work of the hidden queue, as all that keeps sentences tells it."""
    other = make_workload(hidden, name="vermilion-queue-work", user="vermilion-queue-user")
    text = "pretraining held 40; x/vermilion-queue-work of vermilion-queue is entitled to them."
    numbers = {"held": 40, "workload": "x/vermilion-queue-work", "workload_queue": hidden.path}
    for sealed in (None, {"sentence": "vermilion-sealed", "workload_queue": hidden.path}):
        told: dict[str, Any] = {"sentence": text, "sealed": sealed}
        Transition.objects.create(
            workload=work, at=NOW, to_state="requeued", reason="reclaimed", **told
        )
        Decision.objects.create(
            cycle=work.cluster.cycles.get(),
            workload=work,
            action="evict",
            reason="reclaimed",
            for_workload=other,
            numbers=numbers,
            **told,
        )
        Eviction.objects.create(
            workload=work,
            at=NOW.replace(hour=3),
            rule="reclaim",
            queue=work.queue,
            for_queue=hidden,
            for_workload=other,
            gpu_class=work.cluster.gpu_classes.get(name=H100),
            gpus=MILLI,
            numbers=numbers,
            **told,
        )
        make_workload(
            work.queue, name="vermilion-told", reason="reclaimed", numbers=numbers, **told
        )  # fmt: skip


def _change(top: Queue, pretraining: Queue, hidden: Queue, reason: str) -> None:
    line = {"gpu_class": H100, "field": "nominal", "before": 24, "after": 24}
    change = QuotaChange.objects.create(
        cluster=top.cluster, queue=top, reason=reason, at=NOW, effective_from=NOW,
        cells=[{"queue": q.name, **line} for q in (pretraining, hidden)],
    )  # fmt: skip
    Quota.objects.filter(queue=pretraining).update(change=change)


def ask(client: Client, method: str, url: str):
    if url.startswith("/api/"):
        return client.generic(method, url, b"{}", content_type="application/json")
    return client.generic(method, url)


def body(response) -> bytes:
    """What came back; a stream of events is left alone."""
    kind = response.headers.get("Content-Type", "")
    if kind.startswith("text/event-stream"):
        return b""
    return b"".join(response) if response.streaming else response.content


def test_every_address_has_a_row():
    assert set(ADDRESSES) == set(ROWS) | OPEN


@pytest.mark.parametrize("name", ROWS)
def test_who_is_not_signed_in_is_asked_to(world, name):
    for method in ("GET", "POST", "PUT", "DELETE"):
        response = ask(world.client("anonymous"), method, world.url(name))
        if name == "accounts:sign_out":
            assert response.status_code in (302, 405)
        elif name in NO_ADDRESS or (name.startswith("api:") and name != "api:docs"):
            assert response.status_code == 401, method
        else:
            assert response.status_code == 302, method
            assert response.headers["Location"].startswith("/sign-in/")
        assert SEALED not in body(response)


@pytest.mark.parametrize("who", sorted(ANYBODY))
@pytest.mark.parametrize("name", ROWS)
def test_row_holds(world, name, who):
    row, client = ROWS[name], world.client(who)
    sealed = {
        "outsider": SEALED, "neighbour": SEALED, "researcher": HIDDEN, "scientist": HIDDEN
    }.get(who)  # fmt: skip
    for method, allowed in (("GET", row.read), (row.by, row.write)):
        with transaction.atomic():
            response = ask(client, method, world.url(name))
            check(response, method, allowed, who)
            if sealed:
                assert sealed not in body(response), method
            transaction.set_rollback(True)
        if allowed is not None and who not in allowed:
            twin = ask(client, method, world.url(name, absent=True))
            assert response.status_code in (twin.status_code, 403), method


def check(response, method: str, allowed: frozenset[str] | None, who: str) -> None:
    """Allowed: an answer or a refusal of the empty input.

    Denied: absent, or refused for its input before anything was looked up; 403 only where it is seen.
    """
    code = response.status_code
    if allowed is None:
        assert code in (404, 405), (method, code)
    elif who in allowed:
        assert code < 400 or code in (400, 409, 422, 503), (method, code)
    else:
        assert code in (404, 400) or (code == 403 and who in TEAM), (method, code)
