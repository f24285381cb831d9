"""Log, events and GPU use on the workload page, read from the cluster in the reader's name."""

from datetime import timedelta

import pytest

from portal.accounts.models import User
from portal.selectors.logs import reads_as
from scheduling.cluster.connection.client import Client, ForbiddenError
from scheduling.models import GpuUse, State, Workload
from scheduling.services.errors import ServiceError
from scheduling.services.workloads.logs import clean
from tests.factories import make_workload
from workshop.testbed.server.kinds.clock import stamp

pytestmark = pytest.mark.django_db

POD = "/api/v1/namespaces/pretraining/pods"


@pytest.fixture
def failed(cluster, kube):
    """A finished workload of the researcher's with one pod that the API server still holds."""
    at = cluster.now()
    work = make_workload(
        cluster.queues.get(name="pretraining"), name="train-a", user="researcher",
        state=State.FINISHED, outcome="failed", submitted_at=at - timedelta(hours=1),
        started_at=at - timedelta(hours=1), first_started_at=at - timedelta(hours=1), finished_at=at,
    )  # fmt: skip
    add_pod(kube, work, at, code=1)
    return work


def add_pod(kube, work, at, *, code, name="train-a-x"):
    ended = {"exitCode": code, "reason": "Error", "finishedAt": stamp(at.timestamp())}
    ended["startedAt"] = stamp(at.timestamp() - 600)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": work.name, "uid": str(work.uid)}
    kube.create(
        POD,
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": name,
                "labels": {"batch.kubernetes.io/job-name": work.name},
                "ownerReferences": [owner],
            },
            "spec": {"containers": [{"name": "main", "image": "a:1"}], "restartPolicy": "Never"},
        },
    )
    state = {"name": "main", "state": {"terminated": ended}, "restartCount": 0}
    status = {"phase": "Failed", "containerStatuses": [state]}
    kube.patch(f"{POD}/{name}/status", {"status": status})


def url(work, what="log"):
    return f"/c/fra1/w/{work.uid}/{what}/"


def test_failed_work_shows_the_end_of_its_log_and_its_exit_code(as_user, failed):
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "exit code 1" in page
    assert "torch.OutOfMemoryError" in page
    assert "step 1000 |" in page
    assert "every 3s" not in page  # it has ended


def test_log_markup_of_others_is_text(as_user, failed, monkeypatch):
    monkeypatch.setattr(
        Client, "tail", lambda *a, **k: b"2026-01-01T00:00:00Z <script>x</script>\n"
    )
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "&lt;script&gt;x" in page
    assert "<script" not in page


@pytest.mark.parametrize(
    ("written", "shown"),
    [("\x1b[31mred\x1b[0m", "red"), ("a\x07b\u202ec", "abc"), ("a\tb", "a    b")],
)
def test_clean_text_moves_no_terminal(written, shown):
    assert clean(written) == shown


def test_log_of_a_bar_of_progress_is_its_last_state(as_user, failed, monkeypatch):
    monkeypatch.setattr(Client, "tail", lambda *a, **k: b"2026-01-01T00:00:00Z 1%\r99%\r\n")
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "99%" in page
    assert "1%\r" not in page


def test_log_of_a_pod_that_is_gone_says_so(as_user, failed, kube):
    kube.delete(f"{POD}/train-a-x", {"gracePeriodSeconds": 0})
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "Its pods are gone from the cluster, and their logs with them." in page
    page = as_user("researcher").get(url(failed) + "?pod=train-a-x").content.decode()
    assert "has no pod train-a-x of this workload any more" in page


def test_log_of_another_workload_s_pod_is_not_shown(as_user, failed, kube, cluster):
    other = make_workload(cluster.queues.get(name="pretraining"), name="secret", user="lead")
    add_pod(kube, other, cluster.now(), code=1, name="secret-x")
    page = as_user("researcher").get(url(failed) + "?pod=secret-x").content.decode()
    assert "has no pod secret-x of this workload" in page


def test_log_of_a_namesake_made_before_is_not_shown(as_user, failed):
    Workload.objects.filter(pk=failed.pk).update(uid="00000000-0000-0000-0000-00000000abcd")
    failed.refresh_from_db()
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "Its pods are gone" in page


def test_cluster_is_asked_in_the_reader_s_name(as_user, failed, monkeypatch):
    asked = []
    real = Client.tail

    def tail(self, path, query, *, most, as_person):
        asked.append(as_person)
        return real(self, path, query, most=most, as_person=as_person)

    monkeypatch.setattr(Client, "tail", tail)
    as_user("researcher").get(url(failed))
    assert [person.name for person in asked] == ["weir:researcher"]


def test_events_of_the_workload_are_listed(as_user, failed, kube):
    about = {"kind": "Job", "namespace": "pretraining", "name": "train-a", "uid": str(failed.uid)}
    kube.create(
        "/api/v1/namespaces/pretraining/events",
        {
            "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e1"}, "involvedObject": about,
            "reason": "BackoffLimitExceeded", "message": "Job has reached <b>it</b>", "type": "Warning",
            "lastTimestamp": "2026-01-01T00:00:00Z", "count": 2,
        },
    )  # fmt: skip
    page = as_user("researcher").get(url(failed, "events")).content.decode()
    assert "BackoffLimitExceeded" in page
    assert "Job has reached &lt;b&gt;" in page


def test_page_has_the_use_of_the_gpus(as_user, failed, cluster):
    GpuUse.objects.create(
        workload=failed, gpu_class=cluster.gpu_classes.first(), start=failed.started_at, gpu_s=3600,
        active_gpu_s=900, idle_gpu_s=1800, memory_mib=20480, memory_peak_mib=40960, memory_total_mib=81920,
    )  # fmt: skip
    page = as_user("researcher").get(f"/c/fra1/w/{failed.uid}/").content.decode()
    assert "computed <b>25&nbsp;%" in page or "computed <b>25 %" in page
    assert "20 GiB" in page.replace("\u00a0", " ").replace("&nbsp;", " ")


def test_log_is_hidden_from_whoever_may_not_see_the_workload(as_user, failed):
    assert as_user("p.rossi").get(url(failed)).status_code == 404
    assert as_user("p.rossi").get(url(failed, "events")).status_code == 404


def test_log_is_not_read_for_who_is_of_no_team_of_its_queue(failed):
    with pytest.raises(ServiceError, match="for its owner and the teams of its queue"):
        reads_as(User.objects.get(username="p.rossi"), failed)


def test_cluster_that_refuses_is_said_as_it_says(as_user, failed, monkeypatch):
    def refuse(*args, **how):
        raise ForbiddenError(403, "Forbidden", "pods is forbidden")

    monkeypatch.setattr(Client, "request", refuse)
    page = as_user("researcher").get(url(failed)).content.decode()
    assert "The cluster refuses: pods is forbidden Ask an admin for access." in page
