"""The parts of an environment as CycloneDX: `python docker/bill_of_materials.py PYTHON > weir.cdx.json`.

PYTHON is the interpreter whose environment is listed, such as the image's; this one needs what
requirements-dev.txt pins.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
ASKED = """import json, importlib.metadata as m
print(json.dumps([{"name": d.name, "version": d.version} for d in m.distributions()]))"""


def installed(command: Iterable[str]) -> list[dict[str, str]]:
    """What the Python that ``command`` starts has, by its own word."""
    done = subprocess.run(  # noqa: S603 - a Python that the caller names
        [*command, "-c", ASKED], capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def bill(parts: Iterable[Mapping[str, Any]], version: str) -> str:
    """``parts`` as a bill of Weir's ``version``, in JSON."""
    made = Bom()
    made.metadata.component = Component(
        type=ComponentType.APPLICATION, name="weir", version=version
    )
    for part in sorted(parts, key=lambda part: part["name"].lower()):
        name, its = part["name"].lower().replace("_", "-"), part["version"]
        found = Component(
            name=name,
            version=its,
            bom_ref=f"{name}@{its}",
            purl=PackageURL("pypi", None, name, its),
        )
        made.components.add(found)
    made.register_dependency(made.metadata.component, made.components)
    return make_outputter(made, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=1)


if __name__ == "__main__":
    release = tomllib.loads(PROJECT.read_text())["project"]["version"]
    sys.stdout.write(bill(installed([sys.argv[1]]), release) + "\n")
