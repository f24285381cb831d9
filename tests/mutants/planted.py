"""The faults that are planted: each is one replacement of exact text, and the tests that must notice it."""

from __future__ import annotations

from dataclasses import dataclass

WALK = "tests/walk/test_every_address.py::test_every_answer_of_the_address_is_right"
PAGES = "tests/e2e/test_every_page.py::test_every_page_meets_aa_and_never_scrolls_sideways"
HOSTILE = (
    "tests/security/test_hostile_input.py::test_hostile_text_in_each_parameter_is_no_server_error"
)


@dataclass(frozen=True)
class Mutant:
    """``old`` stands in ``path`` as often as ``times``, and ``new`` takes its place."""

    fault: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]
    times: int = 1
    plain: bool = False
    """The engine runs as plain Python, without compiling what was changed."""


def walked(*names: str) -> tuple[str, ...]:
    return tuple(f"{WALK}[{name}]" for name in names)


MUTANTS = (
    Mutant(
        "page names work out of sight", "portal/web/workloads/detail.py",
        "        visible_workloads(user)\n        .filter(cluster=cluster)",
        "        Workload.objects\n        .filter(cluster=cluster)",
        walked("web:workload"),
    ),
    Mutant(
        "sentence names a queue out of sight", "scheduling/services/words/sentences.py",
        "            if self.sees_all_named:\n", "            if True:\n",
        walked("web:workload"),
    ),
    Mutant(
        "API names another team's work", "portal/api/ledger.py",
        "        return name_of(row.for_workload, self.reader)",
        "        return row.for_workload.name if row.for_workload else None",
        walked("api:evictions"),
    ),
    Mutant(
        "CSV tells the whole sentence", "portal/web/workloads/lists.py",
        "shown[SENTENCE] = tell(said, reader).sentence", "shown[SENTENCE] = said.sentence",
        walked("web:workloads"),
    ),
    Mutant(
        "search finds people out of sight", "portal/web/frame/search.py",
        "users = workloads.filter(user__icontains=text)",
        "users = Workload.objects.filter(user__icontains=text)",
        walked("web:search"),
    ),
    Mutant(
        "overview of one is remembered for all", "portal/web/overview/views.py",
        'key = ("overview", request.get_full_path(), whose)',
        'key = ("overview", request.get_full_path())',
        walked("web:overview"),
    ),
    Mutant(
        "own work beyond one's sight is remembered for one's like", "portal/web/frame/own.py",
        "user.pk if beyond else None", "None",
        ("tests/portal/web/test_crowd.py",),
    ),
    Mutant(
        "403 tells that the cluster is there", "portal/web/frame/shell.py",
        "    if cluster is None:\n        raise Http404\n",
        "    from django.core.exceptions import PermissionDenied\n"
        "    if cluster is None:\n"
        "        raise PermissionDenied\n",
        walked("web:overview"),
    ),
    Mutant(
        "page of operators is open to all", "portal/web/operations/mode.py",
        "    if not is_operator(request.user):\n", "    if not request.user:\n",
        walked("web:cluster"),
    ),
    Mutant(
        "anybody of the cluster sets its mode", "portal/api/clusters.py",
        '        """Observe, enforce or pause the cluster from the next cycle on. For operators."""\n'
        "        if not is_operator(self.person):\n",
        '        """Observe, enforce or pause the cluster from the next cycle on. For operators."""\n'
        "        if not self.person:\n",
        walked("api:cluster_mode"),
    ),
    Mutant(
        "500 for one kind of reader", "portal/api/processes.py",
        "        if not is_operator(self.person):\n            raise Http404",
        "        if not is_operator(self.person):\n            raise KeyError",
        walked("api:processes"),
    ),
    Mutant(
        "500 for a missing parameter", "portal/web/frame/search.py",
        'request.GET.get("q", "")', 'request.GET["q"]',
        (f"{HOSTILE}[web:search]",),
    ),
    Mutant(
        "refusal without a remedy", "portal/boundary/answers.py",
        'body = {"code": refusal.code, "sentence": refusal.sentence, "remedy": refusal.remedy}',
        'body = {"code": refusal.code, "sentence": refusal.sentence}',
        ("tests/portal/boundary/test_answers.py",),
    ),
    Mutant(
        "answer that the schema does not know", "portal/api/clusters.py",
        'return [trouble["code"] for trouble in node.troubles]', "return None  # type: ignore",
        walked("api:nodes"),
    ),
    Mutant(
        "answer that a browser keeps", "portal/config/headers.py",
        'response["Cache-Control"] = "no-store"', 'response["Cache-Control"] = "private"',
        walked("web:help"),
    ),
    Mutant(
        "field without a label", "templates/web/workloads/list.html",
        '<label for="f-name">', "<label>", (PAGES,),
    ),
    Mutant(
        "picture without words", "templates/components/bar.html",
        'role="img" aria-label="{{ bar.label }}"', 'role="img"', (PAGES,),
    ),
    Mutant(
        "text too faint in the dark", "static/css/tokens.css",
        "--muted: #9ca3af;", "--muted: #4b5563;", (PAGES,), times=2,
    ),
    Mutant(
        "page wider than a phone", "static/css/base.css",
        ".lead { color: var(--muted);", ".lead { min-width: 700px; color: var(--muted);", (PAGES,),
    ),
    Mutant(
        "queue holds more than its limit", "scheduling/engine/quota/standing.py",
        "if limit < 0 and would > cap:", "if limit < 0 and would - gpus > cap:",
        ("tests/scheduling/engine/test_cases.py",),
        plain=True,
    ),
    Mutant(
        "division that is no max-min", "scheduling/engine/division/divide.py",
        "out.fair[c, q] += level * out.pull[c, q]", "out.fair[c, q] += level",
        ("tests/scheduling/engine/test_laws.py::test_division_equals_filling_by_definition",),
        plain=True,
    ),
    Mutant(
        "lost hours are charged twice", "portal/reports/costs.py",
        "(sold - used - lost) * price,", "(sold - used) * price,",
        ("tests/portal/reports/test_showback.py",),
    ),
    Mutant(
        "audit line is dropped", "portal/notices/webhooks.py",
        '    announce("webhook.removed", actor=user, subject=webhook.name)\n', "",
        ("tests/portal/notices/test_letters.py",),
    ),
    Mutant(
        "token is good for everything", "portal/api/permissions.py",
        "if scope is not None and request.auth.covers(scope):", "if scope is not None:",
        ("tests/security/test_tokens.py",),
    ),
)  # fmt: skip
