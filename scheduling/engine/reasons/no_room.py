"""One sentence for each wait that nodes have no room for, naming both parties, with numbers and units."""

from __future__ import annotations

from scheduling.engine.reasons.facts import Facts, members, parts, this, together
from scheduling.engine.reasons.wording import amount, are, gib, gpus_in_words, plural

NOT_ALL = "they do not take all of its members"
"""Of the nodes and a gang of unlike members."""


def never_fits(f: Facts) -> str:
    need, most = f.figures.needs, f.figures.most
    if f.blame:
        return (
            f"{this(f).capitalize()} needs {amount(need)} {f.gpu_class} at once, and {f.blame} may"
            f" hold at most {amount(most)}."
        )
    if need > most:
        what = this(f).capitalize()
        return f"{what} needs {amount(need)} {f.gpu_class}, and the cluster has {amount(most)}."
    if f.figures.nodes_in_class:
        return _never_on_its_nodes(f)
    where = together(f)
    gang = f"{members(f)}{where}, even when empty"
    return f"The nodes of {f.gpu_class} never take {gang}; the cluster has {gpus_in_words(most)}."


def nodes_out(f: Facts) -> str:
    need, most = f.figures.needs, f.figures.most
    if need > most:
        return (
            f"{this(f).capitalize()} needs {amount(need)} {f.gpu_class}, and the nodes that are up have"
            f" {amount(most)}."
        )
    where = together(f)
    return f"Those of its nodes that are up do not take {members(f)}{where}."


CONSTRAINTS = "node selector, node affinity, tolerations, runtime class and devices beside GPUs"


def _its_nodes(f: Facts) -> str:
    some, every = f.figures.nodes_allowed, f.figures.nodes_in_class
    let = f"Its {f.constraints or CONSTRAINTS} let it run on"
    return f"{let} {some:.0f} of {every:.0f} nodes of {f.gpu_class}"


def _never_on_its_nodes(f: Facts) -> str:
    if not f.figures.nodes_allowed:
        every = plural(f.figures.nodes_in_class, "node")
        return f"Its {f.constraints or CONSTRAINTS} let it run on none of the {every} of {f.gpu_class}."
    where = together(f)
    return f"{_its_nodes(f)}, which never take {members(f)}{where}, even when empty."


def no_room_on_its_nodes(f: Facts) -> str:
    free, need, slots = f.figures.free, f.figures.needs, f.figures.fits_members
    room = f": they take {slots:.0f} of {f.least} members" if free >= need and f.least > 1 else ""
    room = f": {NOT_ALL}" if room and f.roles else room
    room = room or (": none has as much for one member" if free >= need else "")
    return (
        f"{_its_nodes(f)}: {amount(free)} {are(free)} free there, and {this(f)} needs"
        f" {amount(need)}{parts(f)}{room}."
    )


def no_room_in_topology(f: Facts) -> str:
    free, together = f.figures.free, int(f.figures.fits_together)
    if f.roles:
        return (
            f"{amount(free)} {f.gpu_class} {are(free)} free, but no {f.wanted} has room for all of"
            f" {members(f)}.{_bound(f)}"
        )
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, but no {f.wanted} has room for all {f.least}"
        f" members of {amount(f.gpus)}; the best takes {together}.{_bound(f)}"
    )


def no_room_for_segments(f: Facts) -> str:
    free, size, level = f.figures.free, max(1, int(f.figures.segment)), f.segment[1]
    needs, fit = f.least // size, int(f.figures.fits_together) // size
    room = f"one {f.wanted} has room for" if f.wanted else "there is room for"
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free, but {room} {fit} of its"
        f" {plural(needs, 'segment')} of {size} members of {amount(f.gpus)}, each in one {level}.{_bound(f)}"
    )


def fragmented(f: Facts) -> str:
    free, need = f.figures.free, f.figures.needs
    nodes, slots = f.figures.nodes, f.figures.fits_members
    room = (
        f"they take {slots:.0f} of {f.least} members"
        if f.least > 1
        else "no node has as much for one member"
    )
    room = NOT_ALL if f.roles else room
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free on {plural(nodes, 'node')}, and {this(f)} needs"
        f" {amount(need)}{parts(f)}: {room}.{_bound(f)}"
    )


def _bound(f: Facts) -> str:
    """That a search was left undone, if one was."""
    if f.searches == 0:
        return ""
    return f" No wider search for room was made: this cycle had made its {f.searches} before."


def no_free_cpus(f: Facts) -> str:
    each, most = f.figures.member_cpus, f.figures.most_cpus
    return _short_beside(f, f"{amount(each)} CPUs", amount(most))


def no_free_memory(f: Facts) -> str:
    each, most = f.figures.member_mib, f.figures.most_mib
    return _short_beside(f, f"{gib(each)} of memory", gib(most))


def no_free_other(f: Facts) -> str:
    each, most = f.figures.member_amount, f.figures.most_amount
    return _short_beside(f, f"{each:.0f} × {f.wanted}", f"{most:.0f}")


def _short_beside(f: Facts, each: str, most: str) -> str:
    free, need, slots = f.figures.free, f.figures.needs, f.figures.fits_members
    a_member = "each of its members" if f.least > 1 else "it"
    a_member = "one of its members" if f.roles else a_member
    fit = NOT_ALL if f.roles else f"{slots:.0f} of {f.least} fit{'s' * (f.least == 1)}"
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {this(f)} needs {amount(need)}, but"
        f" {a_member} needs {each} as well: the nodes with free GPUs that lack them have at most {most} left,"
        f" and {fit}."
    )


def no_free_gpus(f: Facts) -> str:
    free, need = f.figures.free, f.figures.needs
    return (
        f"{amount(free)} {f.gpu_class} {are(free)} free and {this(f)} of {f.queue} needs {amount(need)};"
        " it is entitled to them, and not enough of what others hold above their fair shares can be taken"
        f" back for it.{_bound(f)}"
    )
