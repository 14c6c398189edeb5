"""Slowly changing dimensions: what a batch of change events does to the rows of its keys.

Type 1 keeps the newest row of each key. The target has no sequences of deleted rows, so the history
table keeps the sequence of each key's newest event, and whether that event was a delete.

Type 2 keeps every version of a row with the interval in which it held. The versions of a key are
its events by sequence: an upsert holds from its own sequence to that of the next event. Upserts are
in the target, because their rows start there; deletes are in the history table, because they leave
no row. So the events of a key are always complete, and a late event splits the interval it falls
into.
"""

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import (
    END_AT,
    IS_DELETE,
    SEQUENCE,
    START_AT,
    ChangeEvents,
    Decided,
    key_names,
    marked,
    ordering,
    query,
)


def decide_type_1(events: ChangeEvents, known: pa.Table) -> Decided:
    """Choose the newest event of each key, unless the history has a newer one.

    `known` is the history of the batch's keys, and perhaps of others. With equal sequences the
    event of the batch wins over the known one, as the later arrival.
    """
    keys = key_names(events.keys)
    newest = query(
        f"""
        WITH newest AS (
            SELECT * FROM events QUALIFY row_number() OVER (
                PARTITION BY {keys} ORDER BY sequence DESC, is_delete DESC, position DESC
            ) = 1
        )
        SELECT newest.position, newest.is_delete FROM newest LEFT JOIN known USING ({keys})
        WHERE known.position IS NULL OR newest.sequence > known.sequence
           OR (newest.sequence = known.sequence AND newest.is_delete >= known.is_delete)
        ORDER BY newest.position
        """,
        {
            "events": events.ordering(),
            "known": ordering(known, events.keys, known[SEQUENCE], known[IS_DELETE]),
        },
    )
    written = newest.filter(pc.invert(newest["is_delete"]))["position"]
    removed = newest.filter(newest["is_delete"])["position"]
    return Decided(
        rows=pa.concat_tables(
            [
                marked(events.rows.take(written), is_delete=False),
                marked(events.rows.take(removed), is_delete=True),
            ]
        ),
        history=events.history(newest["position"]),
    )


def decide_type_2(events: ChangeEvents, versions: pa.Table, deletes: pa.Table) -> Decided:
    """Insert the events of a batch into the timelines of their keys.

    `versions` are rows of the target and `deletes` rows of the history. Rows that ended before the
    batch's smallest sequence may be missing; rows of other keys are ignored.
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
    """Number versions, events and known deletes in this order.

    Rows are taken from the Arrow tables by these positions, and the later of equal upserts wins.
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
    """Return the outcome by position, and the position of the event that ends a written row.

    One row counts for each key and sequence; the others are ignored.
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
