"""Slowly changing dimensions of type 1: one row per key, the newest; nothing of what was before.

The target alone does not know how old its rows are, nor what was deleted. So the history table
keeps, for every key ever seen, the sequence of its newest event and whether that was a delete.
"""

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import (
    IS_DELETE,
    SEQUENCE,
    ChangeEvents,
    Decided,
    key_names,
    marked,
    ordering,
    query,
)


def decide(events: ChangeEvents, known: pa.Table) -> Decided:
    """Choose the newest event of each key, unless the history knows a newer one.

    `known` holds the history of the batch's keys, and perhaps of others. Of an event that is as
    new as what is known, it is the one that arrived later.
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
