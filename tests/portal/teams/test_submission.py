"""What a class of service and the limits of a queue allow, whoever asks: page, API or pasted manifest."""

from copy import deepcopy
from datetime import timedelta

import pytest
from django.utils import timezone

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Submitted, Team
from portal.teams.submission import find_faults, submit, usable_priority_classes
from scheduling.models import MILLI, PriorityClass
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.manifest import build_job_manifest
from tests.factories import example_cluster, make_persona
from tests.portal.kubernetes import serving

pytestmark = pytest.mark.django_db
H100 = ("h100-80gb",)


@pytest.fixture
def cluster(db):
    return example_cluster()


@pytest.fixture
def kube(cluster):
    with serving(cluster) as client:
        yield client


def manifest(cluster, *, gpus=MILLI, gpu_classes=H100, namespace="pretraining", **asked):
    given = {"queue": "pretraining", "run_time_limit_s": 60, "pods_min": 1, **asked}
    classes = [cluster.gpu_classes.get(name=name) for name in gpu_classes]
    return build_job_manifest(
        name="w",
        namespace=namespace,
        image="i",
        gpu_classes=classes,
        gpus_per_pod=gpus // MILLI,
        **given,
    )


def codes(cluster, who="researcher", **asked):
    user = User.objects.get(username=who)
    return [fault.code for fault in find_faults(user, cluster, manifest(cluster, **asked))]


def persona(**limits):
    Persona.objects.filter(name="researcher").update(**limits)


def test_modest_work_has_no_fault(cluster):
    assert codes(cluster, gpus=8 * MILLI, priority_class="research-high") == []


def test_queue_of_another_team_and_no_queue_are_the_same_fault(cluster):
    assert codes(cluster, queue="search") == codes(cluster, queue="nowhere") == ["no_such_queue"]


def test_inner_queue_takes_no_work(cluster):
    assert codes(cluster, who="lead", queue="language") == ["no_such_queue"]


def test_all_faults_are_told_at_once(cluster):
    persona(max_gpus_per_workload=MILLI)
    found = codes(cluster, gpus=2 * MILLI, priority_class="inference", run_time_limit_s=10**9)
    assert found == ["priority_class_not_allowed", "too_many_gpus", "run_time_too_long"]


def test_work_larger_than_its_user_may_ever_hold_is_refused_at_the_door(cluster):
    persona(max_gpus_per_workload=8 * MILLI, max_gpus_at_once=4 * MILLI)
    assert codes(cluster, gpus=4 * MILLI) == []
    user = User.objects.get(username="researcher")
    (fault,) = find_faults(user, cluster, manifest(cluster, gpus=8 * MILLI))
    assert (fault.code, fault.field) == ("too_many_gpus_at_once", "gpus_per_pod")
    assert fault.sentence == "8 GPUs are more than the 4 persona researcher may hold at once."
    assert "fewer" in fault.remedy


def test_preemptible_only_persona_gets_no_protected_class(cluster):
    PriorityClass.objects.filter(name="research-high").update(preemptible=False)
    persona(preemptible_only=True)
    assert codes(cluster, priority_class="research-high") == ["priority_class_not_allowed"]


def test_persona_bound_to_classes_gets_no_other(cluster):
    Persona.objects.get(name="researcher").gpu_classes.add(cluster.gpu_classes.get(name="l4"))
    assert codes(cluster) == ["gpu_class_not_allowed"]


def test_the_most_generous_persona_counts(cluster):
    persona(max_run_time_s=30)
    assert codes(cluster) == ["run_time_too_long"]
    patient = make_persona("patient", may_submit=True)
    Membership.objects.create(
        user=User.objects.get(username="researcher"),
        team=Team.objects.get(name="language"),
        persona=patient,
    )
    assert codes(cluster) == []


def test_limit_of_an_ancestor_binds_too(cluster, kube):
    """pretraining may hold 64 H100 (24 + 40), language above it 64, and both nodes and research more."""
    persona(max_gpus_per_workload=None)
    assert codes(cluster, gpus=MILLI, pods_min=65) == ["never_fits"]
    assert codes(cluster, gpus=MILLI, pods_min=64) == []


def test_one_class_that_could_hold_it_is_enough(cluster, kube):
    persona(max_gpus_per_workload=None)
    small = {"gpus": MILLI, "pods_min": 30}
    assert codes(cluster, gpu_classes=("l4",), **small) == ["never_fits"]
    assert codes(cluster, gpu_classes=("l4", "h100-80gb"), **small) == []


def test_member_that_no_node_takes_never_fits(cluster, kube):
    persona(max_gpus_per_workload=None)
    assert codes(cluster, gpus=9 * MILLI) == ["never_fits"]


def test_what_never_fits_may_be_submitted_once_that_is_confirmed(cluster, kube):
    persona(max_gpus_per_workload=None)
    user = User.objects.get(username="researcher")
    asked = manifest(cluster, gpus=9 * MILLI)
    assert find_faults(user, cluster, asked, even_if_never=True) == []


def test_image_that_is_none_is_refused_in_every_container(cluster):
    asked = deepcopy(manifest(cluster))
    pod = asked["spec"]["template"]["spec"]
    pod["initContainers"] = [{"name": "fetch", "image": "not a valid image!!"}]
    user = User.objects.get(username="researcher")
    [fault] = find_faults(user, cluster, asked)
    assert (fault.code, fault.field) == ("invalid_image", "image")


@pytest.mark.parametrize(
    "wrong", [{"kind": None}, {"metadata": []}, {"spec": {"template": {"spec": [1]}}}, {"spec": 1}]
)
def test_manifest_of_the_wrong_shape_is_refused(cluster, wrong):
    with pytest.raises(ServiceError):
        find_faults(
            User.objects.get(username="researcher"), cluster, {**manifest(cluster), **wrong}
        )


def test_class_that_the_cluster_lacks_is_a_slip(cluster):
    asked = deepcopy(manifest(cluster))
    asked["metadata"]["annotations"]["weir.dev/gpu-classes"] = "h100-80gb,h1000"
    user = User.objects.get(username="researcher")
    [fault] = find_faults(user, cluster, asked)
    assert (fault.code, fault.field) == ("gpu_class_not_allowed", "gpu_classes")
    assert "h1000" in fault.sentence


def test_classes_that_a_persona_may_use_are_offered_highest_first(cluster):
    queue = cluster.queues.get(name="pretraining")
    user = User.objects.get(username="researcher")
    Persona.objects.get(name="researcher").priority_classes.set(
        PriorityClass.objects.filter(name__in=["best-effort", "research-high"])
    )
    names = [c.name for c in usable_priority_classes(user, queue)]
    assert names == ["research-high", "best-effort"]


def test_manifest_as_submitted_is_kept_for_ninety_days(cluster, kube):
    user = User.objects.get(username="researcher")
    old, young = (
        Submitted.objects.create(cluster=cluster, uid=uid, user=user, manifest={})
        for uid in ("old", "young")
    )
    Submitted.objects.filter(pk=old.pk).update(at=timezone.now() - timedelta(days=91))
    Submitted.objects.filter(pk=young.pk).update(at=timezone.now() - timedelta(days=89))
    submit(user, cluster, manifest(cluster))

    assert Submitted.objects.filter(uid__in=["old", "young"]).get() == young
    assert Submitted.objects.count() == 2
