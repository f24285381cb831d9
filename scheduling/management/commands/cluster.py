"""`manage.py cluster …`: bring a cluster under Weir, see what it lacks, and say what Weir may do there."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from kubernetes.config import ConfigException

from scheduling.cluster.connection.client import ApiError, Client
from scheduling.engine.reasons.wording import plural
from scheduling.management.command import Parser, refusal
from scheduling.management.database import DatabaseCommand
from scheduling.models import Cluster, ClusterMode, GuardrailState
from scheduling.models.credentials import is_kept
from scheduling.services.clusters import add as clusters
from scheduling.services.clusters import checkup, guardrails, outside
from scheduling.services.clusters.connecting import take_in
from scheduling.services.clusters.enforcing import enforce
from scheduling.services.clusters.gaps import Grade
from scheduling.services.errors import ServiceError
from scheduling.services.queues.sharing import SAID

ADDRESS = ("api_url", "token_file", "portal_token_file", "ca_file", "kubeconfig", "context")
FILES = ("token_file", "portal_token_file", "ca_file", "kubeconfig")
MARKS = {Grade.GOOD: "ok  ", Grade.ADVICE: "note", Grade.MISSING: "LACK"}
MODES = {mode.value: mode for mode in ClusterMode}


class Command(DatabaseCommand):
    help = "Add a cluster, check it, compare its guardrails, set its mode."

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True, parser_class=Parser)
        verbs.add_parser("list", help="Every cluster, its mode and when it was planned last.")
        add = verbs.add_parser("add", help="Add a cluster, to be observed at first.")
        add.add_argument("name")
        for field in ADDRESS:
            add.add_argument(f"--{field.replace('_', '-')}", default="")
        for verb, text in (
            ("classes", "Make GPU classes of what the nodes show."),
            ("check", "Say what the cluster lacks; fails when something needed is missing."),
            (
                "outside",
                "List work with GPUs that names no queue, each with the line that labels it.",
            ),
            ("guardrails", "Compare the objects that Weir keeps; reads only."),
        ):
            verbs.add_parser(verb, help=text).add_argument("name")
        take = "Take the files that its row names into the database, enciphered, for every process."
        keep = verbs.add_parser("keep", help=take)
        keep.add_argument("name")
        for field in FILES:
            keep.add_argument(f"--{field.replace('_', '-')}", default="", help="Another one.")
        reserve = verbs.add_parser("reserve", help="Keep nodes of a GPU class for GPU work.")
        reserve.add_argument("name")
        reserve.add_argument("gpu_class")
        which = reserve.add_mutually_exclusive_group()
        which.add_argument("--nodes", action="append", default=[], metavar="LABEL=VALUE")
        which.add_argument("--none", action="store_true", help="Let other work there again.")
        mode = verbs.add_parser("mode", help="Observe, enforce or pause a cluster.")
        mode.add_argument("name")
        mode.add_argument("mode", choices=MODES)
        read = "To enforce: what stays outside the queues and was read, as the refusal names it."
        mode.add_argument("--left", default="", metavar="DIGEST", help=read)

    def handle(self, *args: Any, verb: str, **options: Any) -> None:
        try:
            getattr(self, f"_{verb}")(**options)
        except Cluster.DoesNotExist:
            known = ", ".join(Cluster.objects.values_list("name", flat=True)) or "none yet"
            raise refusal(f"There is no cluster {options['name']!r}. Known: {known}.") from None
        except (ServiceError, ConfigException) as error:
            raise refusal(str(error)) from error
        except (ApiError, OSError) as error:
            raise CommandError(str(error)) from error

    def _list(self, **_: Any) -> None:
        for cluster in Cluster.objects.all():
            planned = f"{cluster.planned_at:%F %T}Z" if cluster.planned_at else "never planned"
            self.say(f"{cluster.name:<20} {cluster.mode:<8} {planned}  {_where(cluster)}")

    def _add(self, *, name: str, **options: Any) -> None:
        cluster = clusters.add(name, **{field: options[field] for field in ADDRESS})
        self.say(f"{cluster.name} is added and will be observed ({_where(cluster)}).")
        self.say(
            f"GPUs above nominal are given out by {cluster.sharing}; the policy's page changes that:"
        )
        for way, said in SAID.items():
            self.say(f"  {way.value}: {said}")
        self.say(f"Next: manage.py cluster check {cluster.name}")

    def _keep(self, *, name: str, **options: Any) -> None:
        cluster = Cluster.objects.get(name=name)
        for field in FILES:
            setattr(cluster, field, options[field] or getattr(cluster, field))
        taken = take_in(cluster)
        said = ", ".join(taken).replace("_file", "")
        self.say(
            f"{name}: {said} kept; the files are needed no more."
            if taken
            else "No file to take in."
        )

    def _classes(self, *, name: str, **_: Any) -> None:
        made = clusters.find_classes(Cluster.objects.get(name=name))
        for gpu_class in made:
            label = ", ".join(f"{k}={v}" for k, v in gpu_class.node_labels.items()) or "every node"
            self.say(f"{gpu_class.name}: {gpu_class.resource_name} on {label}")
        if not made:
            self.say("No GPUs that no class covers yet.")

    def _check(self, *, name: str, **_: Any) -> None:
        cluster = Cluster.objects.get(name=name)
        Client.connect(
            cluster
        ).close()  # What it is reached by is what people wrote: refused, not lacking.
        items = checkup.check(cluster)
        for item in items:
            self.say(f"{MARKS[item.grade]}  {item.topic}: {item.sentence}")
            if item.remedy:
                self.say(f"      → {item.remedy}")
        lacking = sum(item.grade is Grade.MISSING for item in items)
        if lacking:
            things = "1 needed thing is" if lacking == 1 else f"{lacking} needed things are"
            raise CommandError(f"{things} missing.", returncode=1)
        self.say("Nothing needed is missing.")

    def _outside(self, *, name: str, **_: Any) -> None:
        found = outside.look(Cluster.objects.get(name=name))
        for one in found:
            of = f" of {one.user}" if one.user else ""
            self.say(f"{one.namespace}/{one.name}: {one.kind}{of}, {plural(one.gpus, 'GPU')}")
            self.say(f"      → {one.line or one.remedy}")
        taken = sum(bool(one.line) for one in found)
        self.say(f"{len(found)} outside the queues; a label brings {taken} in.")

    def _guardrails(self, *, name: str, **_: Any) -> None:
        cluster = Cluster.objects.get(name=name)
        client = Client.connect(cluster)
        try:
            findings = guardrails.look(cluster, client)
        finally:
            client.close()
        for finding in findings:
            where = f"{finding.namespace}/" if finding.namespace else ""
            why = finding.detail or ", ".join(finding.fields)
            line = f"{finding.standing.label:<17} {finding.kind} {where}{finding.name}"
            self.say(f"{line}  ({why})" if why else line)
        out = sum(f.standing != GuardrailState.IN_STEP for f in findings)
        self.say(f"{len(findings)} guardrails, {out} out of step.")

    def _reserve(
        self, *, name: str, gpu_class: str, nodes: list[str], none: bool, **_: Any
    ) -> None:
        cluster = Cluster.objects.get(name=name)
        found = cluster.gpu_classes.filter(name=gpu_class).first()
        if found is None:
            raise CommandError(f"{name} has no GPU class {gpu_class!r}.")
        labels = dict(node.partition("=")[::2] for node in nodes)
        selector = clusters.reserve(found, None if none else labels).reserved_labels
        said = ", ".join(f"{key}={value}" for key, value in selector.items())
        rule = f"nodes with {said} take GPU work only." if said else "other work may go there."
        self.stdout.write(f"{name}: {rule}")

    def _mode(self, *, name: str, mode: str, left: str, **_: Any) -> None:
        found, wanted = Cluster.objects.get(name=name), MODES[mode]
        enforces = wanted == ClusterMode.ENFORCE
        changed = enforce(found, left=left) if enforces else clusters.set_mode(found, wanted)
        self.say(f"{name}: {mode}{'' if changed else ', as before'}.")


def _where(cluster: Cluster) -> str:
    if cluster.api_url:
        return cluster.api_url
    if cluster.kubeconfig:
        place = "a kubeconfig that is kept" if is_kept(cluster.kubeconfig) else cluster.kubeconfig
        return f"context {cluster.context or 'current'} of {place}"
    return "the pod's service account"
