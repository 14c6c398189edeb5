"""Slowly changing dimensions of type 2: every version of a row, with the interval when it held.

The versions of a key are cut from its time line: all its upserts and deletes by sequence. An
upsert holds from its own sequence to that of the next event, or still. Upserts are remembered by
the target, as their rows start there; deletes by the history table, as they leave no row. So the
time line is always whole, and an event that comes late splits the interval that it falls into.
"""

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import (
    END_AT,
    SEQUENCE,
    START_AT,
    ChangeEvents,
    Decided,
    key_names,
    marked,
    ordering,
    query,
)


def decide(events: ChangeEvents, versions: pa.Table, deletes: pa.Table) -> Decided:
    """Put the events of a batch into the time lines of their keys.

    `versions` are rows of the target and `deletes` of the history. Both may be given from the
    batch's smallest sequence on, as what ended before it stays as it is; both may hold other keys
    as well, which stay too.
    """
    line = _line(events, versions, deletes)
    found = _outcomes(line, events, versions.num_rows)
    written = found.filter(pc.equal(found["outcome"], "written"))
    removed = found.filter(pc.equal(found["outcome"], "removed"))["position"]
    deleted = found.filter(pc.equal(found["outcome"], "deleted"))["position"]
    payload = versions.drop_columns([START_AT, END_AT])
    changed = (
        pa.concat_tables([payload, events.rows.select(payload.column_names)])
        .take(written["position"])
        .append_column(START_AT, line["sequence"].take(written["position"]))
        .append_column(END_AT, line["sequence"].take(written["next_position"]))
        .select(versions.column_names)
    )
    return Decided(
        rows=pa.concat_tables(
            [
                marked(changed, is_delete=False),
                marked(versions.take(removed), is_delete=True),
            ]
        ),
        history=events.history(pc.subtract(deleted, versions.num_rows)),
    )


def _line(events: ChangeEvents, versions: pa.Table, deletes: pa.Table) -> pa.Table:
    """All that is known of the keys and the batch in one numbering: rows first, known deletes last.

    Arrow tables are taken by these numbers, and of equal upserts the later number counts.
    """
    keys, rows = events.keys, versions.num_rows
    none = pa.nulls(max(len(events), deletes.num_rows), versions[END_AT].type)
    live, gone = pa.repeat(False, rows), pa.repeat(True, deletes.num_rows)
    return pa.concat_tables(
        [
            ordering(versions, keys, versions[START_AT], live, end_at=versions[END_AT]),
            events.ordering(rows, end_at=none[: len(events)]),
            ordering(
                deletes,
                keys,
                deletes[SEQUENCE],
                gone,
                rows + len(events),
                end_at=none[: deletes.num_rows],
            ),
        ]
    )


def _outcomes(line: pa.Table, events: ChangeEvents, versions: int) -> pa.Table:
    """What is to be done, by position, and the position of the event that ends a written row.

    Of all that has one key and one sequence only one counts; the others are as if they never were.
    """
    keys = key_names(events.keys)
    return query(
        f"""
        WITH judged AS (
            SELECT *, row_number() OVER same = 1 AS counts, max(is_delete) OVER same AS is_deleted
            FROM line SEMI JOIN events USING ({keys})
            WINDOW same AS (
                PARTITION BY {keys}, sequence ORDER BY is_delete DESC, position DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
            )
        ), intervals AS (
            SELECT position, lead(position) OVER later AS next_position,
                is_delete, end_at IS DISTINCT FROM lead(sequence) OVER later AS ends_elsewhere
            FROM judged WHERE counts
            WINDOW later AS (PARTITION BY {keys} ORDER BY sequence)
        )
        SELECT position, next_position, 'written' AS outcome FROM intervals
            WHERE NOT is_delete AND (ends_elsewhere OR position >= {versions})
        UNION ALL SELECT position, next_position, 'deleted' FROM intervals
            WHERE is_delete AND position < {versions + len(events)}
        UNION ALL SELECT position, NULL, 'removed' FROM judged
            WHERE is_deleted AND position < {versions}
        ORDER BY position
        """,
        {"line": line, "events": events.ordering()},
    )
