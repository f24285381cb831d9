"""Accounts of ``sacctmgr dump CLUSTER`` as a tree of queues.

Slurm guarantees an account nothing: it shares by FairShare and caps by GrpTRES. So an account becomes a queue
with nominal 0, a weight, and a borrowing limit where it is capped.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weir.faults import Fault
from weir.importing.findings import NO_GPUS, Findings, Names, plain, without_empty
from weir.printing import counted

LINE = re.compile(r"(Cluster|QOS|Parent|Account|User)\s+-\s+(?:'([^']*)'|([^:\s]+))\s*:?(.*)")
OPTION = re.compile(
    r"((?:Admin|Classif|Comment|Coord|Default|Desc|Fair|Share|Flag|Grp|Max|Min|Org|Part|Prio|Q[Oo][Ss]|WCKey|Usage)"
    r"\w*)=(.*)",
    re.DOTALL | re.IGNORECASE,
)
"""An option's beginning. What follows a colon and is none belongs to the one before: gres/gpu:h100=8."""
GPU = "gres/gpu"
SAYS_NOTHING = (
    "Description",
    "Organization",
    "DefaultAccount",
    "AdminLevel",
    "FairShare",
    "Comment",
)
INSTEAD = {
    "GrpJobs": "set how many workloads run at once on the queue's page",
    "GrpTRESMins": "give the queue a budget: weir quota set QUEUE CLASS.budget_gpu_hours=N",
    "MaxJobs": "set how many workloads each person runs on the queue's page",
    "MaxTRESPerJob": "a rule of requests bounds one workload: the page of request rules",
    "QOS": "priority classes order workloads within a queue",
    "DefaultQOS": "priority classes order workloads within a queue",
    "Coordinator": "give the person a role in the queue's team",
    "MaxWallDurationPerJob": "a rule of requests bounds one workload: the page of request rules",
}
SPELT = {name.lower(): name for name in (*SAYS_NOTHING, *INSTEAD, "GrpTRES")}
"""Slurm reads names of options in any case, and writes some otherwise than its manual: Fairshare."""
ONE_CLASS = "limits are of one class: say which, --class TYPE=CLASS"
NO_LINE = "Lines begin with Cluster, QOS, Parent, Account or User."
OF_PEOPLE = "people come by the groups of your directory, and are equals within a queue"


@dataclass(slots=True)
class _Account:
    name: str
    options: Mapping[str, str]
    parent: str
    users: list[Mapping[str, str]] = field(default_factory=list)


def translate(text: str, classes: Mapping[str, str]) -> Findings:
    """``classes`` is the type of a GPU in Slurm -> the GPU class. Raises Fault with the line."""
    if not classes:
        raise Fault(
            "Slurm shares GPUs, and no GPU class is known to share here.",
            "Make the GPU classes first, or name them: --class h100=h100-80gb",
        )
    reader = _SlurmReader(classes)
    accounts = _accounts(text, reader.found)
    if not accounts:
        raise Fault("There is no account in it.", "Write it with: sacctmgr dump CLUSTER file=FILE")
    reader.found.queues += [reader.queue(a, accounts) for a in accounts if a.parent == "root"]
    return reader.found


def _accounts(text: str, found: Findings) -> list[_Account]:
    accounts: dict[str, _Account] = {"root": _Account("root", {}, "")}
    parent = "root"
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        read = LINE.fullmatch(line.strip())
        if read is None:
            raise Fault(f"Line {number} is none of sacctmgr dump.", NO_LINE)
        kind, name, options = read[1], read[2] or read[3] or "", dict(_options(read[4]))
        if kind == "Parent" and name not in accounts:
            raise Fault(f"Line {number}: the account {name} is not above.", "Take the whole dump.")
        if kind == "Parent":
            parent = name
        elif kind == "Account" and name in accounts:
            raise Fault(
                f"Line {number}: the account {name} is there twice.",
                "Take the dump of one cluster.",
            )
        elif kind == "Account":
            accounts[name] = _Account(name, options, parent)
        elif kind == "User":
            accounts[parent].users.append(options)
        elif kind == "QOS":
            found.leave(f"QOS {name}", "QOS", INSTEAD["QOS"])
        else:
            _leave_options(found, f"Cluster {name}", options)
    del accounts["root"]
    return list(accounts.values())


def _options(text: str) -> Iterator[tuple[str, str]]:
    option: tuple[str, str] | None = None
    for part in re.findall(r"(?:[^:']|'[^']*')+", text):
        read = OPTION.fullmatch(part)
        if read is not None:
            if option:
                yield option
            option = (SPELT.get(read[1].lower(), read[1]), read[2])
        elif option:
            option = (option[0], f"{option[1]}:{part}")
    if option:
        yield option


def _leave_options(found: Findings, at: str, options: Mapping[str, str]) -> None:
    for key in sorted(options.keys() - set(SAYS_NOTHING)):
        found.leave(at, key, INSTEAD.get(key, "none"))


class _SlurmReader:
    def __init__(self, classes: Mapping[str, str]) -> None:
        self.classes, self.found = classes, Findings()
        self.names = Names(self.found)

    def queue(self, account: _Account, accounts: Sequence[_Account]) -> dict[str, Any]:
        at = f"Account {account.name}"
        options = dict(account.options)
        caps = self._caps(at, options.pop("GrpTRES", ""))
        _leave_options(self.found, at, options)
        queue = {
            "name": self.names.give(account.name, at),
            "weight": self._weights(_share(account.options, at, self.found)),
            "borrowing_limit": caps,
        }
        below = [self.queue(a, accounts) for a in accounts if a.parent == account.name]
        if below and account.users:
            below.append(self._own(account))
        if account.users:
            self.found.leave(at, counted(len(account.users), "user"), OF_PEOPLE)
        if not below:
            self.found.leave(at, "no namespace", "give the queue one on its page")
        return without_empty({**queue, "queues": below})

    def _own(self, account: _Account) -> dict[str, Any]:
        """A queue for those who submit to an account with accounts below: such a queue holds no workloads."""
        at = f"Account {account.name}"
        weight = sum(_share(user, at, self.found) for user in account.users)
        name = self.names.give(f"{account.name}-own", f"users of {account.name}")
        self.found.leave(at, "users beside accounts", f"their work is in the queue {name}")
        return without_empty({"name": name, "weight": self._weights(weight)})

    def _weights(self, share: float) -> dict[str, float]:
        return {} if share == 1 else dict.fromkeys(self.classes.values(), plain(share))

    def _caps(self, at: str, text: str) -> dict[str, float]:
        caps: dict[str, float] = {}
        for part in filter(None, text.strip("'").split(",")):
            name, _, amount = part.partition("=")
            kind, _, model = name.partition(":")
            gpu_class = self._class(model) if kind == GPU else None
            if gpu_class and amount.isdigit():
                caps[gpu_class] = int(amount)
            elif kind == GPU:
                self.found.leave(at, f"GrpTRES {name}", ONE_CLASS)
            else:
                self.found.leave(at, f"GrpTRES {name}", NO_GPUS)
        return caps

    def _class(self, model: str) -> str | None:
        """Of GPUs without a type only where there is one class."""
        if model:
            return self.classes.get(model)
        several = set(self.classes.values())
        return several.pop() if len(several) == 1 else None


def _share(options: Mapping[str, str], at: str, found: Findings) -> float:
    share = options.get("FairShare", "1").strip("'")
    if share.isdigit() and int(share) < 2**31 - 1:
        return float(share)
    found.leave(at, f"FairShare={share}", "it has a share of its own, of weight 1")
    return 1.0
