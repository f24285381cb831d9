"""Law 4 and law 8 over many worlds: a plan on what a plan leaves does nothing, and neither do those after it
take from anybody while victims leave one by one.

    python -m tests.scheduling.engine.second_plans [--worlds 100000] [--seed 0] [--kinds a,b] [--most 2.5]

Says of each kind of world how many plans acted and why. What whole gangs and shares contradict each other in
is told apart (``loan_behind``); everything else is a fault, printed as KIND:SEED and looked at with
``--show KIND:SEED``. Ends with 1 where there are more than ``--most`` faults in a thousand worlds.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from random import Random

from scheduling.engine import Action, Decision, Phase, Quota, Rule, Snapshot, Workload
from tests.scheduling.engine.dice import Drawn
from tests.scheduling.engine.evolve import held
from tests.scheduling.engine.lives import TAKES, Finding, first_finding
from tests.scheduling.engine.odd_worlds import bounded
from tests.scheduling.engine.worlds import (
    changed,
    choosy,
    contended,
    lent,
    organisations,
    scattered,
)

KINDS: Mapping[str, Drawn[[], Snapshot]] = {
    "lent": lent, "organisations": organisations, "contended": contended, "scattered": scattered,
    "choosy": choosy, "changed": changed, "bounded": bounded,
}  # fmt: skip
ROUNDED, LENT = "rounded", "lent"
"""The contradiction of whole gangs and shares: whoever starts past a share entitles others to what its queue
holds. ROUNDED: what is past the share is less than one gang that started. LENT: more was lent, as nobody
could use it before, or GPUs would idle."""
OWED = "owed"
"""Work that left for higher priority of its own queue is owed what others hold, and takes it at once."""
OWN = "own"
"""Work that has started makes room for higher priority of its queue, which might not ask others for it."""
OTHER = "other"
STATED = (ROUNDED, LENT)
EPS = 1.0


def of_seed(kind: str, seed: int) -> Finding | None:
    """What is found of one world, the same in every run."""
    dice = Random(f"{kind} {seed}")
    return first_finding(KINDS[kind].by(dice), dice)


def cause(finding: Finding) -> str:
    """Why all of it is done, if for one reason; else OTHER."""
    served: dict[str, list[Decision]] = defaultdict(list)
    takes = [d for d in finding.done if d.action in TAKES]
    for one in takes:
        served[one.for_workload or ""].append(one)
    claims = {d.workload for d in finding.done if d.action is Action.RESERVE}
    rest = [d for d in finding.done if d not in takes and d.workload not in {*served, *claims}]
    if rest or claims - set(served) or not served:
        return OTHER
    causes = {_cause_of(finding, name, some) for name, some in served.items()}
    return causes.pop() if len(causes) == 1 else OTHER


def _cause_of(finding: Finding, name: str, takes: list[Decision]) -> str:
    """Why others leave for ``name`` now and did not before."""
    loans = [loan for one in takes if (loan := loan_behind(finding, one))]
    if loans:
        return loans[0]
    works = {w.name: w for w in finding.course[-1][0].workloads}
    begun, left = _begun(finding), _left(finding)
    own = [d for d in takes if works[d.workload].queue == works[name].queue]
    if own and all(d.workload in begun for d in own):
        return OWN
    return OWED if name in left and not own else OTHER


def _left(finding: Finding) -> set[str]:
    """Who was evicted since the first plan."""
    made = (d for _, plan in finding.course[:-1] for d in plan.decisions)
    return {d.workload for d in made if d.action is Action.EVICT}


def _begun(finding: Finding) -> Mapping[str, int]:
    """Members that each holds or claims by plans since the first: of who started then, all."""
    found: Counter[str] = Counter()
    before = {w.name: sum(w.placement.values()) for w in finding.course[0][0].workloads}
    for _, made in finding.course:
        for one in made.decisions:
            if one.action is Action.ADMIT or (one.action is Action.RESERVE and one.placement):
                found[one.workload] = one.members
            elif one.action is Action.GROW:
                found[one.workload] = one.members - before[one.workload]
    return +found


def loan_behind(finding: Finding, taken: Decision) -> str:
    """ROUNDED or LENT where ``taken`` rests on what plans since the first let in: without that, a queue of
    the victim below its meeting with whom it leaves for would hold too little for the rule that takes it.
    """
    at = finding.course[-1][0]
    works = {w.name: w for w in at.workloads}
    if taken.for_workload is None or taken.action is Action.LAPSE:
        return ""
    victim, winner = works[taken.workload], works[taken.for_workload]
    for queue in _below_meeting(at, victim, winner):
        if _rests_on_loans(finding, queue, victim.gpu_class or "", taken):
            return _size_of_loan(finding, queue, victim.gpu_class or "")
    return ""


def _rests_on_loans(finding: Finding, queue: str, kind: str, taken: Decision) -> bool:
    at, made = finding.course[-1]
    works = {w.name: w for w in at.workloads}
    now = held(at, with_leaving=False)[queue, kind]
    before, nominal = now - sum(_loans(finding, queue, kind)), _nominal(at, queue, kind)
    takes = [
        _gives(works[d.workload], d)
        for d in made.decisions
        if d.for_workload == taken.for_workload and queue in _up(at, works[d.workload].queue)
    ]
    gone, fair = sum(takes), made.fair_share[queue][kind].fair_share
    if before - gone < nominal <= now - gone:
        return True  # Nobody leaves a queue that would end below its nominal.
    # Of gangs that lie partly inside a share one may leave, the last.
    is_past_it = before - (gone - min(takes)) <= fair + EPS
    match taken.rule:
        case Rule.ABOVE_FAIR_SHARE | Rule.REGAINED:
            return before - gone < fair - EPS
        case Rule.LENT_NOMINAL:
            return before - gone < nominal - EPS
        case Rule.OWED_NOMINAL:
            return is_past_it
        case Rule.ROUNDED:  # And it has to bring the queue closer to its share.
            return is_past_it or 2 * (before - fair) <= gone + EPS
    return False


def _size_of_loan(finding: Finding, queue: str, kind: str) -> str:
    at, made = finding.course[-1]
    past = held(at, with_leaving=False)[queue, kind] - made.fair_share[queue][kind].fair_share
    return ROUNDED if 0 < past < max(_loans(finding, queue, kind), default=0) else LENT


def _loans(finding: Finding, queue: str, kind: str) -> list[int]:
    """What each that runs in ``queue`` and below holds of ``kind`` by plans since the first."""
    at, begun = finding.course[-1][0], _begun(finding)
    return [
        work.gpus * begun[work.name]
        for work in at.workloads
        if work.name in begun
        and work.phase is Phase.RUNNING
        and not work.leaving
        and work.gpu_class == kind
        and queue in _up(at, work.queue)
    ]


def _nominal(at: Snapshot, queue: str, kind: str) -> int:
    return next(q.quotas.get(kind, Quota()).nominal for q in at.queues if q.name == queue)


def _gives(work: Workload, one: Decision) -> int:
    """Milli-GPU that ``work`` lets go of."""
    if one.action is Action.EVICT:
        return work.gpus * sum(work.placement.values())
    if one.action is Action.SHRINK:
        return work.gpus * (sum(work.placement.values()) - one.members)
    return 0


def _up(at: Snapshot, queue: str) -> list[str]:
    parents = {q.name: q.parent for q in at.queues}
    found: list[str] = []
    name: str | None = queue
    while name is not None:
        found.append(name)
        name = parents[name]
    return found


def _below_meeting(at: Snapshot, victim: Workload, winner: Workload) -> list[str]:
    others = _up(at, winner.queue)
    return [queue for queue in _up(at, victim.queue) if queue not in others]


def say(*words: object) -> None:
    print(*words, flush=True)  # noqa: T201 - a report


def count(kind: str, seeds: range) -> Iterator[tuple[str, str, int]]:
    """(cause, when, seed) of each finding."""
    for seed in seeds:
        finding = of_seed(kind, seed)
        if finding:
            yield cause(finding), finding.when, seed


def report(kinds: list[str], worlds: int, first: int) -> Counter[str]:
    """Prints a line for each kind of world, and the seed of each fault; returns findings by cause."""
    found: Counter[str] = Counter()
    for kind in kinds:
        began, seeds = time.process_time(), range(first, first + -(-worlds // len(kinds)))
        here: Counter[str] = Counter()
        for why, when, seed in count(kind, seeds):
            here[why] += 1
            if why not in STATED:
                say(f"  {why}, {when}: {kind}:{seed}")
        each_ms = (time.process_time() - began) * 1000 / len(seeds)
        causes = ", ".join(f"{n} {why}" for why, n in sorted(here.items())) or "none acts"
        say(f"{kind}: {len(seeds)} worlds, {causes}; {each_ms:.1f} ms each")
        found += here
    return found


def show(name: str) -> None:
    """Every plan of a world, to the one that should have done nothing."""
    kind, seed = name.split(":")
    finding = of_seed(kind, int(seed))
    if finding is None:
        say(f"{name}: nothing")
        return
    say(f"{name}, {finding.when}: {cause(finding)}")
    for at, made in finding.course:
        say("plan")
        for work in at.workloads:
            say("   ", work)
        for one in made.decisions:
            say("   ", one.action, one.workload, one.rule, one.for_workload or "", one.sentence)


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=700)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--most", type=float, default=0.0)
    parser.add_argument("--show", default="")
    asked = parser.parse_args(words)
    if asked.show:
        show(asked.show)
        return 0
    gc.set_threshold(100_000, 20, 100)  # Worlds hang together in no circles.
    found = report(asked.kinds.split(","), asked.worlds, asked.seed)
    say(", ".join(f"{n} {why}" for why, n in sorted(found.items())) or "no second plan acts")
    faults = sum(n for why, n in found.items() if why not in STATED)
    return 1 if 1000 * faults > asked.most * asked.worlds else 0


if __name__ == "__main__":
    sys.exit(main())
