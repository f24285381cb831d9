"""What the texts of the grid and the form mean."""

from decimal import Decimal

import pytest

from portal.web.quotas.edit_form import figure_text, parse_figure
from scheduling.services.queues.save import EditFault, Field, Values


@pytest.mark.parametrize(
    ("text", "value"), [("8", 8), (" 0.5 ", "0.5"), ("+4", 4), ("007", 7), ("-1", -1), ("−1", -1)]
)
def test_figure_is_read_as_it_stands(text, value):
    assert parse_figure(text, Field.NOMINAL) == Decimal(value)


@pytest.mark.parametrize("text", ["", "all", "ALL", " unlimited", "none", "∞"])
def test_limit_may_be_unlimited(text):
    assert parse_figure(text, Field.BORROWING_LIMIT) is None


def test_empty_nominal_is_left_to_the_service_to_refuse():
    assert parse_figure("", Field.NOMINAL) is None


@pytest.mark.parametrize(
    "text", ["all", "eight", "1,000", "0,5", "1e5", "NaN", "8 GPUs", "1.2.3", "٣", "9" * 40]
)
def test_what_is_no_figure_is_named(text):
    fault = parse_figure(text, Field.NOMINAL)

    assert isinstance(fault, EditFault)
    assert fault.code == "not_a_number"
    assert len(fault.sentence) < 60


def test_figures_stand_in_cells_without_thousands_apart():
    values = Values(nominal=1_234_500, borrowing_limit=None, weight=Decimal("1.000"))

    texts = {each.value: figure_text(values, each) for each in Field}
    assert texts == {
        "nominal": "1234.5",
        "borrowing_limit": "all",
        "lending_limit": "all",
        "weight": "1",
        "budget_gpu_hours": "all",
    }
