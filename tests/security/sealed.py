"""An organisation in which every name says from whom it is sealed.

    fra1 ── research ── language ── nlp         (okapi: its work)
         │                       ├─ vision      (zebra: everything of it)
         │                       └─ speech
         └─ quokka-products ─┬ quokka-search    (quokka: everything of it)
                             └ shop
    ams1 ── elsewhere

People of nlp read okapi alone, the lead of research zebra as well, operators all three, the neighbour in
the shop quokka, and who is not of fra1 none. Decisions, evictions, transitions and waits of every reason
name both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from portal.accounts.models import ApiToken, User
from portal.alerts.models import Rule
from portal.approvals.models import ApprovalRule, Comment, QuotaRequest, Step
from portal.notices.models import Letter, Webhook
from portal.reports.models import Budget
from portal.teams.models import Membership, ServiceAccount, Team
from scheduling.engine import model as m
from scheduling.engine.reasons import catalogue as reasons
from scheduling.engine.reasons.facts import Facts
from scheduling.models import (
    CheckpointHabit,
    Cluster,
    Cycle,
    Decision,
    Eviction,
    EvictionRule,
    GpuClass,
    GpuUse,
    Guardrail,
    IdleSpell,
    Node,
    PriorityClass,
    Queue,
    Quota,
    QuotaChange,
    Result,
    Share,
    State,
    Study,
    Transition,
    UserUsage,
    Workload,
)
from scheduling.models.ledger import UsageSample
from scheduling.services.events import announce, deliver_due
from scheduling.services.studies.experiments.figures import BY_QUEUE, FIGURES
from scheduling.services.words.sentences import sealed_of
from tests.cycles import record, snapshot_of
from tests.factories import NOW, make_cluster, make_member, make_persona, make_user, make_workload
from tests.lab import empty_experiment
from tests.said import figures
from workshop.demo.seed import make_personas

OKAPI, ZEBRA, QUOKKA = b"okapi", b"zebra", b"quokka"
PERSONAS = {
    "researcher": ("nlp", "researcher"),
    "scientist": ("nlp", "data scientist"),
    "lead": ("research", "team lead"),
    "approver": ("fra1", "approver"),
    "operator": ("fra1", "operator"),
    "finance": ("fra1", "finance"),
    "admin": ("fra1", "admin"),
}
"""Who asks -> the queue of their team and the shipped persona they have there."""
SEALED_FROM: dict[str, tuple[bytes, ...]] = {
    "anonymous": (OKAPI, ZEBRA, QUOKKA),
    "outsider": (OKAPI, ZEBRA, QUOKKA),
    "neighbour": (OKAPI, ZEBRA),
    **dict.fromkeys(("researcher", "scientist", "chief"), (ZEBRA, QUOKKA)),
    "lead": (QUOKKA,),
    **dict.fromkeys(("approver", "operator", "finance", "admin"), ()),
}
"""The chief leads nlp, and may give and audit there."""
MARKS = ("okapi", "zebra", "quokka")
GPUS = "h100"
OF_OTHERS = (
    m.Reason.VICTIMS_PROTECTED, m.Reason.BUDGET_SPENT, m.Reason.EVICTION_CAP,
)  # fmt: skip
"""Reasons that blame another queue than the workload's own."""
RULES = {
    m.Reason.RECLAIMED: EvictionRule.RECLAIM,
    m.Reason.PREEMPTED: EvictionRule.PREEMPT,
    m.Reason.CONSOLIDATES: EvictionRule.CONSOLIDATE,
    m.Reason.STALE_GANG: EvictionRule.STALE_GANG,
    m.Reason.DRAINED: EvictionRule.DRAIN,
}


@dataclass
class Organisation:
    cluster: Cluster
    people: dict[str, User]
    objects: dict[str, list[Any]]
    """Argument of an address -> what may stand there, what people of nlp see first."""
    keys: dict[str, list[int]]
    """Kind -> primary keys, in the same order."""


def decision(reason: m.Reason, work: Workload, rival: Workload) -> m.Decision:
    """What the engine says to ``work`` where ``rival`` is in its way or it is in the rival's."""
    assert work.queue is not None
    assert rival.queue is not None
    facts = Facts(
        reason=reason,
        queue=work.queue.path,
        blame=rival.queue.path if reason in OF_OTHERS else work.queue.path,
        gpu_class=GPUS,
        figures=figures(reason),
        rival=f"{rival.namespace}/{rival.name}",
        rival_queue=rival.queue.path,
        until=NOW + timedelta(hours=1),
        members=2,
    )
    return m.Decision(
        f"{work.namespace}/{work.name}",
        m.Action.EVICT if reason in RULES else m.Action.WAIT,
        reason,
        reasons.sentence(facts),
        reasons.sealed_sentence(facts),
        {**reasons.numbers(facts), "victim_held_before": 3, "for_held_before": 77.123},
    )


def organisation() -> Organisation:
    cluster = make_cluster(clock_real=datetime.now(UTC), clock_start=NOW)
    GpuClass.objects.create(cluster=cluster, name=GPUS, resource_name="nvidia.com/gpu")
    PriorityClass.objects.create(name="normal", value=50, is_default=True)
    queues = _queues(cluster)
    cycle = Cycle.objects.create(cluster=cluster, number=7, at=NOW, took_ms=10, mode=cluster.mode)
    Cluster.objects.filter(pk=cluster.pk).update(
        # Pages of a test that takes long do not turn stale meanwhile.
        planned_at=datetime.now(UTC) + timedelta(hours=2)
    )
    _work(queues, cycle)
    record(cycle, snapshot_of(
        NOW, GPUS, borrower="zebra-vision", owner="quokka-search", waits="quokka-search/quokka-run",
        runs=tuple(f"zebra-vision/zebra-run{i}" for i in ("", "-1", "-2", "-3")),
    ))  # fmt: skip
    people = _people(queues)
    changes = _changes(queues, people["operator"])
    names = sorted(queues, key=lambda name: name != "nlp")
    _memberships(queues)
    teams = sorted(Team.objects.values_list("name", flat=True), key=lambda name: name != "team-nlp")
    token, _ = ApiToken.issue(User.objects.get(username="zebra-user"), "zebra-token")
    _beside(cluster, queues)
    webhooks, letters = _letters()
    return Organisation(
        cluster,
        people,
        {
            "cluster": [cluster.name, "ams1", "nowhere"],
            "queue": [*names, "nowhere"],
            "uid": [
                "uid-nlp", "uid-moved", "uid-runs", "uid-old", "uid-evicted", "uid-vision",
                "uid-search", "uid-nowhere",
            ],
            "number": [cycle.number, 999_999],
            "team": [*teams, "nowhere"],
            "account": ["svc-okapi", "svc-nowhere"],
            "key": ["okapi-session", "nowhere"],
            "username": ["okapi-user", *User.objects.values_list("username", flat=True), "nowhere"],
            "persona": ["elsewhere", "nowhere"],
            "step": ["connect", "nowhere"],
            "verb": ["decline", "nowhere"],
            "provider_id": ["oidc", "nowhere"],
            "organization_slug": ["saml", "nowhere"],
            "mode": ["paused", "nowhere"],
            "node": ["node-1", "nowhere"],
            "topic": ["share", "waiting", "evicted", "glossary", "keyboard", "nowhere"],
        },
        {
            "change": changes,
            "token": [token.pk],
            "what_if": [what_if := _what_if(cluster)],
            "experiment": [experiment := _experiment(cluster)],
            "study": [experiment, what_if, _study(cluster)],
            "request": [_asked_for(queues)],
            "webhook": webhooks,
            "letter": letters,
            "budget": list(Budget.objects.values_list("pk", flat=True)),
            "alert": list(Rule.objects.values_list("pk", flat=True)),
        },
    )  # fmt: skip


def _asked_for(queues: dict[str, Queue]) -> int:
    """What somebody of zebra asks for, and a word on it; taken from quokka."""
    author = User.objects.get(username="zebra-user")
    asked = QuotaRequest.objects.create(
        cluster=queues["zebra-vision"].cluster, kind="quota", state="approver", queue=queues["zebra-vision"],
        place=queues["zebra-vision"].path, gpu_class=GPUS, gpus=1000, giver=queues["quokka-search"],
        reason="zebra-ask", author=author, created_at=NOW, since=NOW,
    )  # fmt: skip
    Step.objects.create(request=asked, at=NOW, verb="submit", by=author, after="approver")
    Comment.objects.create(request=asked, at=NOW, by=author, text="zebra-comment")
    ApprovalRule.objects.create(queue=queues["zebra-vision"].parent, below_gpus=1000, at=NOW)
    return int(asked.pk)


def _letters() -> tuple[list[int], list[int]]:
    """A letter of each that did not arrive, and where it was to go: keys of webhooks and of letters."""
    webhooks, letters = [], []
    for name in ("zebra", "quokka"):
        user = User.objects.get(username=f"{name}-user")
        webhook = Webhook.objects.create(
            user=user,
            name=f"{name}-hook",
            address=f"https://{name}.example.org/{name}-path",
            made_at=NOW,
        )
        letter = Letter.objects.create(
            user=user, way="webhook", webhook=webhook, key="notice 0", made_at=NOW, due_at=NOW,
            state="dead", settled_at=NOW, fault="It answered 503.",
        )  # fmt: skip
        webhooks.append(webhook.pk)
        letters.append(letter.pk)
    return webhooks, letters


def _queues(cluster: Cluster) -> dict[str, Queue]:
    root = Queue.objects.create(cluster=cluster, name="fra1")
    research = Queue.objects.create(cluster=cluster, parent=root, name="research")
    products = Queue.objects.create(
        cluster=cluster, parent=root, name="quokka-products", access_group="quokka-group"
    )
    language = Queue.objects.create(cluster=cluster, parent=research, name="language")
    made = {
        "fra1": root, "research": research, "language": language, "quokka-products": products
    }  # fmt: skip
    for parent, name, namespace in (
        (language, "nlp", "okapi-nlp"),
        (language, "zebra-vision", "zebra-vision"),
        (language, "speech", "speech"),
        (products, "quokka-search", "quokka-search"),
        (products, "shop", "shop"),
    ):
        made[name] = Queue.objects.create(
            cluster=cluster, parent=parent, name=name, namespace=namespace
        )
    Node.objects.create(
        cluster=cluster, name="node-1", gpu_class=cluster.gpu_classes.get(), gpus=64_000
    )
    for queue in made.values():
        _figures(queue, cluster.gpu_classes.get())
    return made


def _figures(queue: Queue, gpu_class: GpuClass) -> None:
    Share.objects.create(
        queue=queue, gpu_class=gpu_class, fair_share=8000, potential=8000, allocated=8000,
        nominal=8000, demand=16_000, pending=8000, guaranteed=8000,
    )  # fmt: skip
    Quota.objects.create(
        queue=queue, gpu_class=gpu_class, nominal_gpus=8000,
        effective_from=NOW - timedelta(days=30),
    )  # fmt: skip
    UsageSample.objects.create(
        queue=queue, gpu_class=gpu_class, resolution="hour", start=NOW.replace(minute=0, second=0)
        - timedelta(hours=2), seconds=3600, allocated_gpus=8000, nominal_gpus=8000,
        installed_gpus=64_000, ready_gpus=64_000,
    )  # fmt: skip


def _work(queues: dict[str, Queue], cycle: Cycle) -> None:
    vision = make_workload(
        queues["zebra-vision"], uid="uid-vision", name="zebra-run", user="zebra-user",
        state=State.RUNNING, placement={"node-1": 1}, gpu_classes=[GPUS],
    )  # fmt: skip
    search = make_workload(
        queues["quokka-search"], uid="uid-search", name="quokka-run", user="quokka-user",
        state=State.RUNNING, placement={"node-1": 1}, gpu_classes=[GPUS],
    )  # fmt: skip
    nlp = queues["nlp"]
    evicted = _mine(nlp, "uid-evicted", "okapi-evicted")
    first = _mine(nlp, "uid-nlp", "okapi-first")
    for rival in (vision, search):
        for reason in m.Reason:
            work = _mine(nlp, f"uid-{reason}-{rival.pk}", f"okapi-{reason.value}"[:50])
            said = decision(reason, work, rival)
            _tell(work, said)
            _keep(work, rival, said, cycle)
            _keep(evicted, rival, said, cycle)
            # The same from the other side: the member's work is what others wait for or leave for.
            _keep(rival, first, decision(reason, rival, first), cycle)
    _tell(first, decision(m.Reason.VICTIMS_PROTECTED, first, vision))
    _elsewhere(search)
    old = _mine(nlp, "uid-old", "okapi-old")
    _tell(old, decision(m.Reason.RECLAIMED, old, search))
    _keep(old, search, decision(m.Reason.RECLAIMED, old, search), cycle)
    for model in (Transition, Decision, Eviction):
        model.objects.filter(workload=old).update(sealed=None)
    Workload.objects.filter(pk=old.pk).update(sealed=None, numbers={})


def _mine(queue: Queue, uid: str, name: str) -> Workload:
    return make_workload(queue, uid=uid, name=name, user="okapi-user", gpu_classes=[GPUS])


def _elsewhere(search: Workload) -> None:
    """The member's own, in a queue that is not theirs any more: only the workload itself is."""
    moved = make_workload(
        search.queue, uid="uid-moved", name="moved", namespace="plain", queue_label="plain",
        user="researcher", gpu_classes=[GPUS],
    )  # fmt: skip
    _tell(moved, decision(m.Reason.WAITS_FOR_TURN, moved, search))
    make_workload(
        search.queue, uid="uid-runs", name="moved-run", namespace="plain", queue_label="plain",
        user="researcher", gpu_classes=[GPUS], state=State.RUNNING, placement={"node-1": 1},
    )  # fmt: skip
    Transition.objects.create(
        workload=moved, at=NOW, to_state=State.PENDING, reason="at_limit",
        sentence="quokka-products holds 8 of its limit of 8.", sealed={},
    )  # fmt: skip


def _tell(work: Workload, said: m.Decision) -> None:
    Workload.objects.filter(pk=work.pk).update(
        reason=said.reason.value, sentence=said.sentence, sealed=sealed_of(said), position=1,
        numbers=dict(said.numbers),
    )  # fmt: skip


def _keep(work: Workload, rival: Workload, said: m.Decision, cycle: Cycle) -> None:
    """``said`` in every table that keeps sentences."""
    told = {"sentence": said.sentence, "sealed": sealed_of(said)}
    Transition.objects.create(
        workload=work, at=NOW - timedelta(hours=2), to_state=State.REQUEUED,
        reason=said.reason.value, actor="engine", **told,
    )  # fmt: skip
    Decision.objects.create(
        cycle=cycle, workload=work, action=said.action.value, reason=said.reason.value,
        numbers=dict(said.numbers), for_workload=rival, gpu_class=work.cluster.gpu_classes.get(), **told,
    )  # fmt: skip
    if said.reason not in RULES:
        return
    at = NOW - timedelta(hours=3, minutes=len(said.sentence))
    Eviction.objects.create(
        workload=work, cycle=cycle, at=at, rule=RULES[said.reason], queue=work.queue,
        for_workload=rival, for_queue=rival.queue, gpu_class=work.cluster.gpu_classes.get(),
        gpus=1000, asked_gpus=1000, lost_gpu_s=3600, numbers=dict(said.numbers), **told,
    )  # fmt: skip
    Transition.objects.create(
        workload=work, at=at, to_state=State.EVICTED, reason=said.reason.value, actor="engine", **told
    )  # fmt: skip


def _people(queues: dict[str, Queue]) -> dict[str, User]:
    far = make_cluster("ams1")
    root = Queue.objects.create(cluster=far, name="ams1")
    elsewhere = Queue.objects.create(cluster=far, parent=root, name="elsewhere")
    lead = {"may_submit": True, "may_edit_quotas": True, "may_approve": True}
    for name in ("zebra-vision", "quokka-search"):
        mark = name.partition("-")[0]
        Team.objects.create(queue=queues[name], name=f"{mark}-team")
        make_member(queues[name], name=f"{mark}-user", may_submit=True)
    make_member(queues["nlp"], name="okapi-user", may_submit=True)
    people = {
        "outsider": make_member(elsewhere, name="outsider", **lead),
        "neighbour": make_member(queues["shop"], name="neighbour", **lead),
        "chief": make_member(
            queues["nlp"], name="chief", **lead, may_give=True, may_audit=True
        ),
    }  # fmt: skip
    shipped = make_personas()
    for name, (place, persona) in PERSONAS.items():
        people[name] = make_user(name)
        team, _ = Team.objects.get_or_create(
            queue=queues[place], defaults={"name": f"team-{place}"}
        )
        Membership.objects.create(user=people[name], team=team, persona=shipped[persona])
    return people


def _memberships(queues: dict[str, Queue]) -> None:
    """Whom people of nlp know is in other teams too, and who is of those teams alone gave it to them."""
    okapi, zebra, quokka = (User.objects.get(username=f"{m}-user") for m in MARKS)
    okapi.memberships.update(given_by=quokka)
    elsewhere = make_persona("elsewhere", may_submit=True, may_give=True)
    for giver, team in ((zebra, "zebra-team"), (quokka, "quokka-team")):
        Membership.objects.create(
            user=okapi, team=Team.objects.get(name=team), persona=elsewhere, given_by=giver
        )
    program = make_user("svc-okapi")
    nlp = Team.objects.get(queue=queues["nlp"])
    ServiceAccount.objects.create(user=program, team=nlp, made_by=quokka)
    Membership.objects.create(user=program, team=nlp, persona=elsewhere)
    for giver, team in ((zebra, "zebra-team"), (quokka, "quokka-team")):
        place = Team.objects.get(name=team).queue
        announce(
            "member.added", actor=giver, cluster=place.cluster, queue=place.path,
            subject=f"okapi-user, {team}", after={"persona": "elsewhere"},
        )  # fmt: skip
    deliver_due()


def _what_if(cluster: Cluster) -> int:
    """A question of somebody else about queues of others; its key."""
    change = {"kind": "quota", "gpu_class": GPUS, "nominal_gpus": 4}
    asked = Study.objects.create(
        cluster=cluster, author="quokka-user", name="zebra-question", asked_at=NOW, kind="replay",
        question={
            "changes": [{**change, "queue": name} for name in ("zebra-vision", "quokka-search")], "days": 7,
        },
    )  # fmt: skip
    return asked.pk


def _study(cluster: Cluster) -> int:
    """A study of capacity that somebody else has asked for; its key."""
    made = Study.objects.create(
        cluster=cluster, kind="capacity", author="quokka-user", begin=NOW - timedelta(days=7), end=NOW,
        question={"step_gpus": 0, "most_cpu_s": 60}, asked_at=NOW, state="done",
    )  # fmt: skip
    return made.pk


def _experiment(cluster: Cluster) -> int:
    """An experiment of somebody else that names queues of others; its key."""
    made = empty_experiment(cluster, "zebra-experiment", "quokka-user")
    made.variants.filter(letter="B").update(
        changes=[{"kind": "quota", "queue": "zebra-vision", "gpu_class": GPUS, "nominal_gpus": 4}]
    )
    Result.objects.create(
        variant=made.variants.get(letter="A"), seed=1, done_at=NOW,
        figures={figure.key: 1.0 for figure in FIGURES},
        queues={name: dict.fromkeys(BY_QUEUE, 1.0) for name in ("zebra-vision", "quokka-products")},
    )  # fmt: skip
    return made.pk


def _changes(queues: dict[str, Queue], author: User) -> list[int]:
    """Keys of three edits, the one that is about nlp as well first."""
    line = {"gpu_class": GPUS, "field": "nominal", "before": 8, "after": 9}
    made = [
        QuotaChange.objects.create(
            cluster=top.cluster, queue=top, author=author, reason=reason, at=NOW,
            effective_from=NOW, cells=[{"queue": name, **line} for name in names],
        )
        for top, reason, names in (
            (queues["research"], "zebra-reason", ["zebra-vision"]),
            (queues["fra1"], "quokka-reason", ["quokka-products", "quokka-search"]),
            (queues["language"], "okapi-reason", ["nlp", "zebra-vision"]),
        )
    ]  # fmt: skip
    for change in made:
        names = [cell["queue"] for cell in change.cells]
        Quota.objects.filter(queue__name__in=names).update(change=change)
    return [change.pk for change in reversed(made)]


def _idle(work: Workload, cluster: Cluster) -> None:
    """Nothing runs on its GPUs, and for ten hours not much did."""
    gpu_class = cluster.gpu_classes.get(name=GPUS)
    IdleSpell.objects.create(
        workload=work, gpu_class=gpu_class, gpus=1000, since=NOW - timedelta(hours=3)
    )
    GpuUse.objects.create(
        workload=work, gpu_class=gpu_class, start=NOW - timedelta(hours=1), gpu_s=40_000,
        active_gpu_s=100,
    )  # fmt: skip
    Transition.objects.create(
        workload=work, at=NOW - timedelta(hours=11), to_state=State.RUNNING, reason="fits_nominal",
        actor="engine", gpus=1000, gpu_class=gpu_class, sealed={},
    )  # fmt: skip


def _beside(cluster: Cluster, queues: dict[str, Queue]) -> None:
    """What else carries names."""
    for name in ("zebra-vision", "quokka-search"):
        mark = name.partition("-")[0]
        UserUsage.objects.create(queue=queues[name], user=f"{mark}-user", gpus=1000, at=NOW)
        CheckpointHabit.objects.create(queue=queues[name], user=f"{mark}-user")
        Budget.objects.create(queue=queues[name], amount=100, begin=NOW.date(), end=NOW.date())
        Rule.objects.create(
            cluster=cluster, figure="idle_gpus", over=60, queue=queues[name], tell="owner"
        )
        _idle(Workload.objects.get(name=f"{mark}-run"), cluster)
        Guardrail.objects.create(
            cluster=cluster, kind="Namespace", namespace="", name=name, standing="drifted", since=NOW,
            detail=f"{mark}-detail",
        )  # fmt: skip
