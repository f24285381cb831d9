"""The page of all queues: one table, sortable, whose sums agree for every reader."""

import re

import pytest

from portal.accounts.models import User
from portal.web.overview.queue_table import COLUMNS, TREE, queue_table
from portal.web.sorting import Sort
from scheduling.models import Queue

pytestmark = pytest.mark.django_db
URL = "/c/fra1/queues/"
FIGURES = ("nominal", "fair_share", "held", "waiting", "running_count", "waiting_count")


def table_of(cluster, name, chosen=None, by=TREE):
    classes = list(cluster.gpu_classes.all())
    return queue_table(cluster, User.objects.get(username=name), classes, chosen, by)


@pytest.mark.parametrize("name", ["m.okafor", "researcher", "q.nguyen", "lead", "admin"])
@pytest.mark.parametrize("by", [TREE, Sort("held", falls=True)], ids=str)
def test_lines_add_up_to_the_total_for_every_reader(cluster, name, by):
    for chosen in (None, *cluster.gpu_classes.all()):
        table = table_of(cluster, name, chosen, by)
        lines = [line for line in table.lines if line.depth == 0]
        for figure in FIGURES:
            parts = sum(getattr(line.amounts, figure) for line in lines)
            assert parts == pytest.approx(getattr(table.total, figure)), (chosen, figure)


@pytest.mark.parametrize("name", ["m.okafor", "researcher", "lead"])
def test_lines_below_a_queue_add_up_to_it(cluster, name):
    lines = table_of(cluster, name, cluster.gpu_classes.first()).lines
    for i, top in enumerate(lines):
        below = []
        for line in lines[i + 1 :]:
            if line.depth <= top.depth:
                break
            below += [line] if line.depth == top.depth + 1 else []
        if below:
            assert sum(line.amounts.held for line in below) == top.amounts.held


def test_classes_together_count_a_slice_as_its_part(cluster):
    parts = [table_of(cluster, "admin", c).total for c in cluster.gpu_classes.all()]
    whole = table_of(cluster, "admin").total
    weights = [1 / 7 if "mig" in c.name else 1 for c in cluster.gpu_classes.all()]
    held = sum(w * part.held for w, part in zip(weights, parts, strict=True))
    assert whole.held == pytest.approx(held)


def test_counts_of_a_class_add_up_to_all_where_work_asks_for_one(cluster):
    parts = [table_of(cluster, "admin", c).total for c in cluster.gpu_classes.all()]
    whole = table_of(cluster, "admin").total
    assert sum(part.waiting_count for part in parts) == whole.waiting_count
    assert sum(part.running_count for part in parts) == whole.running_count


@pytest.mark.parametrize("column", [c for c in COLUMNS if c.key != "tree"], ids=lambda c: c.key)
def test_table_is_sorted_by_any_figure_both_ways(cluster, as_user, column):
    for falls in (True, False):
        response = as_user("admin").get(f"{URL}?sort={Sort(column.key, falls)}")
        values = [getattr(line.amounts, column.key) for line in response.context["table"].lines]
        assert values == sorted(values, reverse=falls)
        chosen = [head for head in response.context["heads"] if head.aria not in ("", "none")]
        assert [head.aria for head in chosen] == ["descending" if falls else "ascending"]


def test_unknown_order_is_the_tree(cluster, as_user):
    response = as_user("admin").get(f"{URL}?sort=-colour")
    assert response.context["table"].is_tree


def test_heads_keep_the_class_and_classes_keep_the_order(cluster, as_user):
    html = as_user("admin").get(f"{URL}?class=l4&sort=-held").content.decode()
    assert 'href="?class=l4&amp;sort=-nominal"' in html
    assert 'href="?sort=-held&amp;class=h100-80gb"' in html
    assert 'href="?sort=-held"' in html


def test_page_names_no_queue_that_the_reader_may_not_see(cluster, as_user):
    for query in ("", "?sort=-held", "?class=l4"):
        html = as_user("m.okafor").get(URL + query).content.decode()
        assert "that you may not see" in html
        for foreign in ("assistant", "recommend", "speech", "vision", "products"):
            assert not re.search(rf"\b{foreign}\b", html)


def test_queue_that_holds_says_so(cluster, as_user):
    Queue.objects.filter(name="vision").update(stop="hold")
    assert "Hold" in as_user("admin").get(URL).content.decode()
