"""How nodes stand and why, as different people are told."""

from __future__ import annotations

import pytest

from portal.web.nodes.states import STATES, WORDS, causes, short_of, state_of
from scheduling.models import Node, Workload

G = 1000
CORDONED = {"code": "cordoned", "reason": "kubectl-cordon"}
SILENT = {"code": "silent", "reason": "NodeStatusUnknown", "since": "2026-11-19T09:12:00Z"}
TAINTED = {"code": "tainted", "reason": "maintenance=zebra", "message": "NoSchedule"}
NO_GPUS, NONE_OF_8 = {"code": "no_gpus"}, {"code": "no_gpus", "gpus": 8000}
UNHEALTHY = {"code": "unhealthy_gpus", "gpus": 2000}


def node(*troubles, ready=False, held=0):
    fields = {"gpus": 8 * G, "ready": ready, "allocated_gpus": held * G}
    return Node(name="n1", troubles=list(troubles), **fields)


@pytest.mark.parametrize(
    ("row", "state", "short"),
    [
        (node(ready=True), "open", ""),
        (node({"code": "reserved"}, ready=True), "open", ""),
        (node(UNHEALTHY, ready=True), "impaired", "2 GPUs unhealthy"),
        (node(CORDONED, held=5), "draining", "5 held"),
        (node(CORDONED), "drained", "cordoned"),
        (node(TAINTED), "closed", "tainted"),
        (node(SILENT, held=8), "down", "kubelet silent"),
        (node(CORDONED, SILENT), "down", "kubelet silent +1"),
        (node(NO_GPUS), "down", "no GPU offered"),
        (node(NONE_OF_8, held=8), "down", "8 GPUs not offered"),
        (node(CORDONED, NONE_OF_8), "down", "8 GPUs not offered +1"),
        (node({"code": "gone"}, held=8), "down", "gone"),
        (node(), "down", "not ready"),
    ],
)
def test_state_and_its_words_follow_from_what_is_wrong(row, state, short):
    assert (state_of(row).key, short_of(row)) == (state, short)


def test_no_two_states_have_the_same_mark():
    assert len({state.glyph for state in STATES.values()}) == len(STATES)


def test_every_cause_has_a_sentence_and_a_remedy():
    assert all(words.short and words.sentence and words.remedy for words in WORDS.values())


def test_cause_of_two_classes_of_one_machine_is_told_once():
    assert len(causes([node(CORDONED), node(CORDONED)], tells_all=True)) == 1


@pytest.mark.django_db
class TestPages:
    @pytest.fixture(autouse=True)
    def _two_in_trouble(self, cluster):
        self.work = Workload.objects.filter(state="running", placement__has_key="h100-09").first()
        self.set("h100-09", CORDONED)
        self.set("h100-10", SILENT, TAINTED)

    @staticmethod
    def set(name, *troubles):
        Node.objects.filter(name=name).update(ready=False, troubles=list(troubles))

    def test_tile_says_the_state_in_words(self, as_user):
        text = as_user("admin").get("/c/fra1/nodes/?domain=a3").content.decode()
        assert "Draining" in text
        assert "8 held" in text
        assert "kubelet silent +1" in text

    def test_draining_node_shows_the_work_it_still_holds(self, as_user):
        text = as_user("admin").get("/c/fra1/nodes/?state=draining").content.decode()
        assert f"/c/fra1/w/{self.work.uid}/" in text

    def test_state_of_the_address_narrows_what_is_drawn(self, as_user):
        text = as_user("admin").get("/c/fra1/nodes/?state=down").content.decode()
        assert "h100-10" in text
        assert "h100-09" not in text

    def test_state_that_is_none_is_absent(self, as_user):
        assert as_user("admin").get("/c/fra1/nodes/?state=zebra").status_code == 404

    def test_node_page_says_why_with_a_remedy(self, as_user):
        text = as_user("admin").get("/c/fra1/nodes/h100-10/").content.decode()
        assert WORDS["silent"].sentence in text
        assert WORDS["silent"].remedy in text
        assert "Last heard of" in text

    @pytest.mark.parametrize("trouble", [NO_GPUS, NONE_OF_8])
    def test_node_without_a_usable_gpu_is_down_with_a_remedy(self, as_user, trouble):
        self.set("h100-10", trouble)
        client = as_user("admin")
        assert "h100-10" in client.get("/c/fra1/nodes/?state=down").content.decode()
        text = client.get("/c/fra1/nodes/h100-10/").content.decode()
        assert "Down" in text
        assert "device plugin" in text
        assert "--field-selector spec.nodeName=h100-10" in text

    def test_texts_of_the_cluster_are_for_operators(self, as_user):
        assert (
            "maintenance=zebra" in as_user("admin").get("/c/fra1/nodes/h100-10/").content.decode()
        )
        text = as_user("p.rossi").get("/c/fra1/nodes/h100-10/").content.decode()
        assert WORDS["tainted"].sentence in text
        assert "zebra" not in text

    def test_draining_node_says_when_its_work_ends_at_the_latest(self, as_user):
        there = Workload.objects.filter(state="running", placement__has_key="h100-09")
        there.update(run_time_limit_s=3600)
        text = as_user("admin").get("/c/fra1/nodes/h100-09/").content.decode()
        assert "by run-time limits the last ends" in text
        there.update(run_time_limit_s=None)
        text = as_user("admin").get("/c/fra1/nodes/h100-09/").content.decode()
        assert "no end is known" in text

    def test_layout_by_device_is_said_to_be_unknown(self, as_user):
        sliced = Node.objects.filter(gpu_class__name__contains="mig").first()
        text = as_user("admin").get(f"/c/fra1/nodes/{sliced.name}/").content.decode()
        assert "is not told by the cluster" in text
