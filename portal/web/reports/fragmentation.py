"""What the page of fragmentation shows."""

from __future__ import annotations

from typing import Any

from portal.display.format import class_number
from portal.reports.figures import fragmentation as figures
from portal.reports.fragmentation import SHOWN, FragmentationReport, lost_of


def fragmentation_page(
    report: FragmentationReport, *, show_all: bool = False, **_: object
) -> dict[str, Any]:
    known = report.mean is not None
    return {
        "now_rows": [(row, class_number(row.gpu_class.position)) for row in report.now],
        "sums": {
            name: report.of_now(name) for name in ("free", "kept_back", "usable", "fragmented")
        },
        "figure": figures.by_period(report) if known else None,
        "day_rows": [
            (start, [line.means[i] for line in report.lines])
            for i, start in enumerate(report.periods.starts)
        ],
        "node_rows": report.nodes if show_all else report.nodes[:SHOWN],
        "orders": [(one, lost_of(one)) for one in report.orders],
    }
