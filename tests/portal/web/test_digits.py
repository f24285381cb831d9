"""Figures of pages as people read them: no raw float, no '1 GPUs', no long spell in minutes."""

import re
from html import unescape

import pytest

from scheduling.models import Share, Workload
from tests.factories import NOW, make_workload
from tests.portal.reports import history

pytestmark = pytest.mark.django_db
PAGES = (
    "/c/fra1/", "/c/fra1/queues/", "/c/fra1/queues/pretraining/", "/c/fra1/work/", "/c/fra1/nodes/",
    "/c/fra1/nodes/h100-01/", "/c/fra1/quotas/language/", "/c/fra1/cycles/48213/",
)  # fmt: skip
RAW = re.compile(r"(?<![\w.:/-])\d+\.\d{3,}(?![\w.-])")
ONE = re.compile(
    r"(?<![\w.,])1 (?:GPUs|workloads|nodes|decisions|writes|evictions|reclaims|preemptions|hours|days)\b"
)
SHARE = re.compile(r"\d+\.\d{2,} %")
INDEX = re.compile(r"(Jain's index\D*)[01]\.\d{3}\b")
"""An index of fairness is told by its thousandths; all else of three places is a raw figure."""
LONG = re.compile(r"(?<![\d.,])(?:1[2-9]\d|[2-9]\d{2}|\d{4,}|\d+\.\d+) min\b")


def read(response) -> str:
    """What stands on the page, without marks and what is drawn."""
    assert response.status_code == 200
    body = re.sub(r"<(script|style|svg).*?</\1>", " ", response.content.decode(), flags=re.S)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


@pytest.fixture
def odd(cluster):
    """Shares and sizes that do not come out even."""
    thirds = {"kind": "spare", "gpus": 6.667, "n": 0.667, "u": 0.0833, "w": 0.583, "tier": 0}
    Share.objects.filter(queue__name="pretraining").update(
        fair_share=36666.667, guaranteed=24000.0, potential=43333.333, steps=[thirds]
    )
    Share.objects.filter(queue__name="alignment").update(fair_share=13333.333, guaranteed=12000)
    Share.objects.filter(queue__name="language").update(fair_share=66666.667, guaranteed=60000)
    for work in Workload.objects.filter(name="pt-13b-ctx32k"):
        work.evictions.update(lost_gpu_s=16 * 229.4 * 60, gpus=1000)
    make_workload(cluster.queues.get(name="vision"), name="third", gpus=1000)


def faults(page: str) -> list[str]:
    told = INDEX.sub(r"\1", page)
    return [found for kind in (RAW, ONE, LONG, SHARE) for found in kind.findall(told)]


@pytest.mark.parametrize("url", [*PAGES, "workload"])
def test_figures_of_a_page_are_for_people(as_user, odd, url):
    if url == "workload":
        url = f"/c/fra1/w/{Workload.objects.get(name='pt-13b-ctx32k').uid}/"
    assert faults(read(as_user("admin").get(url))) == []


@pytest.mark.parametrize("kind", ["utilization", "waits", "preemptions", "fairness"])
def test_figures_of_a_report_are_for_people(as_user, cluster, kind):
    history.write_samples(cluster, NOW, hours=30)
    history.write_workloads(cluster, NOW, count=100)
    history.write_evictions(cluster, NOW, count=10)
    client = as_user("admin")
    pages = [read(client.get(f"/c/fra1/reports/{kind}?range={span}")) for span in ("24h", "14d")]
    assert [fault for page in pages for fault in faults(page)] == []
