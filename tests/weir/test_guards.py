"""What a command sends so that nothing is done twice, and nothing of others is overwritten."""

from decimal import Decimal

import pytest
import requests

from scheduling.models import Queue, QuotaChange
from scheduling.services.queues.save import Field, QuotaCell, save_quotas
from tests.weir.conftest import Portal
from weir import api

SET = ("quota", "set", "pretraining", "h100-80gb.nominal=20", "--reason", "less")


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(api, "BETWEEN_S", 0)


def save_beside(*_, **__):
    """Somebody else's edit, while a person looks at the question."""
    cell = QuotaCell("pretraining", "h100-80gb", Field.NOMINAL, Decimal(21))
    save_quotas(
        queue=Queue.objects.get(name="language"), cells=[cell], author=None, reason="beside"
    )


@pytest.fixture
def sent(monkeypatch):
    """Headers of each call; ``lost`` are answers that never arrive."""
    kept, whole = [], Portal.send

    def send(portal, request, **how):
        kept.append(request)
        answer = whole(portal, request, **how)
        if send.lost and request.method == "POST":
            send.lost -= 1
            raise requests.exceptions.ConnectionError("reset")
        return answer

    send.lost = 0
    monkeypatch.setattr(Portal, "send", send)
    return send, kept


def test_call_whose_answer_was_lost_is_sent_again_and_done_once(weir, cluster, sent):
    send, calls = sent
    send.lost = 1
    done = weir(*SET, "-y", user="lead")
    assert done.exit_code == 0, done.output
    keys = [c.headers["Idempotency-Key"] for c in calls if c.method == "POST"]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert QuotaChange.objects.filter(reason="less").count() == 1


def test_calls_that_are_not_the_same_have_keys_of_their_own(weir, cluster, sent):
    _, calls = sent
    for _ in range(2):
        weir(*SET, "-y", user="lead")
    assert len({c.headers["Idempotency-Key"] for c in calls if c.method == "POST"}) == 2


def test_portal_that_never_answers_is_told_after_a_few_tries(weir, cluster, sent):
    send, calls = sent
    send.lost = 99
    done = weir(*SET, "-y", user="lead")
    assert done.exit_code == 5
    assert len([c for c in calls if c.method == "POST"]) == api.TRIES


def test_quota_that_others_changed_meanwhile_is_not_overwritten(weir, cluster, monkeypatch):
    monkeypatch.setattr("weir.commands.quotas.sure", save_beside)
    done = weir(*SET, user="lead")
    assert done.exit_code == 1
    assert "changed since" in done.stderr
    assert "run the command again" in done.stderr
    assert not QuotaChange.objects.filter(reason="less").exists()


def test_tree_that_others_changed_meanwhile_is_not_overwritten(
    weir, cluster, monkeypatch, tmp_path
):
    file = tmp_path / "tree.yaml"
    file.write_text("queues:\n  - name: research\n    priority: 3\n")
    monkeypatch.setattr("weir.commands.trees.sure", save_beside)
    done = weir("quota", "apply", "-f", str(file), "--reason", "x", user="admin")
    assert done.exit_code == 1
    assert "changed since" in done.stderr
