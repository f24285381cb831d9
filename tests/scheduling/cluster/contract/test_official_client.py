"""The official Python client, whose models are strict."""

from __future__ import annotations

import pytest
from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException

from .api import Api, config_map, job, lease


@pytest.fixture
def official(api: Api) -> client.ApiClient:
    """The client, configured by hand."""
    configuration = client.Configuration()
    configuration.host = api.url
    if api.ca:
        configuration.ssl_ca_cert = api.ca
    if api.token:
        configuration.api_key = {"authorization": f"Bearer {api.token}"}
    return client.ApiClient(configuration)


def test_jobs_round_trip_through_typed_models(api: Api, official: client.ApiClient) -> None:
    batch = client.BatchV1Api(official)
    made = batch.create_namespaced_job(api.namespace, job("a", suspend=True))
    assert made.spec.suspend is True
    listed = batch.list_namespaced_job(api.namespace, label_selector="!absent")
    assert [item.metadata.name for item in listed.items] == ["a"]
    patched = batch.patch_namespaced_job("a", api.namespace, {"spec": {"suspend": False}})
    assert patched.spec.suspend is False
    batch.delete_namespaced_job("a", api.namespace, propagation_policy="Background")


def test_typed_lists_of_everything_can_be_read(api: Api, official: client.ApiClient) -> None:
    core = client.CoreV1Api(official)
    api.create("jobs", job("a"))
    assert api.namespace in {n.metadata.name for n in core.list_namespace().items}
    core.list_node()
    core.list_namespaced_pod(api.namespace)
    core.list_namespaced_event(api.namespace)
    client.SchedulingV1Api(official).list_priority_class()
    client.PolicyV1Api(official).list_namespaced_pod_disruption_budget(api.namespace)


def test_refusals_arrive_as_exceptions_with_the_code(api: Api, official: client.ApiClient) -> None:
    with pytest.raises(ApiException) as caught:
        client.BatchV1Api(official).read_namespaced_job("nope", api.namespace)
    assert caught.value.status == 404


def test_lease_is_renewed_with_its_version(api: Api, official: client.ApiClient) -> None:
    leases = client.CoordinationV1Api(official)
    made = leases.create_namespaced_lease(api.namespace, lease("fence", "one"))
    made.spec.holder_identity = "two"
    assert (
        leases.replace_namespaced_lease("fence", api.namespace, made).spec.holder_identity == "two"
    )
    with pytest.raises(ApiException) as caught:
        leases.replace_namespaced_lease("fence", api.namespace, made)
    assert caught.value.status == 409


def test_watch_of_the_client_streams_events(api: Api, official: client.ApiClient) -> None:
    core = client.CoreV1Api(official)
    api.create("configmaps", config_map("a"))
    stream = watch.Watch().stream(
        core.list_namespaced_config_map,
        api.namespace,
        field_selector="metadata.name=a",
        timeout_seconds=5,
    )
    assert next(iter(stream))["object"].metadata.name == "a"


def test_version_is_told(official: client.ApiClient) -> None:
    assert client.VersionApi(official).get_code().major == "1"
