"""What a persona and the limits of a queue allow, whoever asks: page, API or pasted manifest."""

import pytest

from portal.accounts.models import Persona, User
from portal.teams.models import Membership, Team
from portal.teams.submission import Ask, find_faults, limits_of, read_manifest
from scheduling.models import MILLI, PriorityClass
from tests.factories import example_cluster

pytestmark = pytest.mark.django_db
H100 = ("h100-80gb",)


@pytest.fixture
def cluster(db):
    return example_cluster()


def codes(cluster, who="researcher", **asked):
    ask = Ask(**{"queue": "pretraining", "gpu_classes": H100, "run_time_limit_s": 60, **asked})
    return [fault.code for fault in find_faults(User.objects.get(username=who), cluster, ask)]


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
    patient = Persona.objects.create(name="patient", may_submit=True)
    Membership.objects.create(
        user=User.objects.get(username="researcher"),
        team=Team.objects.get(name="language"),
        persona=patient,
    )
    assert codes(cluster) == []


def test_limit_of_an_ancestor_binds_too(cluster):
    persona(max_gpus_per_workload=None)
    queue = cluster.queues.get(name="pretraining")
    tightest = min(limit for _, name, limit in limits_of(queue) if name == "h100-80gb")
    assert codes(cluster, gpus=MILLI, pods_min=tightest // MILLI + 1) == ["never_fits"]
    assert codes(cluster, gpus=MILLI, pods_min=tightest // MILLI) == []


def test_one_class_that_could_hold_it_is_enough(cluster):
    persona(max_gpus_per_workload=None)
    small = {"gpus": MILLI, "pods_min": 30}
    assert codes(cluster, gpu_classes=("l4",), **small) == ["never_fits"]
    assert codes(cluster, gpu_classes=("l4", "h100-80gb"), **small) == []


def test_manifest_is_read_as_kubernetes_means_it(cluster):
    manifest = {
        "metadata": {
            "namespace": "pretraining",
            "labels": {"kueue.x-k8s.io/queue-name": "pretraining"},
            "annotations": {"weir.dev/gpu-classes": "h100-80gb, l4", "weir.dev/min-members": "2"},
        },
        "spec": {
            "parallelism": 4,
            "activeDeadlineSeconds": 60,
            "template": {
                "spec": {
                    "priorityClassName": "best-effort",
                    "containers": [
                        {"resources": {"limits": {"nvidia.com/gpu": "2", "cpu": "4"}}},
                        {"resources": {"requests": {"nvidia.com/gpu": 1}}},
                    ],
                }
            },
        },
    }
    assert read_manifest(cluster, manifest) == Ask(
        queue="pretraining",
        namespace="pretraining",
        priority_class="best-effort",
        gpus=3 * MILLI,
        pods_min=2,
        pods_max=4,
        gpu_classes=("h100-80gb", "l4"),
        run_time_limit_s=60,
    )


@pytest.mark.parametrize(
    "manifest",
    [{}, {"metadata": []}, {"metadata": {"labels": 1}, "spec": {"template": {"spec": [1]}}}],
)
def test_manifest_of_the_wrong_shape_is_read_as_empty(cluster, manifest):
    assert read_manifest(cluster, manifest).queue == ""
