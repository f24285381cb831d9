"""``weir logs``."""

import pytest

from tests.factories import make_workload
from weir.commands.logs import new_of

A, B, C = ("1", "a"), ("2", "b"), ("3", "c")


@pytest.mark.parametrize(
    ("shown", "lines", "new"),
    [
        ([], [A, B], [A, B]),
        ([A, B], [A, B, C], [C]),
        ([A, B], [B, C], [C]),
        ([A, B], [A, B], []),
        ([A], [C], [C]),
        ([A, B, B], [B, B, B], [B]),
    ],
)
def test_followed_log_is_written_once(shown, lines, new):
    assert list(new_of(shown, lines)) == new


@pytest.mark.django_db
def test_logs_of_waiting_work_say_that_there_are_none(weir, cluster, kube):
    make_workload(cluster.queues.get(name="pretraining"), name="probe", user="researcher")
    result = weir("logs", "probe", user="researcher")
    assert result.exit_code == 0, result.output
    assert "It has not started, so there is no log yet." in result.output
