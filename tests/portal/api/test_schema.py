"""The OpenAPI document, compared with the one that clients were written against.

A change that is meant: ``manage.py spectacular --file tests/portal/api/openapi.yaml``, then read its diff.
"""

from pathlib import Path

import yaml
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.renderers import OpenApiYamlRenderer
from drf_spectacular.validation import validate_schema

SNAPSHOT = Path(__file__).with_name("openapi.yaml")


def schema():
    GENERATOR_STATS.reset()
    return SchemaGenerator().get_schema(request=None, public=True)


def test_schema_is_the_committed_one():
    text = OpenApiYamlRenderer().render(schema(), renderer_context={})
    drawn = yaml.load(text, Loader=yaml.CSafeLoader)
    assert drawn == yaml.load(SNAPSHOT.read_text(), Loader=yaml.CSafeLoader)


def test_schema_is_valid_and_drawn_without_a_warning():
    validate_schema(schema())
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache


def test_every_operation_may_answer_with_an_error():
    for path, operations in schema()["paths"].items():
        for operation in operations.values():
            assert "default" in operation["responses"], path
