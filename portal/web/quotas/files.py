"""The figures of a subtree as a file: kept by the browser, and filled into the grid again, where they are
looked at, planned and saved like any edit."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal

import yaml
from django.http import HttpResponse

from portal.web.frame.requests import attached
from portal.web.quotas.edit_form import PostedEdit, cell_name, read
from scheduling.models import Queue
from scheduling.services.queues.save import Grid
from scheduling.services.queues.tree_files import figure_edits, parse, tree_of

EXPORT, FILE = "file", "tree"
"""Parameter of the address that asks for the file; field that brings one."""


def exported(top: Queue, shown: Grid) -> HttpResponse:
    """What is below ``top`` with the figures in force, as ``weir quota apply`` takes it too."""
    queues = tree_of(top.cluster, shown.at, top)
    text = yaml.safe_dump({"queues": queues}, sort_keys=False, allow_unicode=True)
    return attached(text, f"{top.name}.yaml", "application/yaml")


def filled(top: Queue, shown: Grid, post: Mapping[str, str], zone_name: str) -> PostedEdit:
    """The edit that the posted file is against ``shown``. Raises ServiceError for a file that cannot be read,
    and for one that says more than figures of queues below ``top``."""
    _, cells = figure_edits(top, parse(post.get(FILE, ""), top.cluster, name="file"))
    queues = {row.queue.name: row.queue for row in shown.rows}
    classes = {one.name: one for one in shown.gpu_classes}
    texts = {
        cell_name(queues[cell.queue], classes[cell.gpu_class], cell.field): _text(cell.value)
        for cell in cells
    }
    return read(texts, shown, zone_name)


def _text(value: Decimal | None) -> str:
    return "all" if value is None else f"{value:f}"
