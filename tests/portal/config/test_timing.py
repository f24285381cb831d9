"""What an answer cost, where the settings ask for it."""

import re

import pytest
from django.db import connection
from django.http import HttpResponse

from portal.config.timing import ServerTimingMiddleware

pytestmark = pytest.mark.django_db


def asking(times):
    def view(_request):
        for _ in range(times):
            with connection.cursor() as cursor:
                cursor.execute("SELECT 1")
        return HttpResponse()

    return view


@pytest.mark.parametrize("times", [0, 3])
def test_answer_tells_its_queries_and_times(rf, times):
    header = ServerTimingMiddleware(asking(times))(rf.get("/"))["Server-Timing"]
    assert re.fullmatch(rf'db;dur=[\d.]+;desc="{times}", cpu;dur=[\d.]+', header)


def test_each_answer_counts_its_own_queries(rf):
    served = ServerTimingMiddleware(asking(1))
    assert [served(rf.get("/"))["Server-Timing"].split('"')[1] for _ in range(2)] == ["1", "1"]
