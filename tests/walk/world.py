"""The organisation of sealed names, with something of every kind that an address may name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from allauth.mfa.models import Authenticator
from django.conf import settings
from django.test import Client
from django.test.client import ClientHandler
from django.urls import reverse
from django.utils import timezone

from portal.accounts.models import ApiToken, Persona, Session, User
from portal.alerts.models import Rule
from portal.approvals.models import Comment, LoanOffer, QuotaLoan, QuotaRequest, Step
from portal.notices.models import Arrival, Letter, Notice, Webhook
from portal.reports.models import Budget, SavedView
from portal.teams.models import GroupRule, ServiceAccount, SubmitTemplate, Team
from scheduling.models import (
    MILLI,
    Cluster,
    Consolidation,
    IdleSpell,
    Lane,
    Queue,
    Study,
    StudyKind,
    Workload,
)
from scheduling.services.events import announce, deliver_due
from tests.factories import NOW
from tests.portal.test_permission_matrix import ABSENT, ADDRESSES, NO_ADDRESS, ROWS
from tests.security.sealed import GPUS, Organisation, organisation

SIGNED_OUT = frozenset({"anonymous", "nobody"})
BY_NAME = ("queue", "team")
"""Kinds of which an address may take one as its ``name``."""


@dataclass
class World:
    cluster: Cluster
    sessions: dict[str, str]
    objects: dict[str, list[Any]]
    keys: dict[str, list[int]]
    handler: ClientHandler = field(default_factory=lambda: ClientHandler(enforce_csrf_checks=False))
    """One portal for all: its middleware is made once."""

    def client(self, who: str) -> Client:
        """A browser of its own each time: a sign-out would empty a shared one."""
        client = Client(raise_request_exception=False)
        client.handler = self.handler
        if who not in SIGNED_OUT:
            client.cookies[settings.SESSION_COOKIE_NAME] = self.sessions[who]
        return client

    def url(self, name: str, *, absent: bool = False) -> str:
        """The address with what its row names, and its query; ``absent``: with what does not exist."""
        if name in NO_ADDRESS:
            return NO_ADDRESS[name]
        given = {key: one for key, (one, *_) in self.known(name).items()}
        if absent:
            hidden = set(ROWS[name].args) & ADDRESSES[name] or {"cluster"}
            given |= {key: ABSENT[key] for key in hidden}
        return reverse(name, kwargs=given) + (ROWS[name].query if name in ROWS else "")

    def others(self, name: str) -> Iterator[str]:
        """The address with each other object in place of one that its row names."""
        if name in NO_ADDRESS:
            return
        known = self.known(name)
        first = {key: one for key, (one, *_) in known.items()}
        for key, (_, *more) in known.items():
            yield from (reverse(name, kwargs={**first, key: other}) for other in more)

    def known(self, name: str) -> dict[str, list[Any]]:
        """Argument of the address -> what may stand there, what its row names first."""
        args = ROWS[name].args if name in ROWS else {}
        return {key: self._of(key, args.get(key)) for key in ADDRESSES[name]}

    def _of(self, argument: str, wanted: Any) -> list[Any]:
        if argument == "pk":
            return [*self.keys.get(str(wanted), ()), ABSENT["pk"]]
        if argument == "name":
            kind = next((kind for kind in BY_NAME if wanted in self.objects[kind]), "")
            others = self.objects[kind] if kind else [ABSENT["name"]]
        else:
            others = self.objects[argument]
            wanted = wanted or others[0]
        return [wanted, *(other for other in others if other != wanted)]


def build() -> World:
    made = organisation()
    owner, nlp = User.objects.get(username="okapi-user"), _queue(made, "nlp")
    Lane.objects.create(name="celery", waiting=12, asked_at=timezone.now())
    announce("quota.saved", cluster=made.cluster, queue=nlp.path, reason="okapi-edit")
    deliver_due()
    sessions = {}
    for name, user in made.people.items():
        client = Client()
        client.force_login(user)
        sessions[name] = client.cookies[settings.SESSION_COOKIE_NAME].value
    keys = {kind: list(found) for kind, found in made.keys.items()}
    for kind, key in {
        **_own(made, owner, nlp),
        **_questions(made),
        **_lending(made),
        **_of_sign_in(owner, nlp),
    }.items():
        keys.setdefault(kind, []).insert(0, key)
    return World(made.cluster, sessions, made.objects, keys)


def _queue(made: Organisation, name: str) -> Queue:
    return Queue.objects.get(cluster=made.cluster, name=name)


def _own(made: Organisation, owner: User, nlp: Queue) -> dict[str, int]:
    """What somebody of nlp has."""
    work = Workload.objects.get(uid="uid-nlp")
    IdleSpell.objects.create(
        workload=work, gpu_class=made.cluster.gpu_classes.get(name=GPUS), gpus=8 * MILLI,
        since=NOW - timedelta(hours=1),
    )  # fmt: skip
    return {
        "request": _asked_for(nlp, owner),
        "template": SubmitTemplate.objects.create(
            cluster=made.cluster, owner=owner, name="okapi-set"
        ).pk,
        "budget": Budget.objects.create(
            queue=nlp, amount=1000, begin=NOW.date(), end=NOW.date()
        ).pk,
        "view": SavedView.objects.create(
            user=owner, cluster=made.cluster, name="okapi-view", kind="use"
        ).pk,
        "alert": Rule.objects.create(
            cluster=made.cluster, figure="longest_wait", over=60, queue=nlp
        ).pk,
        **_told_to(owner, made.cluster),
    }


def _asked_for(queue: Queue, author: User) -> int:
    """Taken from the queue that people of nlp do not see."""
    asked = QuotaRequest.objects.create(
        cluster=queue.cluster, kind="quota", state="approver", queue=queue, place=queue.path,
        gpu_class=GPUS, gpus=2 * MILLI, giver=Queue.objects.get(name="zebra-vision"),
        reason="okapi-ask", author=author, created_at=NOW, since=NOW,
    )  # fmt: skip
    Step.objects.create(request=asked, at=NOW, verb="submit", by=author, after="approver")
    Comment.objects.create(request=asked, at=NOW, by=author, text="okapi-comment")
    return int(asked.pk)


def _told_to(owner: User, cluster: Cluster) -> dict[str, int]:
    """A notice, a webhook, and a letter to it that did not arrive."""
    notice = Notice.objects.create(
        user=owner, kind="evicted", cluster=cluster, at=NOW, due_at=NOW, source="eviction 0",
        about="okapi-work", title="okapi-notice",
    )  # fmt: skip
    webhook = Webhook.objects.create(
        user=owner, name="okapi-hook", address="https://hooks.example.org/okapi", made_at=NOW
    )
    letter = Letter.objects.create(
        user=owner, way="webhook", webhook=webhook, key="notice 0", made_at=NOW, due_at=NOW,
        state="dead", settled_at=NOW, fault="okapi-fault",
    )  # fmt: skip
    letter.notices.add(notice)
    Arrival.objects.create(user=owner, way="mail", at=NOW, to="okapi-to", body="okapi-body")
    return {"webhook": webhook.pk, "letter": letter.pk}


def _questions(made: Organisation) -> dict[str, int]:
    """What was asked about the whole cluster, and about an edit that its lead tried."""
    asked = {"cluster": made.cluster, "asked_at": NOW}
    capacity = [{"kind": "capacity", "gpu_class": GPUS, "nodes": 1}]
    return {
        "what_if": Study.objects.create(
            **asked, author="admin", name="okapi-question", kind=StudyKind.REPLAY,
            question={"changes": capacity, "days": 7},
        ).pk,
        "replay": Study.objects.create(
            **asked, author="lead", name="okapi-edit", kind=StudyKind.EDIT
        ).pk,
        "consolidation": Consolidation.objects.create(
            **asked, gpu_class=made.cluster.gpu_classes.get(name=GPUS), nodes=1, most_moves=1,
            author="okapi-operator",
        ).pk,
    }  # fmt: skip


def _lending(made: Organisation) -> dict[str, int]:
    """Between queues that the lead of research divides and people of nlp do not see."""
    terms = {
        "cluster": made.cluster, "lender": _queue(made, "speech"), "gpus": MILLI, "created_at": NOW,
        "gpu_class": made.cluster.gpu_classes.get(name=GPUS), "ends_at": NOW + timedelta(days=900),
    }  # fmt: skip
    borrower = _queue(made, "zebra-vision")
    return {
        "offer": LoanOffer.objects.create(**terms).pk,
        "loan": QuotaLoan.objects.create(
            **terms, borrower=borrower, state="asked", reason="zebra-loan", since=NOW
        ).pk,
    }


def _of_sign_in(owner: User, nlp: Queue) -> dict[str, int]:
    """Somebody else's session, token and passkey; the token of a team's program, and a rule of groups."""
    team = Team.objects.get(queue=nlp)
    token, _ = ApiToken.issue(owner, "okapi-token")
    program, _ = ApiToken.issue(ServiceAccount.objects.get(team=team).user, "okapi-program")
    rule = GroupRule.objects.create(
        group="okapi-group", team=team, persona=Persona.objects.get(name="researcher")
    )
    Session.objects.create(
        pk="okapi-session", user=owner, expire_date=timezone.now() + timedelta(days=1),
        began_at=timezone.now(), seen_at=timezone.now(),
    )  # fmt: skip
    passkey = Authenticator.objects.create(
        user=owner, type=Authenticator.Type.WEBAUTHN, data={"name": "okapi-key"}
    )
    return {"token": token.pk, "program_token": program.pk, "rule": rule.pk, "passkey": passkey.pk}
