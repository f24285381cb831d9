"""ResourceQuotas: what is refused, what is counted, and when there is room again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from .api import Api, enforce_quota, eventually, job, pod

GPU = "nvidia.com/gpu"
AT_ONCE = 8
RETRIED_S = 60.0


def bound(api: Api, **hard: str) -> None:
    """A quota, from when on it is enforced; `gpus` stands for the name of the resource."""
    names = {"gpus": f"requests.{GPU}", "jobs": "count/jobs.batch"}
    hard = {names.get(name, name.replace("_", ".")): value for name, value in hard.items()}
    enforce_quota(api, "cap", hard)


def status(api: Api) -> Any:
    found: Any = api.get("resourcequotas", "cap").get("status") or {}
    return found


def used(api: Api) -> dict[str, str]:
    found: dict[str, str] = status(api)["used"]
    return found


def asking(name: str, *, gpus: int = 0, **requests: str) -> Any:
    """A pod that asks for so much."""
    body = pod(name)
    devices = {GPU: str(gpus)} if gpus else {}
    resources = {"requests": {**requests, **devices}, "limits": devices}
    body["spec"]["containers"][0]["resources"] = resources
    body["spec"]["terminationGracePeriodSeconds"] = 0
    return body


def refusal(api: Api, body: Any, plural: str = "pods") -> str:
    found = api.call("POST", api.path(plural), body).expect(403)
    assert found["reason"] == "Forbidden"
    assert found["details"]["name"] == body["metadata"]["name"]
    return str(found["message"])


def accepted_soon(api: Api, body: Any) -> None:
    """Create a pod for which the quota has room by now: admission reads a copy that follows the object."""
    eventually(lambda: api.call("POST", api.path("pods"), body).code == 201)


def test_status_says_what_is_allowed_and_taken(api: Api) -> None:
    bound(api, gpus="4", requests_cpu="2", requests_memory="3Gi", pods="5", jobs="1")
    assert status(api)["hard"]["requests.memory"] == "3Gi"
    assert set(used(api).values()) == {"0"}

    api.create("pods", asking("a", gpus=2, cpu="500m", memory="512Mi"))
    api.create("pods", asking("b", gpus=1, cpu="250m", memory="1Gi"))
    api.create("jobs", job("j", suspend=True))
    eventually(
        lambda: (
            used(api)
            == {
                f"requests.{GPU}": "3",
                "requests.cpu": "750m",
                "requests.memory": "1536Mi",
                "pods": "2",
                "count/jobs.batch": "1",
            }
        )
    )


def test_pod_past_the_gpus_is_refused_with_the_numbers(api: Api) -> None:
    bound(api, gpus="4")
    api.create("pods", asking("a", gpus=3))
    message = refusal(api, asking("b", gpus=2))
    assert message == (
        f'pods "b" is forbidden: exceeded quota: cap, requested: requests.{GPU}=2, '
        f"used: requests.{GPU}=3, limited: requests.{GPU}=4"
    )
    api.create("pods", asking("c", gpus=1))


def test_gated_pod_counts_from_its_creation(api: Api) -> None:
    bound(api, gpus="4")
    gated = asking("a", gpus=3)
    gated["spec"]["schedulingGates"] = [{"name": "weir.dev/queue"}]
    api.create("pods", gated)
    assert "requests.nvidia.com/gpu=3, limited" in refusal(api, asking("b", gpus=2))


def test_all_that_would_be_exceeded_is_listed(api: Api) -> None:
    bound(api, requests_cpu="1", requests_memory="1Gi", pods="9")
    api.create("pods", asking("a", cpu="600m", memory="768Mi"))
    assert refusal(api, asking("b", cpu="500m", memory="512Mi")).endswith(
        "exceeded quota: cap, requested: requests.cpu=500m,requests.memory=512Mi, "
        "used: requests.cpu=600m,requests.memory=768Mi, "
        "limited: requests.cpu=1,requests.memory=1Gi"
    )


@pytest.mark.parametrize(
    ("plural", "hard"), [("pods", {"pods": "1"}), ("jobs", {"jobs": "1"})], ids=["pods", "jobs"]
)
def test_objects_past_their_number_are_refused(api: Api, plural: str, hard: dict[str, str]) -> None:
    bound(api, **hard)
    first, second = (job(n, suspend=True) if plural == "jobs" else pod(n) for n in ("a", "b"))
    api.create(plural, first)
    # A controller's count may be written over the one of the admission.
    eventually(lambda: list(used(api).values()) == ["1"])
    [key] = used(api)
    assert refusal(api, second, plural).endswith(
        f"exceeded quota: cap, requested: {key}=1, used: {key}=1, limited: {key}=1"
    )


def test_bounded_cpu_has_to_be_asked_for(api: Api) -> None:
    bound(api, requests_cpu="1", limits_memory="1Gi")
    assert refusal(api, asking("a", cpu="1")).endswith(
        "failed quota: cap: must specify limits.memory for: main"
    )
    assert refusal(api, asking("b")).endswith(
        "failed quota: cap: must specify limits.memory for: main; requests.cpu for: main"
    )


def test_other_work_is_none_of_a_gpu_quotas_business(api: Api) -> None:
    bound(api, gpus="0")
    api.create("pods", pod("a"))
    api.create("jobs", job("j", suspend=True))


def test_creates_at_once_never_pass_together(api: Api) -> None:
    bound(api, gpus="3")

    def attempt(number: int) -> int:
        own = Api(api.url, api.token, api.ca, api.namespace)
        return own.call("POST", own.path("pods"), asking(f"p{number}", gpus=1)).code

    with ThreadPoolExecutor(AT_ONCE) as pool:
        codes = sorted(pool.map(attempt, range(AT_ONCE)))
    assert codes == [201] * 3 + [403] * (AT_ONCE - 3)
    assert len(api.get("pods")["items"]) == 3


def test_dry_run_is_checked_and_takes_nothing(api: Api) -> None:
    bound(api, gpus="1")
    path = api.path("pods")
    api.call("POST", path, asking("a", gpus=1), dryRun="All").expect(201)
    api.call("POST", path, asking("a", gpus=2), dryRun="All").expect(403)
    api.create("pods", asking("a", gpus=1))


def test_deleted_pod_makes_room(api: Api) -> None:
    bound(api, gpus="1")
    api.create("pods", asking("a", gpus=1))
    refusal(api, asking("b", gpus=1))
    api.delete("pods", "a")
    eventually(lambda: used(api) == {f"requests.{GPU}": "0"})
    accepted_soon(api, asking("b", gpus=1))


def test_raised_quota_makes_room_and_a_lowered_one_stops_nothing(api: Api) -> None:
    bound(api, gpus="1")
    api.create("pods", asking("a", gpus=1))
    api.patch("resourcequotas", "cap", {"spec": {"hard": {f"requests.{GPU}": "2"}}})
    eventually(lambda: status(api)["hard"] == {f"requests.{GPU}": "2"})
    accepted_soon(api, asking("b", gpus=1))
    api.patch("resourcequotas", "cap", {"spec": {"hard": {f"requests.{GPU}": "0"}}})
    eventually(lambda: status(api)["hard"] == {f"requests.{GPU}": "0"})
    assert len(api.get("pods")["items"]) == 2
    refusal(api, asking("c", gpus=1))


def gpu_job(name: str, seconds: int, **spec: Any) -> Any:
    body = job(name, seconds, **spec)
    resources = {"limits": {GPU: "1"}}
    body["spec"]["template"]["spec"]["containers"][0]["resources"] = resources
    return body


def failures(api: Api, name: str) -> list[str]:
    """What the Job controller said of pods that it could not make."""
    return [
        event["message"]
        for event in api.get("events")["items"]
        if (event["involvedObject"]["name"], event["reason"]) == (name, "FailedCreate")
    ]


def usual(api: Api, **amounts: str) -> None:
    """A LimitRange with these requests, from when on it is applied: admission may know it a little later."""
    limit = {"type": "Container", "defaultRequest": amounts}
    api.create("limitranges", {"metadata": {"name": "usual"}, "spec": {"limits": [limit]}})
    eventually(lambda: requested(api, pod("probe"), dryRun="All").get("requests"))


def requested(api: Api, body: Any, **query: Any) -> Any:
    made = api.create("pods", body, **query)
    return made["spec"]["containers"][0]["resources"]


def test_limit_range_says_what_a_container_leaves_open(api: Api) -> None:
    usual(api, cpu="10m", memory="32Mi")
    assert requested(api, pod("a")) == {"requests": {"cpu": "10m", "memory": "32Mi"}}
    assert requested(api, asking("b", cpu="2"))["requests"] == {"cpu": "2", "memory": "32Mi"}
    limited = pod("c")
    limited["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "1"}}
    assert requested(api, limited) == {
        "limits": {"cpu": "1"},
        "requests": {"cpu": "1", "memory": "32Mi"},
    }


def test_init_containers_are_filled_in_as_well(api: Api) -> None:
    usual(api, cpu="10m")
    body = pod("a", initContainers=[{"name": "first", "image": "busybox"}])
    made = api.create("pods", body)
    assert made["spec"]["initContainers"][0]["resources"] == {"requests": {"cpu": "10m"}}


def test_pod_that_states_no_cpu_passes_a_quota_on_it_with_the_default(api: Api) -> None:
    usual(api, cpu="10m", memory="32Mi")
    bound(api, requests_cpu="15m", requests_memory="1Gi")
    eventually(lambda: "probe" not in str(api.get("pods")))
    accepted_soon(api, pod("a"))
    assert refusal(api, pod("b")).endswith(
        "requested: requests.cpu=10m, used: requests.cpu=10m, limited: requests.cpu=15m"
    )


@pytest.mark.controllers
def test_pods_of_a_job_get_the_defaults_and_count_in_quotas(api: Api) -> None:
    usual(api, cpu="10m")
    bound(api, requests_cpu="10m", pods="5")
    api.create("jobs", job("a", parallelism=2, completions=2))
    [said, *_] = eventually(lambda: failures(api, "a"))
    assert "exceeded quota: cap, requested: requests.cpu=10m" in said
    assert [p["spec"]["containers"][0]["resources"] for p in api.get("pods")["items"]] == [
        {"requests": {"cpu": "10m"}}
    ]


@pytest.mark.controllers
def test_job_past_the_quota_says_so_and_starts_when_a_pod_has_ended(api: Api) -> None:
    bound(api, gpus="1")
    api.create("jobs", gpu_job("a", 2))
    eventually(lambda: used(api) == {f"requests.{GPU}": "1"})
    api.create("jobs", gpu_job("b", 3600))

    [said] = eventually(lambda: failures(api, "b")[:1])
    assert said.startswith('Error creating: pods "b-')
    assert "is forbidden: exceeded quota: cap, " in said
    eventually(lambda: api.get("jobs", "b")["status"].get("ready") == 1, RETRIED_S)


@pytest.mark.controllers
def test_job_gets_the_pods_there_is_room_for(api: Api) -> None:
    bound(api, gpus="2")
    spec = {"parallelism": 3, "completions": 3, "completionMode": "Indexed"}
    api.create("jobs", gpu_job("a", 3600, **spec))
    eventually(lambda: failures(api, "a"))
    eventually(lambda: api.get("jobs", "a")["status"].get("active") == 2)
    api.patch("resourcequotas", "cap", {"spec": {"hard": {f"requests.{GPU}": "3"}}})
    eventually(lambda: api.get("jobs", "a")["status"].get("active") == 3, RETRIED_S)
