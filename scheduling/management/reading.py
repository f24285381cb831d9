"""How commands read a snapshot file, and what they say of a broken one."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, NoReturn

import yaml
from django.core.management.base import BaseCommand

from scheduling.engine import document
from scheduling.engine.model import Snapshot, SnapshotError

BROKEN_INPUT = 2


def read_snapshot(command: BaseCommand, name: str) -> Snapshot:
    """The snapshot in file ``name`` (``-``: standard input). Broken input ends the process with code 2
    and one line per fault: ``path: found X, expected Y``."""
    try:
        text = sys.stdin.read() if name == "-" else Path(name).read_text(encoding="utf-8")
        return document.parse(yaml.load(text, Loader=Loader))  # noqa: S506 - a SafeLoader
    except OSError as error:
        refuse(command, [f"{name}: found nothing readable ({error.strerror}), expected a file"])
    except UnicodeDecodeError as error:
        refuse(command, [f"{name}: found byte {error.start} is no text, expected UTF-8"])
    except yaml.YAMLError as error:
        refuse(command, [f"{name}: found {_one_line(error)}, expected YAML or JSON"])
    except RecursionError:
        refuse(command, [f"{name}: found lists inside lists without end, expected YAML or JSON"])
    except SnapshotError as error:
        refuse(command, [f"{p}: found {found}, expected {want}" for p, found, want in error.faults])
    except ValueError as error:
        refuse(command, [f"{name}: found a tag that belies its value ({error}), expected none"])


def refuse(command: BaseCommand, lines: list[str]) -> NoReturn:
    for line in lines:
        command.stderr.write(line)
    sys.exit(BROKEN_INPUT)


def _one_line(error: yaml.YAMLError) -> str:
    mark: Any = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "something else"
    said = problem.removeprefix("found ")
    return f"{said} in line {mark.line + 1}" if mark else said


class Loader(yaml.CSafeLoader if hasattr(yaml, "CSafeLoader") else yaml.SafeLoader):  # type: ignore[misc] # chosen at run time
    """Safe YAML in which a key that stands twice is a fault, not silently the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, (str, int, float)) and key in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"key {key!r} twice", key_node.start_mark
                )
            if isinstance(key, (str, int, float)):
                seen.add(key)
        return super().construct_mapping(node, deep=deep)

    def construct_yaml_timestamp(self, node: yaml.ScalarNode) -> Any:
        """An instant; one that no calendar has stays text, so that the fault names its field."""
        try:
            return super().construct_yaml_timestamp(node)
        except (ValueError, OverflowError):
            return self.construct_scalar(node)


Loader.add_constructor("tag:yaml.org,2002:timestamp", Loader.construct_yaml_timestamp)
