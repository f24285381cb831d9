"""People of a large organisation at the portal, for locust: `manage.py load` starts it.

Each opens a live page, keeps its stream open, and reads on: a researcher their work, a lead the queues and
quotas of a department, an admin reports of the whole. Their names are in the file that
WEIR_LOAD_PEOPLE names.
"""

import json
import os
import random
from collections import defaultdict
from itertools import cycle

import gevent
from locust import HttpUser, between, task

with open(os.environ["WEIR_LOAD_PEOPLE"], encoding="utf-8") as file:
    PEOPLE = json.load(file)
READS = between(*(float(s) for s in os.environ.get("WEIR_LOAD_READS_S", "60,120").split(",")))
OF = defaultdict(list)
for person in PEOPLE:
    OF[person["persona"]].append(person)
NEXT = {persona: cycle(people) for persona, people in OF.items()}


class Person(HttpUser):
    abstract = True
    persona = ""
    wait_time = READS

    def on_start(self) -> None:
        self.who = next(NEXT[self.persona])
        self.client.cookies.set(self.who["cookie"], self.who["value"])
        self.stream = gevent.spawn(self.listen)

    def on_stop(self) -> None:
        self.stream.kill()

    def listen(self) -> None:
        """Its live page: one stream that is opened again when the server ends it."""
        while True:
            with self.client.get(
                "/c/large/live",
                stream=True,
                name="live stream",
                catch_response=True,
                timeout=(30, 60),
            ) as answer:
                if answer.status_code != 200:
                    answer.failure(f"answered {answer.status_code}")
                    gevent.sleep(30)
                    continue
                answer.success()
                for _ in answer.iter_lines():
                    pass
            gevent.sleep(random.uniform(1, 3))  # noqa: S311 - a pause

    def read(self, page: str) -> None:
        """``page``, or the list above it for whoever has no such thing."""
        address = page.format(**self.who).replace("w//", "workloads/").replace("//", "/")
        self.client.get(f"/c/large/{address}", name=page or "overview")


class Researcher(Person):
    persona = "researcher"
    weight = len(OF["researcher"])

    @task(4)
    def own_work(self) -> None:
        self.read("work/")

    @task(3)
    def one_workload(self) -> None:
        self.read("w/{workload}/")

    @task(2)
    def all_workloads(self) -> None:
        self.read("workloads/")

    @task(1)
    def queue(self) -> None:
        self.read("queues/{queue}/")


class Lead(Person):
    persona = "team lead"
    weight = len(OF["team lead"])

    @task(3)
    def overview(self) -> None:
        self.read("")

    @task(2)
    def quotas(self) -> None:
        self.read("quotas/{department}/")

    @task(2)
    def waits(self) -> None:
        self.read("reports/waits")

    @task(1)
    def utilization(self) -> None:
        self.read("reports/utilization?range=7d")


class Admin(Person):
    persona = "admin"
    weight = len(OF["admin"])

    @task(4)
    def overview(self) -> None:
        self.read("")

    @task(2)
    def nodes(self) -> None:
        self.read("nodes/")

    @task(1)
    def preemptions(self) -> None:
        self.read("reports/preemptions")

    @task(1)
    def longest(self) -> None:
        self.read("reports/longest")
