"""JSON and YAML of bounded depth that say only what JSON can say."""

import json
import time
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from portal.boundary.structure import DEEPEST, MalformedError, from_json, from_yaml
from tests.security.hostile import RAW_JSON, YAML

TEXT = st.text(st.characters(exclude_categories=["Cs", "Cc"]))
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
)
FINE_JSON = {"a string", "a number", "null", "a list", "two megabytes"}
FINE_YAML = {"timestamp", "year 9999", "no such day", "two documents", "text", "nothing"}


@given(value=VALUES)
def test_json_reads_as_the_framework_reads_it(value):
    assert from_json(json.dumps(value).encode()) == value


@pytest.mark.parametrize("what", [what for what in RAW_JSON if what not in FINE_JSON])
def test_hostile_json_is_refused_in_words(what):
    with pytest.raises(MalformedError, match=r"\w+ \w+"):
        from_json(RAW_JSON[what])


@pytest.mark.parametrize("what", [what for what in YAML if what not in FINE_YAML])
def test_hostile_yaml_is_refused_in_words(what):
    with pytest.raises(MalformedError, match=r"\w+ \w+"):
        from_yaml(YAML[what])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n2: b", "Line 2, column 1: this key (2) is no text; quote it"),
        ("a:\n  b: !!binary aGk=", "Line 2, column 6: values of the type binary are not read"),
        ("a: 1\nb: 2\na: 3", "Line 3, column 1: the key a stands twice"),
        ("a: [1, .nan]", "Line 1, column 8: .nan is no number"),
        ('a: {b: ["x", "\\0"]}', "a.b[1]: It holds a NUL"),
    ],
)
def test_refusal_of_yaml_says_where(text, said):
    with pytest.raises(MalformedError) as refused:
        from_yaml(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded_exactly(opening, closing):
    def nested(depth: int) -> bytes:
        return (opening * depth + "1" + closing * depth).encode()

    from_json(nested(DEEPEST))
    with pytest.raises(MalformedError):
        from_json(nested(DEEPEST + 1))


@pytest.mark.parametrize("scalar", ["2026-01-01", "1:30", "1:30.5", "9999-12-31T23:59:59-12:00"])
def test_what_kubectl_reads_as_text_stays_text(scalar):
    assert from_yaml(f"a: {scalar}") == [{"a": scalar}]


@given(value=st.dictionaries(TEXT, VALUES, max_size=4))
def test_yaml_reads_back_what_was_written(value):
    assert from_yaml(yaml.safe_dump(value)) == [value]


@pytest.mark.parametrize("piece", ["[", "{", "- ", "? ", "&a ", "a: b\n", "{a: ", "'x", "|\n", "!"])
def test_64_kib_of_one_thing_are_read_or_refused_in_seconds(piece):
    text = (piece * 65536)[:65536]
    began = time.process_time()
    with suppress(MalformedError):
        from_yaml(text)
    assert time.process_time() - began < 10
