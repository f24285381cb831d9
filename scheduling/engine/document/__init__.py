"""The snapshot file: read, written, and described by a JSON Schema."""

from scheduling.engine.document.reader import dump, parse, schema
from scheduling.engine.document.writer import Writer

__all__ = ["Writer", "dump", "parse", "schema"]
