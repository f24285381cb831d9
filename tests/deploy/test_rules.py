"""Alert rules and boards name what processes export, and each rule is tried by promtool."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest
import yaml
from prometheus_client.core import Metric

from portal.config.own_metrics import Weir
from portal.config.probes import Answers
from scheduling.services.worker.probes import OfProcess
from tests.deploy.charts import CHART, ROOT, tools

RULES = CHART / "files/rules.yaml"
TRIED = ROOT / "tests/deploy/rules.test.yaml"
ENDINGS = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}


def rules() -> list[dict[str, str]]:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    return group["rules"]


def families() -> Iterator[Metric]:
    for collector in (Weir(), OfProcess(), Answers()):
        yield from collector.collect()


@pytest.fixture
def exported(db: None) -> set[str]:
    """Names of series, as Prometheus knows them."""
    return {f.name + ending for f in families() for ending in ENDINGS[f.type]}


def unknown(expression: str, exported: set[str]) -> set[str]:
    return set(re.findall(r"\bweir_\w+", expression)) - exported


def test_rules_name_metrics_that_some_process_exports(exported: set[str]) -> None:
    assert {r["alert"]: unknown(r["expr"], exported) for r in rules()} == {
        r["alert"]: set() for r in rules()
    }


def test_rule_of_a_metric_that_nobody_exports_is_found(exported: set[str]) -> None:
    assert unknown("max(weir_plan_age_minutes) > 2", exported) == {"weir_plan_age_minutes"}
    assert unknown("rate(weir_http_answers[5m])", exported) == {"weir_http_answers"}


def test_every_metric_is_named_in_the_manual(exported: set[str]) -> None:
    told = (ROOT / "docs/operations/run.md").read_text()

    assert {f.name for f in families() if f"`{f.name}" not in told} == set()


def test_every_rule_says_what_to_do_and_is_tried_firing_and_silent() -> None:
    tried = [
        (one["alertname"], bool(one["exp_alerts"]))
        for test in yaml.safe_load(TRIED.read_text())["tests"]
        for one in test["alert_rule_test"]
    ]

    assert sorted(tried) == sorted((r["alert"], fires) for r in rules() for fires in (True, False))
    for rule in rules():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["remedy"]
        assert rule["for"]


@pytest.mark.deploy
def test_rules_fire_where_they_are_meant_to_and_nowhere_else() -> None:
    for words in (["check", "rules", RULES], ["test", "rules", TRIED]):
        done = subprocess.run(
            [tools() / "promtool", *words], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
