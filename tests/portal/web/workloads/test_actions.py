from datetime import timedelta

import pytest

from scheduling.cluster.connection.client import NotFoundError
from scheduling.models import MILLI, CheckpointHabit, State, Workload
from tests.factories import make_workload
from tests.portal.kubernetes import job

pytestmark = pytest.mark.django_db


@pytest.fixture
def probe(cluster, kube):
    """A waiting workload of the researcher's that the API server holds."""
    made = kube.create(
        "/apis/batch/v1/namespaces/pretraining/jobs",
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": "probe", "labels": {"weir.dev/queue": "pretraining"}},
            "spec": {
                "suspend": True,
                "template": {
                    "spec": {
                        "restartPolicy": "Never",
                        "containers": [{"name": "main", "image": "registry.example.org/probe:1"}],
                    }
                },
            },
        },
    )
    queue = cluster.queues.get(name="pretraining")
    return make_workload(
        queue,
        uid=made["metadata"]["uid"],
        name="probe",
        user="researcher",
        gpus=8 * MILLI,
        position=3,
    )


def url(work, verb):
    return f"/c/fra1/w/{work.uid}/{verb}/"


def test_cancel_says_first_that_waiting_work_loses_nothing(as_user, probe, kube):
    page = as_user("researcher").get(url(probe, "cancel")).content.decode()
    assert "nothing of it runs, so no work is lost" in page
    assert kube.get(job("pretraining", "probe"))


def test_cancel_of_running_work_says_what_is_lost_in_numbers(as_user, probe, cluster):
    Workload.objects.filter(pk=probe.pk).update(
        state=State.RUNNING,
        members=1,
        placement={"h100-01": 1},
        started_at=cluster.now(),
        checkpointed_at=None,
    )
    page = as_user("researcher").get(url(probe, "cancel")).content.decode()
    assert "1 pod on h100-01 stops after the grace; 8 GPUs go back" in page
    assert "GPU-hours" in page


@pytest.mark.parametrize(
    ("started", "announced", "declared", "said"),
    [
        (90, None, None, "since it started is lost: 8 GPUs × 1 h 30 min = 12 GPU-hours"),
        (90, 30, None, "since the last checkpoint is lost: 8 GPUs × 30 min = 4 GPU-hours"),
        (90, 120, None, "since it started is lost: 8 GPUs × 1 h 30 min"),  # of an earlier run
        (75, None, 1800, "of those every 30 min is lost: 8 GPUs × 15 min = 2 GPU-hours"),
        (20, None, 1800, "since it started is lost: 8 GPUs × 20 min"),
    ],
)
def test_cancel_counts_what_is_lost_from_the_last_checkpoint(
    as_user, probe, cluster, started, announced, declared, said
):
    run(probe, cluster, started, announced=announced, checkpoint_interval_s=declared)
    assert said in as_user("researcher").get(url(probe, "cancel")).content.decode()


def test_cancel_speaks_of_one_gpu_as_of_one(as_user, probe, cluster):
    run(probe, cluster, 30, gpus=MILLI)
    page = as_user("researcher").get(url(probe, "cancel")).content.decode()
    assert "1 GPU goes back to" in page
    assert "1 GPU × 30 min" in page


def test_cancel_counts_from_the_checkpoint_that_others_of_its_user_would_have_made(
    as_user, probe, cluster
):
    CheckpointHabit.objects.create(
        queue_id=probe.queue_id, user=probe.user, recent=[[f"u{i}", [3600]] for i in range(6)]
    )
    run(probe, cluster, 75)
    page = as_user("researcher").get(url(probe, "cancel")).content.decode()
    assert "though it announced none, is lost: 8 GPUs × 15 min" in page


def run(probe, cluster, minutes, *, announced=None, **fields):
    """It has run for ``minutes`` and announced a checkpoint that many minutes ago."""
    now = cluster.now()
    Workload.objects.filter(pk=probe.pk).update(
        state=State.RUNNING,
        members=1,
        placement={"h100-01": 1},
        started_at=now - timedelta(minutes=minutes),
        checkpointed_at=None if announced is None else now - timedelta(minutes=announced),
        **fields,
    )


def test_confirmed_cancel_deletes_the_job_and_says_so(as_user, probe, kube):
    response = as_user("researcher").post(url(probe, "cancel"), follow=True)
    assert b"is being cancelled: the cluster was told to delete it" in response.content
    assert b"state changes" not in response.content
    with pytest.raises(NotFoundError):
        kube.get(job("pretraining", "probe"))


def test_hold_and_release_at_once(as_user, probe, kube):
    client = as_user("researcher")
    assert b"is held" in client.post(url(probe, "hold"), follow=True).content
    notes = kube.get(job("pretraining", "probe"))["metadata"]["annotations"]
    assert notes["weir.dev/hold"] == "true"
    Workload.objects.filter(pk=probe.pk).update(held=True)
    assert b"is released" in client.post(url(probe, "release"), follow=True).content


def test_button_of_a_list_leads_back_to_it_and_nowhere_else(as_user, probe, kube):
    client = as_user("researcher")
    back = client.post(url(probe, "hold"), {"next": "/c/fra1/work/?state=waiting"})
    assert back.headers["Location"] == "/c/fra1/work/?state=waiting"
    away = client.post(url(probe, "hold"), {"next": "https://example.org/"})
    assert away.headers["Location"].startswith("/c/fra1/w/")


@pytest.mark.parametrize("verb", ["hold", "release"])
def test_state_changes_by_post_only(as_user, probe, verb):
    assert as_user("researcher").get(url(probe, verb)).status_code == 405


@pytest.mark.parametrize("verb", ["cancel", "hold", "release"])
def test_colleagues_may_not_touch_it(as_user, probe, kube, verb):
    assert as_user("m.okafor").post(url(probe, verb)).status_code == 404
    assert as_user("q.nguyen").post(url(probe, verb)).status_code == 404
    assert kube.get(job("pretraining", "probe"))


def test_lead_and_operator_may(as_user, probe, kube):
    for name in ("lead", "admin"):
        assert as_user(name).get(url(probe, "cancel")).status_code == 200


def test_what_has_started_meanwhile_is_not_held(as_user, probe):
    Workload.objects.filter(pk=probe.pk).update(state=State.RUNNING)
    response = as_user("researcher").post(url(probe, "hold"), follow=True)
    assert b"running by now; nothing was done" in response.content


def test_unreachable_cluster_is_said_on_the_page(as_user, probe, cluster):
    cluster.api_url = "http://127.0.0.1:9"
    cluster.save(update_fields=["api_url"])
    response = as_user("researcher").post(url(probe, "cancel"))
    assert response.status_code == 409
    assert b"does not answer" in response.content
