"""Who sees and touches what. Two clusters; names that begin alike stand side by side on purpose:

fra1 ── a ─┬─ b ─┬─ deep ── deeper ── deepest
           │     └─ b1
           ├─ bc ── bc1
           └─ b-2
        ab ── ab1
ams1 ── x ── x1     (and a queue "a" of its own)
"""

import pytest
from django.contrib.auth.models import AnonymousUser

from portal.accounts.capabilities import Capability
from portal.teams import access
from portal.teams.models import Membership, Team
from scheduling.models import Queue, QuotaChange, Workload
from tests.factories import NOW, make_cluster, make_member, make_persona, make_user, make_workload

pytestmark = pytest.mark.django_db
ALL = {"may_submit": True, "may_edit_quotas": True, "may_operate": True}


def grow(cluster, tree, parent=None):
    for name, below in tree.items():
        grow(cluster, below, Queue.objects.create(cluster=cluster, parent=parent, name=name))


@pytest.fixture
def fra1():
    cluster = make_cluster("fra1")
    deep = {"deep": {"deeper": {"deepest": {}}}, "b1": {}}
    grow(cluster, {"fra1": {"a": {"b": deep, "bc": {"bc1": {}}, "b-2": {}}, "ab": {"ab1": {}}}})
    return cluster


@pytest.fixture
def ams1():
    cluster = make_cluster("ams1")
    grow(cluster, {"ams1": {"x": {"x1": {}}, "a": {}}})
    return cluster


@pytest.fixture
def at(fra1, ams1):
    """``at("a")`` is a queue of fra1, ``at("ams1:x")`` one of the other cluster."""

    def find(name):
        cluster, _, queue = name.rpartition(":")
        return Queue.objects.get(cluster__name=cluster or "fra1", name=queue)

    return find


def names(queues):
    return {(q.name if q.cluster.name == "fra1" else f"{q.cluster.name}:{q.name}") for q in queues}


def join(user, queue, **flags):
    persona = make_persona(f"also-{queue.pk}", **flags)
    team, _ = Team.objects.get_or_create(queue=queue, defaults={"name": f"also {queue.pk}"})
    Membership.objects.create(user=user, team=team, persona=persona)


B = {"b", "deep", "deeper", "deepest", "b1"}


def test_member_owns_the_whole_subtree_and_no_neighbour_of_like_name(at):
    assert names(access.own_queues(make_member(at("b")))) == B


def test_member_sees_the_queues_above_but_not_beside(at):
    assert names(access.visible_queues(make_member(at("b")))) == B | {"fra1", "a"}


def test_member_deep_down_sees_the_whole_line_above(at):
    seen = names(access.visible_queues(make_member(at("deepest"))))

    assert seen == {"fra1", "a", "b", "deep", "deeper", "deepest"}


def test_member_of_the_root_owns_the_cluster_and_no_other(at):
    everything = names(Queue.objects.filter(cluster__name="fra1"))

    assert names(access.visible_queues(make_member(at("fra1")))) == everything


def test_same_path_in_another_cluster_stays_hidden(at):
    user = make_member(at("a"))

    assert "ams1:a" not in names(access.visible_queues(user))
    assert [c.name for c in access.visible_clusters(user)] == ["fra1"]


def test_member_of_several_teams_owns_the_union(at):
    user = make_member(at("bc"))
    join(user, at("ams1:x"))

    assert names(access.own_queues(user)) == {"bc", "bc1", "ams1:x", "ams1:x1"}
    assert {c.name for c in access.visible_clusters(user)} == {"fra1", "ams1"}


def test_flags_count_only_where_they_were_granted(at):
    user = make_member(at("b"), may_edit_quotas=True)
    join(user, at("ab"), may_submit=True)

    assert names(access.editable_queues(user)) == B - {"b"}
    assert names(access.submittable_queues(user)) == {"ab1"}
    assert (
        names(access.own_queues(user, Capability.SUBMIT) & access.dividable_queues(user)) == set()
    )


def test_lead_edits_strictly_below_and_divides_at_or_below(at):
    user = make_member(at("a"), may_edit_quotas=True)

    assert names(access.editable_queues(user)) == B | {"bc", "bc1", "b-2"}
    assert names(access.dividable_queues(user)) == B | {"bc", "bc1", "b-2", "a"}


def test_lead_of_a_team_above_edits_the_queue_of_a_team_they_lead_below(at):
    user = make_member(at("a"), may_edit_quotas=True)
    join(user, at("b"), may_edit_quotas=True)

    assert "b" in names(access.editable_queues(user))
    assert "a" not in names(access.editable_queues(user))


def test_member_who_may_not_edit_divides_nothing(at):
    user = make_member(at("a"), may_submit=True, may_approve=True)

    assert not access.editable_queues(user).exists()
    assert not access.dividable_queues(user).exists()


def test_submit_is_into_leaves_only(at):
    user = make_member(at("a"), may_submit=True)

    assert names(access.submittable_queues(user)) == {"deepest", "b1", "bc1", "b-2"}


def test_operator_sees_and_edits_everything_but_the_roots(at):
    user = make_member(at("deepest"), **ALL)

    assert names(access.visible_queues(user)) == names(Queue.objects.all())
    assert names(access.editable_queues(user)) == names(Queue.objects.exclude(parent=None))
    assert access.visible_clusters(user).count() == 2


def test_superuser_is_an_operator_without_a_team(at):
    assert access.is_operator(make_user(is_superuser=True))


@pytest.mark.parametrize("person", [AnonymousUser, make_user])
def test_whoever_is_in_no_team_sees_nothing(at, person):
    make_workload(at("b1"), user="")
    make_workload(None, cluster=at("b1").cluster, user="")
    user = person()

    assert not access.is_operator(user)
    for queryset in (
        access.visible_clusters(user),
        access.visible_queues(user),
        access.own_queues(user),
        access.editable_queues(user),
        access.dividable_queues(user),
        access.submittable_queues(user),
        access.visible_workloads(user),
    ):
        assert not queryset.exists()
    assert not any(access.may_operate_workload(user, work) for work in Workload.objects.all())


def test_member_sees_workloads_of_the_subtree_and_their_own_anywhere(at):
    user = make_member(at("b"), name="m.okafor")
    inside = make_workload(at("deepest"), user="somebody")
    own = make_workload(at("ab1"), user="m.okafor")
    misrouted = make_workload(None, cluster=at("a").cluster, user="m.okafor")
    for queue in ("bc1", "b-2", "ab1"):
        make_workload(at(queue), user="somebody")

    assert set(access.visible_workloads(user)) == {inside, own, misrouted}


def test_member_above_does_not_see_workloads_of_a_queue_they_only_see(at):
    make_workload(at("b-2"), user="somebody")

    assert not access.visible_workloads(make_member(at("b"))).exists()


def test_who_operates_a_workload(at):
    work = make_workload(at("deepest"), user="m.okafor")
    owner = make_member(at("ab"), name="m.okafor")
    lead = make_member(at("deepest"), may_edit_quotas=True)
    colleague = make_member(at("deepest"), may_submit=True)
    neighbour = make_member(at("bc"), may_edit_quotas=True)
    operator = make_member(at("ab"), may_operate=True)

    allowed = [access.may_operate_workload(u, work) for u in
               (owner, lead, operator, colleague, neighbour)]  # fmt: skip
    assert allowed == [True, True, True, False, False]


def test_renamed_and_moved_queues_carry_access_with_them(at):
    user = make_member(at("b"))
    a = at("a")
    a.name = "alpha"
    a.save()
    deep = at("deep")
    deep.parent = at("bc")
    deep.save()

    assert names(access.own_queues(user)) == {"b", "b1"}


def test_lines_about_hidden_queues_are_left_out_of_a_change(at):
    line = {"gpu_class": "h100", "field": "nominal", "before": 1, "after": 2}
    change = QuotaChange.objects.create(
        cluster=at("a").cluster, queue=at("a"), reason="r", at=NOW, effective_from=NOW,
        cells=[{"queue": name, **line} for name in ("b", "bc", "a")],
    )  # fmt: skip

    seen = access.visible_cells(make_member(at("b")), change)
    assert [cell["queue"] for cell in seen] == ["b", "a"]
