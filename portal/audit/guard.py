"""What the database itself refuses: entries of the audit log are added, never changed and never deleted.

Triggers, so that whoever reaches the database past Weir, by a shell or another program, is refused as well.
The owner of the table can drop them: the chain then shows what was done, and ``manage.py audit verify`` that
they are gone. A migration that makes the table anew, as SQLite does to change a column, calls ``guard``
again.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db.backends.base.base import BaseDatabaseWrapper

TABLE = "audit_auditentry"
REFUSAL = "entries of the audit log are never changed or deleted"
NAMES = ("audit_no_update", "audit_no_delete")

GUARD: dict[str, Sequence[str]] = {
    "sqlite": tuple(
        f"CREATE TRIGGER {name} BEFORE {act} ON {TABLE} BEGIN SELECT RAISE(ABORT, '{REFUSAL}'); END"
        for name, act in zip(NAMES, ("UPDATE", "DELETE"), strict=True)
    ),
    "postgresql": (
        f"""CREATE OR REPLACE FUNCTION audit_refuse() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN RAISE EXCEPTION '{REFUSAL}' USING ERRCODE = 'integrity_constraint_violation'; END $$""",
        f"CREATE TRIGGER {NAMES[0]} BEFORE UPDATE ON {TABLE}"
        " FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
        f"CREATE TRIGGER {NAMES[1]} BEFORE DELETE OR TRUNCATE ON {TABLE}"
        " FOR EACH STATEMENT EXECUTE FUNCTION audit_refuse()",
    ),
}
UNGUARD: dict[str, Sequence[str]] = {
    "sqlite": tuple(f"DROP TRIGGER IF EXISTS {name}" for name in NAMES),
    "postgresql": (
        *(f"DROP TRIGGER IF EXISTS {name} ON {TABLE}" for name in NAMES),
        "DROP FUNCTION IF EXISTS audit_refuse()",
    ),
}
FOUND = {
    "sqlite": "SELECT count(*) FROM sqlite_master WHERE type = 'trigger' AND name IN (%s, %s)",
    "postgresql": "SELECT count(*) FROM pg_trigger WHERE tgname IN (%s, %s) AND tgenabled <> 'D'"
    " AND tgrelid = 'audit_auditentry'::regclass",
}
"""By vendor of the database."""


def guard(connection: BaseDatabaseWrapper) -> None:
    """Make the triggers, anew where there are some."""
    unguard(connection)
    _run(connection, GUARD[connection.vendor])


def unguard(connection: BaseDatabaseWrapper) -> None:
    _run(connection, UNGUARD[connection.vendor])


def is_guarded(connection: BaseDatabaseWrapper) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(FOUND[connection.vendor], NAMES)
        (found,) = cursor.fetchone()
    return int(found) == len(NAMES)


def _run(connection: BaseDatabaseWrapper, statements: Sequence[str]) -> None:
    with connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)
