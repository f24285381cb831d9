"""The snapshot file: read, written, and described by a JSON Schema."""

from scheduling.engine.document.reader import dump, parse, schema

__all__ = ["dump", "parse", "schema"]
