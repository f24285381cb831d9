"""Sentences that people see, in one catalogue, by kind: one and several, units, subjects, words that are no
nouns or are private.

They stand where they are said: strings of Python and the text of templates. A string, or what stands between
two tags, counts as a sentence from four words on; what is filled in stands as its expression, in templates as
{}.
"""

from __future__ import annotations

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from html import unescape
from io import StringIO
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("portal", "scheduling", "weir")
NOUNS = (
    "workload", "run", "name", "node", "cluster", "migration", "queue", "member", "eviction", "request",
    "loan", "edit", "replay", "cycle", "record", "person", "team", "day", "hour", "week", "task", "pod",
    "start", "rule", "token", "namespace",
)  # fmt: skip
COUNT = rf"\{{(?:(?:number|len|int)\([^{{}}]*\)|count|many)\}} (?:[a-z]+ )?(?:{'|'.join(NOUNS)})s\b"
GLUED = r"[a-z]\{'\w*' (?:if|\*) "
"""A plural made by hand: ``counted`` and ``plural`` know both forms."""
HEADLESS = r"(?:^|[.:;!}] )(?:What|Who|Whoever) [^.?]*\."
"""A sentence whose subject is a clause: it names what it is about instead."""
LONG_NUMBER = r"(?<![\w.#{:-])\d{5,}(?![\w}])"
"""A number as a machine writes it: 604800 for 7 d."""
PRIVATE = re.compile(r"\b(?:celery|kombu|numba|queryset|traceback|sqlite3?)\b", re.I)
ARTICLE = r"\ba (?=[aeio])(?!one\b|eu)|\ban (?=[bcdfgjklmnpqrstvwz])"
DOTS = r"(?<!\.)\.\.(?!\.)|\w  \w"
SECONDS = r"\{[^{}]*(?:_s|seconds|age|lag)(?:\[[^]]*\])?\} s\b"
"""A figure of seconds, written as it is."""
NEVER_ONE = (
    "from the last {number(runs)} runs",
    "all but {number(len(missed))} queues",
    "{len(wanted)} workloads are more",
    "{len(made)} members of the array",
    "It is to start after {len(found)} workloads",
    "{len(living)} pods, which run",
    "of its {len(study.seeds)} replays",
    "{len(judged)} workloads are too many",
    "{len(live)} workloads are called",
    "one of {len(found['pods'])} pods",
    "{len(made)} of {count} members are submitted",
)
"""Counts of two and more: one is said otherwise, or no such sentence is said of it."""
ARGUED = {
    "Write a port of 1 to 65535, or none.": "ports are written so",
    "That is no amount. Write one, such as 230000.": "a field takes no separator",
    "What would have to leave for it is protected for now.": "words that the engine compiles in",
    "{slots} of {f.least} fit{'s' * (f.least == 1)}": "the ending of a verb",
}
"""Sentences that a rule would refuse, and why they stay: it gets only shorter."""
SHORT = {
    "portal/web/operations/health.py": "how often a cycle is due, which is seconds",
    "portal/web/operations/processes.py": "a lease lasts seconds",
    "scheduling/cluster/metrics/prometheus.py": "how long an answer may take, which is seconds",
    "scheduling/models/foresight.py": "for who debugs",
    "scheduling/models/predictions.py": "for who debugs",
    "scheduling/cluster/guardrails/subresources.py": "a grace period as kubectl takes it",
    "scheduling/services/worker/looks.py": "half a minute",
}
"""Where seconds are below two minutes."""
NO_NOUNS = re.compile(
    r"\b(?:per|against|than) (?:asked|told|held|came)\b|\b(?:told|asked) (?:against|P50|P90)\b"
)
HEAD = re.compile(
    r">\s*(?:told|asked|came|due)\s*</(?:th|h2|label|dt)>|data-label=\"(?:told|asked)\"", re.I
)
NAMELESS = re.compile(r"(?:^|[.!>*|] ?|\n\n)(?:Who|Whoever) [^.?!<>|*]*[.!;]", re.M)
"""A sentence, of which \"Who waits\" is the subject: no reader knows yet whether people or work are meant."""
TWICE = re.compile(r"(?<![\w<])([a-z]{2,}) \1 ")
OF_TEMPLATES = re.compile(
    r"\{\{ ?[\w.]+(?:\|length|\|count)? ?\}\} (?:" + "|".join(NOUNS) + r")s\b"
)


def templates() -> Iterator[tuple[str, str]]:
    for path in sorted((ROOT / "templates").rglob("*.html")):
        yield str(path.relative_to(ROOT)), path.read_text()


def sentences() -> Iterator[tuple[str, str]]:
    """(file, sentence) of every string that is one; what is filled in stands as its expression."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if "migrations" not in path.parts:
                tree = ast.parse(path.read_text())
                for said in strings(tree):
                    if len(said.split()) >= 4:
                        yield str(path.relative_to(ROOT)), said


def strings(tree: ast.Module) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    alone = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    parts = {id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            yield "".join(map(part_of, node.values))
        elif isinstance(node, ast.Constant) and id(node) not in alone | parts:
            yield node.value if isinstance(node.value, str) else ""


def part_of(part: ast.expr) -> str:
    if isinstance(part, ast.FormattedValue):
        return f"{{{ast.unparse(part.value)}}}"
    return str(part.value) if isinstance(part, ast.Constant) else ""


DRAWN = re.compile(
    r"<(script|style|svg|code|kbd|pre)\b.*?</\1>|\{#.*?#\}|\{% ?comment.*?endcomment ?%\}", re.S
)
TAG = re.compile(r"<[^>]+>|\{%.*?%\}", re.S)


def texts() -> Iterator[tuple[str, str]]:
    """(file, text) of what templates say between two tags."""
    for file, text in templates():
        plain = re.sub(r"\{\{.*?\}\}", "{}", DRAWN.sub("|", text), flags=re.S)
        for part in re.split(r"\|", TAG.sub("|", plain)):
            if len(part.split()) >= 4:
                yield file, " ".join(unescape(part).split())


@cache
def said() -> list[tuple[str, str]]:
    """Read by the first test that asks: whoever only collects these has no use for them."""
    return [*sentences(), *texts()]


def seen() -> Iterator[tuple[str, str]]:
    """Those that people see: not the schema of a file, not what only SQL and CEL read."""
    for file, one in said():
        if not file.startswith(UNSEEN) and one not in ARGUED:
            yield file, one


UNSEEN = (
    "scheduling/engine/document/",
    "scheduling/cluster/guardrails/",
    "portal/notices/watch.py",
)


FILLED = re.compile(r"\{[^{}]*\}")


def found(pattern: str, among: Iterable[tuple[str, str]]) -> Iterator[str]:
    for file, one in among:
        if re.search(pattern, one) and not any(never in one for never in NEVER_ONE):
            yield f"{file}: {one}"


def test_sentences_are_found():
    assert len(said()) > 4000
    assert {"portal", "scheduling", "weir", "templates"} == {
        file.split("/")[0] for file, _ in said()
    }


def test_sentence_that_is_argued_for_is_still_said():
    assert ARGUED.keys() - {one for _, one in said()} == set()


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("one and several", COUNT),
        ("a plural by hand", GLUED),
        ("a word that is no noun", NO_NOUNS),
        ("a word twice", TWICE),
    ],
)
def test_sentence_has_no_fault_of_its_kind(kind, pattern):
    assert not list(found(pattern, seen())), kind


@pytest.mark.parametrize(
    ("kind", "pattern"),
    [
        ("a clause for a subject", HEADLESS),
        ("a number without its unit", LONG_NUMBER),
        ("a private word", PRIVATE),
        ("a for an", ARTICLE),
        ("dots and spaces", DOTS),
    ],
)
def test_text_between_what_is_filled_in_has_no_fault_of_its_kind(kind, pattern):
    assert not list(found(pattern, ((file, FILLED.sub("{}", one)) for file, one in seen()))), kind


def explanations() -> Iterator[tuple[str, str]]:
    """(file, text) of every docstring, comment and string of code, page of the docs, and template."""
    for package in (*PACKAGES, "workshop"):
        for path in sorted((ROOT / package).rglob("*.py")):
            for token in tokenize.generate_tokens(StringIO(path.read_text()).readline):
                if token.type in (tokenize.STRING, tokenize.COMMENT):
                    text = token.string.lstrip("rbf").strip("\"'# ")
                    yield str(path.relative_to(ROOT)), text
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if "lab" not in path.parts:
            yield str(path.relative_to(ROOT)), path.read_text()
    yield from templates()


def test_subject_of_a_sentence_names_somebody():
    found = [f"{file}: {one}" for file, text in explanations() for one in NAMELESS.findall(text)]
    assert not found, "\n".join(found)


def test_duration_is_written_with_its_unit_not_in_seconds():
    found = [
        f"{file}: {one}" for file, one in said() if re.search(SECONDS, one) and file not in SHORT
    ]
    assert not found, "\n".join(found)


NAMES = ("Monday", "Jain", "Weir", "Kubernetes")
CASED = re.compile(r"<(h[1-4]|th|legend|label|summary)\b[^>]*>([^<{]+)<")


def test_head_is_in_sentence_case():
    heads = [
        (file, " ".join(unescape(one[1]).split()))
        for file, text in templates()
        for one in CASED.findall(text)
    ]
    assert len(heads) > 500
    inner = [(file, head, re.findall(r"\s([A-Z][a-z]+)", head)) for file, head in heads]
    assert not [one for one in inner if set(one[2]) - set(NAMES)]


def test_head_of_a_column_or_card_is_a_noun():
    found = [(file, HEAD.search(text)[0]) for file, text in templates() if HEAD.search(text)]
    assert not found
    assert not [(file, text) for file, text in templates() if NO_NOUNS.search(text)]


def test_count_in_a_template_has_its_noun_by_the_filter():
    found = [
        (file, one)
        for file, text in templates()
        for one in OF_TEMPLATES.findall(text)
        if not guarded(text, one)
    ]
    assert not found


MANY = ("days", "replays", "name }} runs")
"""Ranges are of several days and studies of several replays; a cluster's clock runs."""


def guarded(text: str, one: str) -> bool:
    """What stands in a branch that is not for one."""
    before = text[: text.index(one)].rsplit("{%", 1)[-1]
    return before.lstrip().startswith(("else", "if", "elif")) or one.endswith(MANY)
