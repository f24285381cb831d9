"""What personas give to members, as the engine's worker and the guardrails read it."""

import pytest

from portal.accounts.models import Persona, User
from portal.teams.service import service_classes
from scheduling.models import MILLI, PriorityClass
from scheduling.services.tables.row_cache import RowCache
from tests.factories import example_cluster, make_cluster

pytestmark = pytest.mark.django_db


@pytest.fixture
def cluster(db):
    return example_cluster()


def of(cluster, user="researcher", path="research/language/pretraining"):
    return service_classes(cluster, RowCache()).of(user, path)


def test_member_has_what_the_persona_gives(cluster):
    Persona.objects.filter(name="researcher").update(max_gpus_per_workload=4 * MILLI)
    (found,) = of(cluster)
    assert (found.persona, found.max_gpus) == ("researcher", 4 * MILLI)


def test_member_has_nothing_outside_the_queues_of_the_team(cluster):
    assert of(cluster, path="products/search") == ()


def test_person_who_is_not_active_has_nothing(cluster):
    User.objects.filter(username="researcher").update(is_active=False)
    assert of(cluster) == ()


def test_preemptible_only_persona_is_bound_to_preemptible_classes(cluster):
    PriorityClass.objects.filter(name="research-high").update(preemptible=False)
    persona = Persona.objects.get(name="researcher")
    persona.preemptible_only = True
    persona.save()
    assert "research-high" not in of(cluster)[0].priority_classes


def test_persona_that_names_classes_of_another_cluster_alone_gives_none_here(cluster):
    elsewhere = make_cluster("ber1").gpu_classes.create(name="h200", resource_name="nvidia.com/gpu")
    Persona.objects.get(name="researcher").gpu_classes.set([elsewhere])
    assert of(cluster)[0].gpu_classes == frozenset()


def test_queue_below_that_of_a_team_is_bound_and_a_cluster_without_teams_is_not(cluster):
    assert service_classes(cluster, RowCache()).binds("research/language/pretraining")
    assert not service_classes(make_cluster("ber1"), RowCache()).binds("research")
