"""Laws of patches and of sets of fields."""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from workshop.testbed.server.kinds.resources import CONFIG_MAPS
from workshop.testbed.server.patches.apply import Manager, apply
from workshop.testbed.server.patches.fields import changed, fields_of, minus, removed, union
from workshop.testbed.server.patches.merge import merge_patch
from workshop.testbed.server.patches.strategic import strategic_patch

NAMES = st.sampled_from(["a", "b", "c", "nodeSelector"])
LEAVES = st.one_of(st.integers(0, 3), st.sampled_from(["x", "y"]), st.booleans())
CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": st.sampled_from(["p", "q"]), "image": st.sampled_from("12")}),
    max_size=2,
    unique_by=lambda item: item["name"],
)
MAPS = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=3),
    lambda inner: st.dictionaries(NAMES, st.one_of(LEAVES, inner), max_size=3),
    max_leaves=8,
)
OBJECTS = st.builds(lambda rest, items: {**rest, "containers": items}, MAPS, CONTAINERS)


@given(OBJECTS, OBJECTS)
@settings(max_examples=40, deadline=None)
def test_merge_patch_twice_is_once_and_changes_no_input(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert (target, patch) == before


@given(OBJECTS, OBJECTS)
@settings(max_examples=40, deadline=None)
def test_strategic_patch_twice_is_once_and_changes_no_input(target: Any, patch: Any) -> None:
    before = copy.deepcopy((target, patch))
    once = strategic_patch(target, patch)
    assert strategic_patch(once, patch) == once
    assert (target, patch) == before


@given(OBJECTS, OBJECTS)
@settings(max_examples=40, deadline=None)
def test_difference_is_empty_between_equals_only(one: Any, other: Any) -> None:
    assert changed(one, copy.deepcopy(one)) == {}
    assert removed(one, copy.deepcopy(one)) == {}
    if not changed(one, other) and not removed(one, other):
        # Lists owned by key may stand in another order.
        assert fields_of(one) == fields_of(other)


@given(OBJECTS, OBJECTS)
@settings(max_examples=40, deadline=None)
def test_sets_obey_their_algebra(one: Any, other: Any) -> None:
    a, b = fields_of(one), fields_of(other)
    assert union(a, a) == a
    assert minus(a, a) == {}
    assert minus(union(a, b), a) == minus(b, a)


@given(MAPS, MAPS)
@settings(max_examples=40, deadline=None)
def test_applying_again_with_less_leaves_what_is_still_wanted(first: Any, second: Any) -> None:
    manager = Manager("one", "Apply", "", "2026-01-05T08:00:00Z")
    live: Any = {"metadata": {"name": "a"}}
    for wanted in (first, second):
        body, managed = apply(CONFIG_MAPS, manager, {"data": wanted}, live, force=True)
        live = {**body, "metadata": {"name": "a", "managedFields": managed}}
    alone, _ = apply(
        CONFIG_MAPS, manager, {"data": second}, {"metadata": {"name": "a"}}, force=True
    )
    assert _bare(live.get("data", {})) == _bare(alone.get("data", {}))


def _bare(value: Any) -> Any:
    """Empty maps left behind by what was removed do not count."""
    if not isinstance(value, dict):
        return value
    kept = {key: _bare(child) for key, child in value.items()}
    return {key: child for key, child in kept.items() if child != {}}
