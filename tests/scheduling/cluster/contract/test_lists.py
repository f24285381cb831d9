"""Lists: selectors and pages."""

from __future__ import annotations

import pytest

from .api import Api, config_map, pod


def _names(listing: dict) -> list[str]:
    return [item["metadata"]["name"] for item in listing["items"]]


@pytest.fixture
def stocked(api: Api) -> Api:
    """A namespace with five labelled objects."""
    for name, labels in {
        "a": {"team": "vision", "tier": "1"},
        "b": {"team": "vision"},
        "c": {"team": "speech", "tier": "2"},
        "d": {"tier": "2"},
        "e": {},
    }.items():
        body = config_map(name)
        body["metadata"]["labels"] = {"set": "five", **labels}
        api.create("configmaps", body)
    return api


@pytest.mark.parametrize(
    ("selector", "names"),
    [
        ("team=vision", "ab"),
        ("team==vision,tier=1", "a"),
        ("team!=vision", "cde"),
        ("team in (vision, speech)", "abc"),
        ("team notin (vision)", "cde"),
        ("team", "abc"),
        ("!team", "de"),
        ("tier in (2),!team", "d"),
        ("tier>1", "cd"),
    ],
)
def test_label_selector_chooses(stocked: Api, selector: str, names: str) -> None:
    listing = stocked.get("configmaps", labelSelector=f"set=five,{selector}")
    assert _names(listing) == list(names)


def test_field_selector_chooses_by_name(stocked: Api) -> None:
    assert _names(stocked.get("configmaps", fieldSelector="metadata.name=b")) == ["b"]


def test_pods_are_chosen_by_phase_and_node(api: Api) -> None:
    api.create("pods", pod("a"))
    assert _names(api.get("pods", fieldSelector="status.phase=Pending,spec.nodeName=")) == ["a"]
    assert _names(api.get("pods", fieldSelector="status.phase!=Pending")) == []


def test_pages_go_through_the_whole_list_once(stocked: Api) -> None:
    query = {"labelSelector": "set=five", "limit": 2}
    first = stocked.get("configmaps", **query)
    second = stocked.get("configmaps", **query, **{"continue": first["metadata"]["continue"]})
    third = stocked.get("configmaps", **query, **{"continue": second["metadata"]["continue"]})
    assert [*_names(first), *_names(second), *_names(third)] == list("abcde")
    assert not third["metadata"].get("continue")


def test_pages_show_one_moment(stocked: Api) -> None:
    query = {"labelSelector": "set=five", "limit": 3}
    first = stocked.get("configmaps", **query)
    stocked.delete("configmaps", "d")
    rest = stocked.get("configmaps", **query, **{"continue": first["metadata"]["continue"]})
    assert _names(rest) == ["d", "e"]
    assert rest["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


def test_broken_continue_is_a_bad_request(stocked: Api) -> None:
    stocked.call("GET", stocked.path("configmaps"), **{"continue": "nonsense"}).expect(400)


def test_list_names_its_kind_and_version_and_items_do_not(stocked: Api) -> None:
    listing = stocked.get("configmaps")
    assert (listing["kind"], listing["apiVersion"]) == ("ConfigMapList", "v1")
    newest = max(int(item["metadata"]["resourceVersion"]) for item in listing["items"])
    assert int(listing["metadata"]["resourceVersion"]) >= newest
    assert "kind" not in listing["items"][0]


def test_all_namespaces_are_listed_together(stocked: Api) -> None:
    listing = stocked.call("GET", "/api/v1/configmaps", labelSelector="set=five").expect(200)
    assert stocked.namespace in {item["metadata"]["namespace"] for item in listing["items"]}


def test_table_is_served_on_request(stocked: Api) -> None:
    accept = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
    table = stocked.call("GET", stocked.path("configmaps"), headers=accept).expect(200)
    assert table["kind"] == "Table"
    assert table["columnDefinitions"][0]["name"] == "Name"
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
