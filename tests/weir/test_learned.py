"""Learned orders in a terminal."""

from __future__ import annotations

import pytest

from scheduling.models import LearnedOrder, LearnedState
from tests.learned import an_order


@pytest.fixture
def order(cluster):
    return an_order(cluster, LearnedState.SHADOW, version=3)


def test_list_tells_version_state_and_why(weir, order):
    done = weir("learned", "list", user="admin")
    assert "v3" in done.output
    assert "shadow" in done.output


def test_show_tells_weights_and_what_it_lacks(weir, order):
    done = weir("learned", "show", "3", user="admin")
    assert "expected_rest: -1.2" in done.output
    assert "the switch is off" in done.output


def test_differences_tell_what_they_led_to(weir, order):
    told = {"name": "ns/long"}
    for number in (7, 8):
        order.differences.create(number=number, at=order.since, decided=told, would=None)
    order.effects.create(
        number=8, at=order.since, until=order.since, wait_s=-1140, least_s=-1800, most_s=-240,
        lost_gpu_s=-1440,
    )  # fmt: skip
    done = weir("learned", "differences", "3", user="admin")
    assert "-19 min (-30 to -4)" in done.output
    assert "-0.4" in done.output
    assert "not replayed yet" in done.output


def test_show_of_none_says_how_one_is_trained(weir, cluster):
    done = weir("learned", "show", user="admin")
    assert done.exit_code != 0
    assert "weir learned train" in done.output


def test_train_that_is_refused_says_what_is_lacking(weir, cluster):
    done = weir("learned", "train", user="admin")
    assert done.exit_code != 0
    assert "whole day" in done.output


def test_switch_and_withdrawal_come_through(weir, order, cluster):
    weir("learned", "switch", "on", user="admin")
    cluster.refresh_from_db()
    assert cluster.learned_may_decide
    weir("learned", "withdraw", "3", "--reason", "not wanted", user="admin")
    assert LearnedOrder.objects.get().state == LearnedState.WITHDRAWN


def test_who_does_not_operate_the_cluster_finds_nothing(weir, order):
    assert weir("learned", "list", user="researcher").exit_code != 0
