"""What personas allow, held against who asks: parameters in each namespace, and the policies that read them.

The ConfigMap ``weir-personas`` of a namespace says, of each of its queues that a team is bound to, who may
have what run there. Where several personas reach somebody, one that allows all of it is enough. An update
is judged by what it changes, so whatever a persona does not bound can always be edited. An account that may
update ``marks.weir.dev`` acts for Weir and is not bound.

Only what the object itself says is judged: claims of devices, runtimes and pods that find each other by
their labels are for the cycle to see. A namespace without parameters has no such limits, and only who acts
for Weir can take them away.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from scheduling.cluster.adapters.cel import PolicyKind, gpu_variables, is_noted
from scheduling.cluster.guardrails import callers
from scheduling.cluster.guardrails.admission import (
    INSIDE,
    Terms,
    before,
    bound,
    names_a_queue,
    queue_of,
    rule,
)
from scheduling.cluster.guardrails.kinds import KINDS
from scheduling.cluster.guardrails.users import CRON_JOBS
from scheduling.cluster.vocabulary import labels

Json = dict[str, Any]

NAME = "weir-personas"
"""Of the ConfigMap in each namespace, of the policy that guards it, and before the names of the others."""
READERS = f"{NAME}-"
"""How the names of the policies begin that read it."""
DEFAULT, PERSONAS, QUEUE = "default-priority-class", "personas", "queue."
"""Keys of the ConfigMap; that of a queue goes on with its name."""
ANY = "*"


@dataclass(frozen=True, slots=True)
class Persona:
    """What somebody may have run in a queue. GPUs in thousandths; None is every one, or unlimited."""

    name: str
    priority_classes: frozenset[str] | None = None
    gpu_classes: frozenset[str] | None = None
    max_gpus: int | None = None
    max_run_time_s: int | None = None

    def line(self, number: int) -> str:
        """Fields that hold no space, then its name: which GPUs and seconds are also written to be read."""
        gpus = (ANY, ANY) if self.max_gpus is None else (self.max_gpus, f"{self.max_gpus / 1000:g}")
        time_s = self.max_run_time_s
        run = (ANY, ANY) if time_s is None else (time_s, f"{time_s / 3600:g}")
        some = _among(self.priority_classes), _among(self.gpu_classes)
        return " ".join(map(str, (number, *gpus, *run, *some, self.name)))


_GPUS, _GPUS_READ, _RUN, _RUN_READ, _PRIORITIES, _CLASSES, _NAME = range(1, 8)
"""Places of the fields in a line, after its number."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Of one namespace: of each queue that a team is bound to, (user name, persona) of all who may use it."""

    default_priority: str
    queues: Mapping[str, Sequence[tuple[str, Persona]]]


def data_of(parameters: Parameters) -> dict[str, str]:
    """The data of the ConfigMap; names that would break its lines are left out, so they may use nothing."""
    holders = {q: [h for h in each if _fits(h)] for q, each in parameters.queues.items()}
    numbers = {
        persona: number
        for number, persona in enumerate(_in_order(p for each in holders.values() for _, p in each))
    }
    data = {f"{QUEUE}{queue}": _lines(each, numbers) for queue, each in sorted(holders.items())}
    lines = "\n".join(persona.line(number) for persona, number in numbers.items())
    return {DEFAULT: parameters.default_priority, PERSONAS: lines, **data}


def _lines(holders: Sequence[tuple[str, Persona]], numbers: Mapping[Persona, int]) -> str:
    return "\n".join(sorted({f"{numbers[persona]} {user}" for user, persona in holders}))


def _in_order(personas: Iterable[Persona]) -> list[Persona]:
    return sorted(set(personas), key=lambda persona: persona.line(0))


def _fits(holder: tuple[str, Persona]) -> bool:
    user, persona = holder
    return user.isprintable() and persona.name.isprintable()


def _among(names: frozenset[str] | None) -> str:
    """Between commas, so that one is found whole."""
    return ANY if names is None else f",{','.join(sorted(names))},"


def protection(namespaces: Sequence[str]) -> list[Json]:
    """The policy by which only who acts for Weir writes the parameters; with their namespace they go."""
    resources = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
    operations = {"operations": ["CREATE", "UPDATE", "DELETE"]}
    names = [f"({o} != null && {o}.metadata.name == '{NAME}')" for o in ("object", "oldObject")]
    spec = {
        "matchConstraints": {"resourceRules": [{**resources, **operations}]},
        "matchConditions": [{"name": "parameters", "expression": " || ".join(names)}],
        "validations": [
            {
                "expression": f"{callers.holds(callers.MARKS)} || {callers.is_controller(namespaces)}",
                "message": f"Only Weir writes {NAME}. Ask who keeps personas for other limits.",
            }
        ],
    }
    return bound(NAME, spec, INSIDE)


def policies(terms: Terms) -> list[Json]:
    """The policies that read the parameters, one a kind, and their bindings."""
    return [part for kind in (*KINDS, CRON_JOBS) for part in _policy(kind, terms)]


def _policy(kind: PolicyKind, terms: Terms) -> list[Json]:
    own = f"!({callers.IS_OWNED} && {callers.is_controller(terms.namespaces)})"
    spec = {
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "matchConstraints": {"resourceRules": [rule(kind, "CREATE", "UPDATE")]},
        "matchConditions": [
            {"name": "queued", "expression": names_a_queue(kind.meta)},
            {"name": "of-its-own", "expression": own},
            {"name": "bound", "expression": f"!{callers.holds(callers.MARKS)}"},
        ],
        "variables": [
            {"name": name, "expression": text} for name, text in _variables(kind, terms).items()
        ],
        "validations": _validations(kind),
    }
    reference = {"name": NAME, "parameterNotFoundAction": "Allow"}
    return bound(f"{READERS}{kind.resource}", spec, INSIDE, paramRef=reference)


def _variables(kind: PolicyKind, terms: Terms) -> dict[str, str]:
    queue = queue_of(kind.meta)
    found = {
        "priorities": _priorities(kind),
        "classes": _classes(kind.meta),
        "gpus": kind.gpus,
        "runTime": _run_time(kind),
    }
    old = f"({names_a_queue(kind.meta)} ? {queue} : '')"
    return {
        **gpu_variables(terms.gpu_resources),
        "podSpecs": kind.pod_specs,
        "podSpecsBefore": f"request.operation == 'UPDATE' ? ({before(kind.pod_specs)}) : []",
        "key": f"'{QUEUE}' + {queue}",
        "anew": f"request.operation == 'CREATE' || {queue} != {before(old)}",
        **found,
        **{
            f"{name}Stand": f"!variables.anew && variables.{name} == ({before(text)})"
            for name, text in found.items()
        },
        "isBound": f"variables.key in params.data && !({_stand_all(found)})",
        "numbers": "params.data[variables.key].split('\\n').filter(l, l.contains(' ') && "
        f"l.substring(l.indexOf(' ') + 1) == {callers.PERSON}).map(l, l.substring(0, l.indexOf(' ')))",
        "personas": f"params.data['{PERSONAS}'].split('\\n').map(l, l.split(' ', {_NAME + 1}))"
        ".filter(p, p[0] in variables.numbers)",
        **_narrowed(),
    }


def _stand_all(found: Iterable[str]) -> str:
    return " && ".join(f"variables.{name}Stand" for name in found)


def _narrowed() -> dict[str, str]:
    """Those of the caller's personas that allow its priority class, of these those that allow its GPU
    classes, its size, its run time."""
    fits_in = "variables.{0}.all(c, p[{1}].contains(',' + c + ','))".format
    steps = (
        ("ofPriority", "personas", "priorities", _PRIORITIES, fits_in("priorities", _PRIORITIES)),
        ("ofClass", "ofPriority", "classes", _CLASSES, fits_in("classes", _CLASSES)),
        ("ofSize", "ofClass", "gpus", _GPUS, f"variables.gpus * 1000 <= int(p[{_GPUS}])"),
        ("ofTime", "ofSize", "runTime", _RUN, f"variables.runTime <= int(p[{_RUN}])"),
    )
    return {
        name: f"variables.{among}.filter(p, variables.{what}Stand || p[{field}] == '{ANY}' || {fits})"
        for name, among, what, field, fits in steps
    }


def _priorities(kind: PolicyKind) -> str:
    """The class that its label names, else those that its templates do, else the default."""
    label = f"{kind.meta}.labels['{labels.PRIORITY_CLASS}']"
    labelled = f"'{labels.PRIORITY_CLASS}' in {kind.meta}.labels && {label} != ''"
    named = "variables.podSpecs.filter(s, has(s.priorityClassName) && s.priorityClassName != '')"
    names = f"{named}.map(s, string(s.priorityClassName))"
    default = f"size({named}) > 0 ? {names} : [string(params.data['{DEFAULT}'])]"
    return f"(has({kind.meta}.labels) && {labelled} ? [string({label})] : ({default}))"


def _classes(meta: str) -> str:
    notes = f"{meta}.annotations['{labels.GPU_CLASSES}'].split(',')"
    named = f"{notes}.map(c, c.trim()).filter(c, c != '')"
    return f"({is_noted(meta, labels.GPU_CLASSES)} ? {named} : [])"


_NONE, _UNREAD = 2**62, 0
"""Run times that stand for none, and for one in a form that the cycle reads and CEL does not."""


def _run_time(kind: PolicyKind) -> str:
    note = f"{kind.meta}.annotations['{labels.RUN_TIME_LIMIT}']"
    spans = f"{note}.matches('^([0-9]{{1,9}}[hms])+$') ? duration({note}).getSeconds() : {_UNREAD}"
    written = f"{note}.matches('^[0-9]{{1,9}}$') ? int({note}) : ({spans})"
    noted = f"({is_noted(kind.meta, labels.RUN_TIME_LIMIT)} ? ({written}) : {_NONE})"
    field = kind.limit_s
    return f"(has({field}) && int({field}) > 0 ? int({field}) : {noted})" if field else noted


def _validations(kind: PolicyKind) -> list[Json]:
    queue = "variables.key.substring(6)"
    place = kind.limit_s.removeprefix("object.") or f"the annotation {labels.RUN_TIME_LIMIT}"
    first = "variables.{}[0]".format
    wrong = "variables.{0}.filter(c, !{1}.contains(',' + c + ','))[0]".format
    priority, gpu_class = first("personas"), first("ofPriority")
    size, time = first("ofClass"), first("ofSize")
    return [
        _rule(
            "personas",
            f"'You may not submit to the queue ' + {queue} + '. Ask the lead of its team to add you.'",
        ),
        _rule(
            "ofPriority",
            f"'Persona ' + {priority}[{_NAME}] + ' may not use the priority class ' + "
            f"{wrong('priorities', f'{priority}[{_PRIORITIES}]')} + '. ' + "
            f"{_use(f'{priority}[{_PRIORITIES}]')}",
        ),
        _rule(
            "ofClass",
            f"'Persona ' + {gpu_class}[{_NAME}] + ' may not use the GPU class ' + "
            f"{wrong('classes', f'{gpu_class}[{_CLASSES}]')} + '. ' + {_use(f'{gpu_class}[{_CLASSES}]')}",
        ),
        _rule(
            "ofSize",
            f"string(variables.gpus) + ' GPUs are more than the ' + {size}[{_GPUS_READ}] + ' persona ' + "
            f"{size}[{_NAME}] + ' may ask for. Ask for fewer GPUs per pod or fewer pods.'",
        ),
        _rule(
            "ofTime",
            f"(variables.runTime == {_NONE} ? 'Persona ' + {time}[{_NAME}] + ' needs a run-time limit.' : "
            f"string(variables.runTime) + ' s is longer than persona ' + {time}[{_NAME}] + ' may run.') + "
            f"' Set a limit of at most ' + {time}[{_RUN_READ}] + ' h, which is ' + {time}[{_RUN}] + "
            f"' s, in {place}.'",
        ),
    ]


def _use(allowed: str) -> str:
    """The remedy that names what is allowed; nothing may be."""
    inner = f"{allowed}.substring(1, size({allowed}) - 1)"
    return f"(size({allowed}) > 2 ? 'Use one of ' + {inner} + '.' : 'It may use none.')"


def _rule(left: str, sentence: str) -> Json:
    """Refuses with ``sentence`` where none of the caller's personas is left in the variable ``left``."""
    return {
        "expression": f"!variables.isBound || size(variables.{left}) > 0",
        "messageExpression": sentence,
        "message": "Your persona does not allow it. Ask the lead of your team what it may use.",
    }
