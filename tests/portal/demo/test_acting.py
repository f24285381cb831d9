"""What a demo's people do once it serves: each page that they fill has something in each of its states."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from portal.alerts.models import Firing, Rule
from portal.approvals.models import Comment, QuotaRequest
from portal.approvals.states import State
from portal.teams.models import Submitted
from scheduling.models import Cluster, QuotaChange
from tests.factories import NOW, example_cluster, make_workload
from tests.portal.kubernetes import serving
from workshop.demo import edits, failures, requests
from workshop.demo.acting import act

pytestmark = pytest.mark.django_db
KIND = "/apis/batch/v1/namespaces/pretraining/jobs"


@pytest.fixture
def cluster() -> Cluster:
    cluster = example_cluster()
    make_workload(cluster.queues.get(name="vision"), submitted_at=NOW - timedelta(days=2))
    return cluster


@pytest.fixture
def acted(cluster: Cluster):
    with serving(cluster) as kube:
        act(cluster)
        yield kube


def _states() -> Counter[str]:
    return Counter(QuotaRequest.objects.values_list("state", flat=True))


def test_requests_stand_in_each_state_that_people_bring_about(acted) -> None:
    assert _states() == {
        State.APPROVER: 2, State.ACTIVE: 3, State.SCHEDULED: 1, State.REJECTED: 1,
        State.WITHDRAWN: 1, State.CHANGES: 1, State.REVOKED: 1,
    }  # fmt: skip
    assert Comment.objects.count() == 1


def test_one_request_ends_within_minutes_of_a_demo(acted) -> None:
    ends = QuotaRequest.objects.filter(state=State.ACTIVE).exclude(ends_at=None)
    first = ends.earliest("ends_at")
    assert first.ends_at - first.granted_at <= requests.SHORT


def test_edits_of_quotas_are_kept_with_what_was_expected_of_them(acted) -> None:
    made = QuotaChange.objects.filter(reason__in=[one.reason for one in edits.EDITS])
    assert made.count() == len(edits.EDITS)
    assert all("lines" in one.expected for one in made)


def test_alert_that_fires_is_acknowledged(acted) -> None:
    assert Rule.objects.exists()
    assert list(Firing.objects.values_list("acknowledged_by", flat=True).distinct()) == ["admin"]


def test_work_that_fails_keeps_its_log_in_the_cluster(acted) -> None:
    [job] = [one for one in acted.get(KIND)["items"] if one["metadata"]["name"] == failures.NAME]
    assert "ttlSecondsAfterFinished" not in job["spec"]
    assert job["spec"]["template"]["metadata"]["annotations"]["weir.dev/exit-code"] == "1"


def test_done_again_it_leaves_everything_as_it_is(cluster, acted) -> None:
    before = (_states(), QuotaChange.objects.count(), Submitted.objects.count())
    act(cluster)
    assert (_states(), QuotaChange.objects.count(), Submitted.objects.count()) == before
