"""What adapts by itself, in a terminal."""

import json

import pytest

pytestmark = pytest.mark.django_db


def test_parameters_are_a_table_with_bounds_and_evidence(weir, cluster):
    text = " ".join(weir("study", "adapting", user="admin").stdout.split())
    assert "Adaptation is off." in text
    assert "half_life 7 d 2 d to 14 d" in text
    assert "backfill 0.9 0.5 to 0.95" in text
    assert "packing 0 0 to 0.5" in text


def test_switch_and_pin_are_told_back(weir, cluster):
    assert "Adaptation is on." in weir("study", "adapting", "on", user="admin").stdout
    assert (
        "Charge of a start: pinned"
        in weir("study", "adapting", "pin", "charge", user="admin").stdout
    )
    assert "follows feedback" in weir("study", "adapting", "let-go", "charge", user="admin").stdout
    assert "Adaptation is off." in weir("study", "adapting", "off", user="admin").stdout


def test_json_is_what_the_api_answers(weir, cluster):
    told = json.loads(weir("-o", "json", "study", "adapting", user="admin").stdout)
    assert (told["is_on"], len(told["parameters"])) == (False, 5)


@pytest.mark.parametrize(
    ("words", "user", "code"), [(("pin", "x"), "admin", 4), (("on",), "lead", 4)]
)
def test_what_may_not_be_is_refused(weir, cluster, words, user, code):
    assert weir("study", "adapting", *words, user=user).exit_code == code
