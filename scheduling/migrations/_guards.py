"""Rules no CHECK can say: the queue tree has no cycle, and effective ranges of a quota never overlap.

SQLite serialises writers, so plain triggers suffice. PostgreSQL does not: there the tree is guarded under
an advisory lock per cluster, and the ranges by an exclusion constraint, which is safe by itself.

SQLite copies a table to add a column that is not null, and the copy has lost its triggers: a migration that
changes queues or quotas so ends with ``AGAIN``.
"""

from django.db import migrations

SQLITE = [
    """
    CREATE TRIGGER queue_no_cycle BEFORE UPDATE OF parent_id ON scheduling_queue
    WHEN NEW.parent_id IS NOT NULL
    BEGIN
        SELECT RAISE(ABORT, 'queue_no_cycle: the parent is below the queue')
        WHERE NEW.id IN (
            WITH RECURSIVE above(id, parent_id) AS (
                SELECT id, parent_id FROM scheduling_queue WHERE id = NEW.parent_id
                UNION
                SELECT q.id, q.parent_id FROM scheduling_queue q JOIN above ON q.id = above.parent_id
            )
            SELECT id FROM above
        );
    END
    """,
    *(
        f"""
        CREATE TRIGGER quota_no_overlap_{verb.lower()} BEFORE {verb} ON scheduling_quota
        BEGIN
            SELECT RAISE(ABORT, 'quota_no_overlap: another quota holds in this range')
            WHERE EXISTS (
                SELECT 1 FROM scheduling_quota q
                WHERE q.queue_id = NEW.queue_id AND q.gpu_class_id = NEW.gpu_class_id
                  AND q.id IS NOT NEW.id
                  AND (NEW.effective_until IS NULL OR q.effective_from < NEW.effective_until)
                  AND (q.effective_until IS NULL OR q.effective_until > NEW.effective_from)
            );
        END
        """
        for verb in ("INSERT", "UPDATE")
    ),
]
SQLITE_BACK = [
    "DROP TRIGGER queue_no_cycle",
    "DROP TRIGGER quota_no_overlap_insert",
    "DROP TRIGGER quota_no_overlap_update",
]

POSTGRESQL = [
    """
    CREATE FUNCTION weir_queue_no_cycle() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        PERFORM pg_advisory_xact_lock(hashtext('weir_queue_tree'), NEW.cluster_id::int);
        IF EXISTS (
            WITH RECURSIVE above(id, parent_id) AS (
                SELECT id, parent_id FROM scheduling_queue WHERE id = NEW.parent_id
                UNION
                SELECT q.id, q.parent_id FROM scheduling_queue q JOIN above ON q.id = above.parent_id
            )
            SELECT 1 FROM above WHERE id = NEW.id
        ) THEN
            RAISE EXCEPTION 'queue_no_cycle: the parent is below the queue'
                USING ERRCODE = 'integrity_constraint_violation';
        END IF;
        RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER queue_no_cycle BEFORE UPDATE OF parent_id ON scheduling_queue
    FOR EACH ROW WHEN (NEW.parent_id IS NOT NULL) EXECUTE FUNCTION weir_queue_no_cycle()
    """,
    "CREATE EXTENSION IF NOT EXISTS btree_gist",
    """
    ALTER TABLE scheduling_quota ADD CONSTRAINT quota_no_overlap EXCLUDE USING gist (
        queue_id WITH =, gpu_class_id WITH =, tstzrange(effective_from, effective_until) WITH &&
    )
    """,
]
POSTGRESQL_BACK = [
    "ALTER TABLE scheduling_quota DROP CONSTRAINT quota_no_overlap",
    "DROP TRIGGER queue_no_cycle ON scheduling_queue",
    "DROP FUNCTION weir_queue_no_cycle()",
]


def _run(schema_editor, sqlite, postgresql):
    statements = postgresql if schema_editor.connection.vendor == "postgresql" else sqlite
    for statement in statements:
        schema_editor.execute(statement)


def forward(apps, schema_editor):
    _run(schema_editor, SQLITE, POSTGRESQL)


def backward(apps, schema_editor):
    _run(schema_editor, SQLITE_BACK, POSTGRESQL_BACK)


def again(apps, schema_editor):
    if schema_editor.connection.vendor == "sqlite":
        for statement in (*(each.replace("TRIGGER", "TRIGGER IF EXISTS") for each in SQLITE_BACK), *SQLITE):
            schema_editor.execute(statement)


GUARDS = (migrations.RunPython(forward, backward),)
AGAIN = migrations.RunPython(again, migrations.RunPython.noop)
