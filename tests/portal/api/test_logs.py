"""The API's door to logs and events."""

import pytest

from tests.factories import make_workload

pytestmark = pytest.mark.django_db


def test_log_of_waiting_work_is_empty_and_says_why(api, cluster, kube):
    work = make_workload(cluster.queues.get(name="pretraining"), name="probe", user="researcher")
    answer = api("researcher").get(f"/api/v1/clusters/fra1/workloads/{work.uid}/log")
    assert answer.status_code == 200
    assert answer.json()["lines"] == []
    assert answer.json()["why_not"] == "It has not started, so there is no log yet."
    events = api("researcher").get(f"/api/v1/clusters/fra1/workloads/{work.uid}/events")
    assert events.json() == {"events": []}


@pytest.mark.parametrize("query", ["lines=0", "lines=2001", "lines=many", "pod=" + "x" * 300])
def test_log_query_out_of_bounds_is_refused(api, cluster, kube, query):
    work = make_workload(cluster.queues.get(name="pretraining"), name="probe", user="researcher")
    answer = api("researcher").get(f"/api/v1/clusters/fra1/workloads/{work.uid}/log?{query}")
    assert answer.status_code == 400
