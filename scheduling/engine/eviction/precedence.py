"""Priority inside a leaf over what has started, claims room, or was to move, in this very cycle.

A gang that passes its share, or may not take from others yet, is asked after those who do not have to
wait, so lower priority of its queue may have started, have been promised room, or be about to move, before.
That is no candidates until it runs, and a later plan would preempt it (law 4). Where the gang starts or makes
room without it, it steps back at once: who starts or claims is asked again, who was to move is evicted, and
who left for one that steps back leaves for the gang.
"""

from __future__ import annotations

import numpy as np

from scheduling.engine import codes
from scheduling.engine.admission.trial import only_reserved, passes_nominal
from scheduling.engine.compile.kernel import inner
from scheduling.engine.compile.structs import Ints
from scheduling.engine.eviction.bounds import asks_for_more, displaceable, lent_at_most
from scheduling.engine.eviction.carry_out import evict_mover
from scheduling.engine.eviction.rules import (
    PREEMPT,
    PROTECTED,
    RECLAIM,
    STRICT,
    VictimRequest,
    asking,
    cooled_down,
    in_budget,
    is_owing,
    min_run_of,
    note_owed,
    rule_allows,
)
from scheduling.engine.placement.node_room import ONE
from scheduling.engine.quota.fair_share import PLAIN, common_ancestor
from scheduling.engine.quota.limits import eviction_limit_reached, may_evict
from scheduling.engine.quota.standing import ends_as_close
from scheduling.engine.reasons.figures import PROMISE, TAKEN
from scheduling.engine.state.decisions import Decisions
from scheduling.engine.state.input import Ranks, Work, core_of, gpus_of, need_of
from scheduling.engine.state.nodes import NodeRoom
from scheduling.engine.state.order import PendingSlots, Shapes
from scheduling.engine.state.queues import Queues
from scheduling.engine.state.session import Session
from scheduling.engine.state.units import GPUS
from scheduling.engine.statement.lines import HOLDING, changed, close_order, undecide
from scheduling.engine.statement.operations import note_first_promised, note_shift
from scheduling.engine.statement.statement import (
    begin,
    search_afresh,
    search_on,
    step_back,
    undo_all,
)

OWN, OTHERS = 0, 1
"""Whose work was to step back in vain: that of the own queue alone, or that of others as well."""


@inner
def can_step_back(world: Session, w: int, c: int) -> bool:
    """Whether ``lower_steps_back`` might find anybody: not if no round is left to ask them again."""
    queues, q = world.queues, world.work.queue[w]
    anybody = begun_in(queues, q, c) > 0 or queues.round.moves > 0
    if not anybody or queues.round.left == 0 or passes_nominal(world, w, c):
        return False
    return not fails_again(world, w, c, OWN)


@inner
def lower_steps_back(world: Session, w: int, c: int, served: bool) -> Ints:
    """Take back the room of those of lower priority in the queue of ``w`` who start on class ``c``, claim
    room or move to it; of those for whom others left only if ``served``.

    Returns whose, none if they would not do. ``start_again`` or ``ask_again`` must follow.
    """
    who, gpus = begun_below(world, w, c, served)
    if world.queues.round.moves > 0:
        who, gpus = _with_movers(world, w, c, who, gpus)
    if gpus == 0 or free_at_most(world, w, c) + gpus < need_of(world.work, w):
        return who[:0]
    all_step_back(world, who)
    return who


@inner
def all_step_back(world: Session, who: Ints) -> None:
    """Try it without ``who``, until ``all_start_again`` or ``search_afresh``."""
    begin(world.queues, world.candidates)
    world.shapes.refusals.change += 1
    for v in who:
        step_back(world, v)
    search_on(world.candidates)


@inner
def all_start_again(world: Session) -> None:
    """Undo ``all_step_back``."""
    search_afresh(world.candidates)
    world.shapes.refusals.change += 1
    undo_all(world)


@inner
def start_again(world: Session, w: int, who: Ints) -> None:
    """Undo ``lower_steps_back``."""
    candidates, shapes = world.candidates, world.shapes
    if who.size > 0:
        all_start_again(world)
        changed(candidates, shapes, HOLDING, world.out.gpu_class[who[0]], world.work.queue[w])


@inner
def note_in_vain(work: Work, queues: Queues, shapes: Shapes, w: int, c: int, whose: int) -> None:
    """``w`` does not start without those of OWN or OTHERS either."""
    search, q = queues.search, work.queue[w]
    search.vain_slot[whose, c, q], search.vain_epoch[whose, c, q] = w, shapes.refusals.epoch


@inner
def ask_again(world: Session, w: int, c: int, who: Ints) -> None:
    """Nothing is decided on those who stepped back for ``w``, but that who was to move leaves."""
    out = world.out
    for v in who:
        if out.action[v] == codes.MOVE:
            evict_mover(world, preempting(world.work, w, c), v)
            out.figures[w, PROMISE.victims] += out.action[w] == codes.RESERVE
            continue
        note_shift(world.work, world.queues, v, out.members[v])
        undecide(out, v)
        out.starts.withdrawn[v] = True
    close_order(out)
    note_first_promised(world.queues, out, c)
    world.queues.round.asks_again = 1


@inner
def fails_again(world: Session, w: int, c: int, whose: int) -> bool:
    """Whether it was in vain for one that asks for no more, and nobody has left since."""
    work, ranks, rules = world.work, world.ranks, world.rules
    queues, q = world.queues, work.queue[w]
    if queues.search.vain_epoch[whose, c, q] != world.shapes.refusals.epoch:
        return False
    return asks_for_more(work, ranks, rules, w, queues.search.vain_slot[whose, c, q])


@inner
def begun_in(queues: Queues, q: int, c: int) -> int:
    """Milli-GPU of class ``c`` that start in leaf ``q``, or are promised there, in this cycle."""
    return int(queues.starts.started[c, q] + queues.starts.promised[c, q])


@inner
def begun_below(world: Session, w: int, c: int, served: bool) -> tuple[Ints, int]:
    """Work of lower priority that starts, or claims room, in the queue of ``w`` on class ``c``, and its
    milli-GPU.

    But for those who had a claim before this plan, who use what is reserved, or, unless ``served``, for
    whom others left.
    """
    work, who = world.work, _who_began(world, w, c, served)
    most, size, gpus, cores = may_evict(work, world.rules, w, need_of(work, w)), 0, 0, 0
    for v in who:
        if world.out.starts.served[v]:
            left = _left_for(world, w, v, gpus)
            if left < 0 or cores + left > most:
                continue
            cores += left
        who[size] = v
        size += 1
        gpus += world.out.members[v] * work.need[GPUS, v]
    return who[:size], gpus


@inner
def _who_began(world: Session, w: int, c: int, served: bool) -> Ints:
    """All of them that may step back. Those for whom others left come last: the others give back what no
    victim has to leave for.
    """
    pending, out, work, q = world.ordering.pending, world.out, world.work, world.work.queue[w]
    if begun_in(world.queues, q, c) == 0:
        return np.empty(0, np.int64)
    among, size = _lower_in_line(pending, q, w), 0
    who = np.empty(among.size, np.int64)
    for late in range(2 if served else 1):
        for v in among:
            now = out.gpu_class[v] == c and out.starts.served[v] == (late == 1)
            if now and _may_step_back(work, world.ranks, world.queues, out, w, v):
                who[size] = v
                size += 1
    return who[:size]


@inner
def _lower_in_line(pending: PendingSlots, q: int, w: int) -> Ints:
    """Those of queue ``q`` that stand in line in groups of lower rank than ``w``."""
    first, begin = pending.queue_begin[q + 1], pending.group_begin
    last = begin[first]
    while first > pending.queue_begin[q]:
        if pending.rank[pending.slot[begin[first - 1]]] >= pending.rank[w]:
            break
        first -= 1
    return pending.slot[begin[first] : last]


@inner
def _may_step_back(
    work: Work, ranks: Ranks, queues: Queues, out: Decisions, w: int, v: int
) -> bool:
    mine, its = work.priority[w], work.priority[v]
    if out.action[v] != codes.ADMIT and out.reason[v] != codes.AWAITS_VICTIMS:
        return False
    if ranks.value[its] >= ranks.value[mine] or not ranks.preemptible[its]:
        return False
    reserved = queues.reservations.slot[out.gpu_class[v]] >= 0 and work.ends_within[v] < np.inf
    return not (work.claims[v] or reserved)


@inner
def _left_for(world: Session, w: int, v: int, beside: int) -> int:
    """Milli-GPU evicted for ``v``, whom the rules would let ``w`` preempt once it runs; -1 if they would
    not, or if those who left for ``v`` might not leave for ``w``, to which others give ``beside`` back.
    """
    work, out, c = world.work, world.out, world.out.gpu_class[v]
    gpus, waits = need_of(work, v), world.rules.now < work.submitted[w] + world.rules.delay
    if waits or gpus > may_evict(work, world.rules, w, need_of(work, w)):
        return -1
    # It asks others for what it needs beyond what its own queue gives back.
    more, cores = need_of(work, w) - beside - out.members[v] * work.need[GPUS, v], 0
    request = VictimRequest(w, c, RECLAIM, 0, True, STRICT, more, False, PLAIN, w)
    note_owed(world, request)
    if not _may_leave_next_cycle(world, request, v, gpus) or only_reserved(world, w, c):
        return -1
    for k in range(out.size[0]):
        x = out.order[k]
        if out.rival[x] != v or out.action[x] not in (codes.EVICT, codes.SHRINK, codes.MOVE):
            continue
        if not _may_leave_instead(world, request, x):
            return -1
        cores += core_of(work, x) if out.action[x] == codes.EVICT else 0
    return cores


@inner
def _may_leave_instead(world: Session, request: VictimRequest, x: int) -> bool:
    """Whether ``x``, which left for lower priority, may leave for the workload: of another queue where no
    queue below the one in which both meet would be further past its share than it is off it now, and inside
    nominal for what is owed.
    """
    tree, work, out, candidates = world.tree, world.work, world.out, world.candidates
    until = cooled_down(tree, work, world.rules, candidates, request, x)
    if out.action[x] == codes.MOVE or world.rules.now < until:
        return False
    own, meet = work.queue[request.w], common_ancestor(tree, work.queue[x], work.queue[request.w])
    if not ends_as_close(tree, world.queues, world.division, own, meet, request.c, request.need):
        return False
    owed = out.rule[x] == codes.OWED_NOMINAL or out.rule[x] == codes.LENT_NOMINAL
    return not owed or is_owing(tree, work, candidates, request, x)


@inner
def hand_over(work: Work, out: Decisions, w: int, v: int) -> None:
    """Victims of ``v``, which has stepped back for ``w``, leave for ``w``, unless ``v`` starts again, or
    claims their room and ``w`` needs none.
    """
    if not out.starts.served[v] or out.action[v] == codes.ADMIT:
        return
    keeps = out.action[v] == codes.RESERVE and out.action[w] == codes.ADMIT
    if not keeps:
        out.starts.served[v], out.starts.served[w] = False, True
    for k in range(out.size[0]):
        x = out.order[k]
        if out.rival[x] != v or out.action[x] not in (codes.EVICT, codes.SHRINK):
            continue
        if keeps:
            out.figures[v, PROMISE.victims] += 1
            continue
        out.rival[x], out.figures[x, TAKEN.requested] = w, need_of(work, w)
        out.figures[w, PROMISE.victims] += out.action[w] == codes.RESERVE


@inner
def _may_leave_next_cycle(world: Session, request: VictimRequest, v: int, gpus: int) -> bool:
    """Whether no time and no budget would protect ``v``, which starts anew now, in the next cycle."""
    tree, work, rules = world.tree, world.work, world.rules
    if min_run_of(tree, work, world.ranks, request, v) > 0.0:
        return False
    until = cooled_down(tree, work, rules, world.candidates, request, v)
    if eviction_limit_reached(work, rules, v) or rules.now < until:
        return False
    return in_budget(tree, world.queues, work.queue[v], gpus)


@inner
def _with_movers(world: Session, w: int, c: int, who: Ints, gpus: int) -> tuple[Ints, int]:
    """``who`` and those of the queue of ``w`` whom the plan of the next cycle would let preempt: each of
    them has started anew then.
    """
    rules, ordering, work, q = world.rules, world.ordering, world.work, world.work.queue[w]
    request = preempting(work, w, c)
    more, size, cores = np.empty(who.size + ordering.running.size[0], np.int64), who.size, 0
    for i in range(size):
        more[i] = who[i]
    patient = rules.now < work.submitted[w] + rules.delay
    if patient or only_reserved(world, w, c):
        return who, gpus
    for k in range(ordering.running.queue_begin[q + 1], ordering.running.queue_begin[q + 2]):
        v = ordering.running.slot[k]
        if world.out.action[v] != codes.MOVE or not _may_be_preempted(world, request, v):
            continue
        cores += core_of(work, v)
        if cores > may_evict(work, rules, w, request.need):
            break
        more[size] = v
        size += 1
        gpus += gpus_of(work, v)
    return more[:size], gpus


@inner
def _may_be_preempted(world: Session, request: VictimRequest, v: int) -> bool:
    work = world.work
    if work.gpu_class[v] != request.c or not rule_allows(world, request, v, gpus_of(work, v)):
        return False
    return bool(_may_leave_next_cycle(world, request, v, core_of(work, v)))


@inner
def preempting(work: Work, w: int, c: int) -> VictimRequest:
    return asking(work, w, c, PREEMPT, work.queue[w], True, STRICT)


@inner
def free_at_most(world: Session, w: int, c: int) -> int:
    """Milli-GPU of class ``c`` that are free, come free, or could be taken from lower priority that ran
    and from what others hold above their shares.
    """
    work, queues = world.work, world.queues
    request = asking(work, w, c, PREEMPT, work.queue[w], True, PROTECTED)
    own = displaceable(work, world.ranks, queues, world.candidates, request)
    return world.room.open[c] + world.room.coming[c] + lent_at_most(world, w, c) + own


@inner
def has_its_seats(room: NodeRoom, out: Decisions, v: int) -> bool:
    """Whether no node of ``v``, which starts, is promised twice, now or later."""
    for i in range(out.pool.first[v], out.pool.first[v] + out.members[v]):
        n, device = out.pool.node[i], out.pool.device[i]
        if device >= 0 and max(room.shared_now[n, device], room.shared_later[n, device]) > ONE:
            return False
        for r in range(room.free_now.shape[0]):
            if room.free_now[r, n] < room.pledged[r, n] or room.free_later[r, n] < 0:
                return False
    return True
