"""Which modules of the engine write which tables: read off the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from functools import cache
from pathlib import Path
from typing import Any, get_args, get_type_hints

from scheduling.engine.compile.structs import DECLARED
from scheduling.engine.state.session import Session

ENGINE = Path(__file__).parents[3] / "scheduling" / "engine"
STRUCTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in DECLARED
    if kind.__module__.startswith("scheduling.engine.state")
}
FIELDS = {name: get_type_hints(kind) for name, kind in STRUCTS.items()}
HINTS = cache(get_type_hints)
ROOTS = {"world": Session, "buffers": Session, "session": Session}

Place = tuple[str, str]
"""A struct and a field."""


def writers() -> dict[Place, set[str]]:
    """Modules, as ``room.module``, by the table that they assign to."""
    found: dict[Place, set[str]] = defaultdict(set)
    for path in sorted(ENGINE.rglob("*.py")):
        module = ".".join(path.relative_to(ENGINE).with_suffix("").parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef):
                for place in _Function(node).written:
                    found[place].add(module)
    return found


class _Function(ast.NodeVisitor):
    """What one function writes. A name stands for a struct or a table by its annotation or its assignment."""

    def __init__(self, node: ast.FunctionDef) -> None:
        self.known: dict[str, Any] = {}
        self.written: set[Place] = set()
        for arg in (*node.args.args, *node.args.kwonlyargs):
            note = arg.annotation
            name = note.id if isinstance(note, ast.Name) else ""
            self.known[arg.arg] = STRUCTS.get(name) or ROOTS.get(arg.arg)
        for statement in node.body:
            self.visit(statement)

    def means(self, e: ast.expr | None) -> Any:
        """A struct, or a place; None for anything else."""
        if isinstance(e, ast.Name):
            return self.known.get(e.id)
        if isinstance(e, ast.IfExp):
            return self.means(e.body)
        return self._field(e) if isinstance(e, ast.Attribute) else None

    def _field(self, e: ast.Attribute) -> Any:
        of = self.means(e.value)
        if not isinstance(of, type):
            return ROOTS.get(e.attr)
        kind = HINTS(of).get(e.attr)
        return kind if kind is None or kind in DECLARED else (of.__name__, e.attr)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._store(node.target)

    def _bind(self, target: ast.expr, value: ast.expr | None) -> None:
        if isinstance(target, ast.Tuple):
            same = isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts)
            values = (
                value.elts if same and isinstance(value, ast.Tuple) else [None] * len(target.elts)
            )
            for one, its in zip(target.elts, values, strict=True):
                self._bind(one, its)
        elif isinstance(target, ast.Name):
            self.known[target.id] = self.means(value)
        else:
            self._store(target)

    def _store(self, target: ast.expr) -> None:
        at = target.value if isinstance(target, ast.Subscript) else target
        place = self.means(at) if not isinstance(at, ast.Name) or at is not target else None
        if isinstance(place, tuple):
            self.written.add(place)


def sizes() -> dict[str, int]:
    """Fields of each struct, those of structs inside it aside."""
    return {
        name: sum(not (hint in DECLARED or get_args(hint) in DECLARED) for hint in hints.values())
        for name, hints in FIELDS.items()
    }
