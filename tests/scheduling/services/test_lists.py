import pytest

from scheduling.models import Workload
from scheduling.services.lists import few
from scheduling.services.snapshot.departures import sentence


@pytest.mark.parametrize(
    ("names", "shown"),
    [([], ""), (["a"], "a"), (["a", "b"], "a, b"), (["a", "b", "c"], "a, b and 1 more")],
)
def test_names_past_the_most_are_counted(names, shown):
    assert few(names, 2) == shown


@pytest.mark.parametrize(("milli", "held"), [(1000, "hold 1 GPU."), (8000, "hold 8 GPUs.")])
def test_work_that_stays_is_counted_in_plain_words(milli, held):
    assert held in sentence(Workload(queue_label="nlp"), milli)
