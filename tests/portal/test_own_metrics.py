"""Weir's own metrics: for whoever has the token, and the board that draws them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from django.conf import settings
from prometheus_client.parser import text_string_to_metric_families

from portal.alerts.models import Firing, Rule
from portal.config.own_metrics import Weir
from scheduling.services.worker.probes import metrics
from tests.factories import NOW, example_cluster

pytestmark = pytest.mark.django_db
TOKEN = "s3cret-of-this-test"
BOARD = Path(settings.BASE_DIR) / "docker/grafana/weir.json"


def ask(token: str = "") -> tuple[int, str]:
    answer = metrics(f"Bearer {token}" if token else "", (Weir(),))
    return answer.status, answer.body.decode()


@pytest.mark.parametrize(
    ("known", "sent"), [("", ""), ("", "None"), (TOKEN, ""), (TOKEN, "another")]
)
def test_metrics_are_absent_without_the_token(settings, known, sent):
    settings.WEIR_METRICS_TOKEN = known

    assert ask(sent)[0] == 404


def test_metrics_tell_what_the_ledger_knows(settings):
    settings.WEIR_METRICS_TOKEN = TOKEN
    cluster = example_cluster()
    rule = Rule.objects.create(cluster=cluster, figure="longest_wait", over=60)
    Firing.objects.create(rule=rule, since=NOW, peak=90)

    status, text = ask(TOKEN)

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert status == 200
    (firing,) = families["weir_alerts_firing"].samples
    assert firing.labels == {"cluster": "fra1", "figure": "longest_wait", "queue": ""}
    ready = {s.labels["gpu_class"]: s.value for s in families["weir_ready_gpus"].samples}
    assert ready["h100-80gb"] == 120
    held = [
        s.value
        for s in families["weir_queue_gpus"].samples
        if s.labels["figure"] == "allocated" and s.labels["gpu_class"] == "h100-80gb"
        and "/" not in s.labels["queue"]
    ]  # fmt: skip
    assert 0 < sum(held) <= 120
    assert families["weir_workloads"].samples


def test_board_draws_metrics_that_there_are():
    board = json.loads(BOARD.read_text())
    said = " ".join(t["expr"] for p in board["panels"] for t in p["targets"])
    drawn = {name.removesuffix("_total") for name in re.findall(r"\bweir_\w+", said)}

    assert drawn <= {family.name for family in Weir().collect()}
    assert len(drawn) >= 8
