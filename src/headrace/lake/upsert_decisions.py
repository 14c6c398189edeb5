"""Decisions of a merge by key: replace, merge or delete existing rows, and insert the others.

They depend on Arrow tables alone, so they are the same whether the driver merges a small batch
(`upsert_files`) or Spark's tasks merge a large one by parts of its keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.arrow_times import python_rows
from headrace.lake.change_events import key_names, numbered, query
from headrace.lake.errors import IncompatibleSchema, LakeError
from headrace.lake.merge_functions import MERGES


@dataclass(frozen=True, slots=True)
class Merged:
    """The result of a merge."""

    rows: Any
    """An Arrow table of the rows to write."""
    removed: Any
    """Positions of the existing rows that are replaced or deleted."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """Rules of a merge by key; plain data that tasks unpickle."""

    keys: tuple[str, ...]
    merge: Mapping[str, str] | None = None
    """The aggregate of each other column; None lets incoming rows replace existing ones."""
    delete: str | None = None
    """A boolean column of incoming rows: true deletes the matched row."""
    sequence: str | None = None
    """A column that orders the rows of a key: a row does not replace one with a greater value."""

    def check(self, schema: pa.Schema) -> None:
        """Reject rules that do not fit the table's schema."""
        ordered = () if self.sequence is None else (self.sequence,)
        for name in (*self.keys, *ordered, *(self.merge or ())):
            if name not in schema.names:
                raise LakeError(f"the table has no column {name}; it has {', '.join(schema.names)}")
        if not self.keys:
            raise LakeError("replacing rows needs a key; name its columns")
        if self.delete is not None and self.delete in schema.names:
            raise LakeError(
                f"the column {self.delete}, which marks deletes, is also one of the table; use"
                " another name"
            )
        if self.merge is not None:
            self._check_merge(schema, self.merge)

    def incoming_schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of incoming rows: the table's columns, and the mark of deletes."""
        return schema if self.delete is None else schema.append(pa.field(self.delete, pa.bool_()))

    @property
    def columns_read(self) -> tuple[str, ...]:
        """The columns of existing rows that a merge needs."""
        ordered = () if self.sequence is None else (self.sequence,)
        return tuple(dict.fromkeys((*self.keys, *ordered, *(self.merge or ()))))

    def merged(self, incoming: pa.Table, existing: pa.Table) -> Merged:
        """Merge incoming rows, in the order of their arrival, with existing ones.

        Existing rows have the columns `columns_read`. Rows of other keys are ignored.
        """
        once = self._one_row_per_key(incoming)
        pairs = self._pairs(once, existing)
        if self.sequence is not None:
            once, pairs = _without_late(once, existing, pairs, self.sequence)
        rows = self._written(once)
        if self.merge is not None:
            rows = _combined(rows, existing, pairs, self.merge)
        return Merged(rows, pairs["existing"])

    def _one_row_per_key(self, rows: pa.Table) -> pa.Table:
        """Reduce rows to one per key: the newest by sequence, or the merged parts of an aggregate.

        Without a sequence, two rows of a key are an error.
        """
        if self.sequence is not None:
            return self._newest(rows, self.sequence)
        counted = query(
            f"""SELECT min(position) AS first, count(*) AS count FROM rows
            GROUP BY {key_names(self.keys)} HAVING count(*) > 1 ORDER BY first""",
            {"rows": numbered(rows, self.keys)},
        )
        if not counted.num_rows:
            return rows
        if self.merge is None or self.delete is not None:
            first = python_rows(rows.select(list(self.keys)).slice(counted["first"][0].as_py(), 1))
            raise LakeError(
                f"the key {first[0]} appears {counted['count'][0].as_py()} times in one batch, and"
                f" {counted.num_rows - 1} further keys more than once; keep one row for each key,"
                " or name the column that orders them by SEQUENCE BY"
            )
        return self._parts_as_one(rows, self.merge)

    def _newest(self, rows: pa.Table, sequence: str) -> pa.Table:
        if nulls := rows[sequence].null_count:
            raise IncompatibleSchema(
                f"{nulls} of {rows.num_rows} rows have a null sequence (column {sequence}) and"
                " cannot be ordered; let an expectation drop or quarantine them"
            )
        newest = query(
            f"""SELECT position FROM rows QUALIFY row_number() OVER (
                PARTITION BY {key_names(self.keys)} ORDER BY sequence DESC, position DESC
            ) = 1 ORDER BY position""",
            {"rows": numbered(rows, self.keys, sequence=rows[sequence])},
        )
        return rows.take(newest["position"])

    def _parts_as_one(self, rows: pa.Table, merge: Mapping[str, str]) -> pa.Table:
        """Merge the further rows of each key into its first one, in their order."""
        turns = query(
            f"""SELECT position, min(position) OVER (PARTITION BY {key_names(self.keys)}) AS first
            FROM rows ORDER BY position""",
            {"rows": numbered(rows, self.keys)},
        )
        is_first = pc.equal(turns["position"], turns["first"])
        firsts = turns.filter(is_first)["position"]
        others = turns.filter(pc.invert(is_first))
        pairs = pa.table(
            {
                "incoming": pc.index_in(others["first"], value_set=firsts).cast(pa.int64()),
                "existing": others["position"],
            }
        )
        return _combined(rows.take(firsts), rows, pairs, merge)

    def _pairs(self, incoming: pa.Table, existing: pa.Table) -> pa.Table:
        """Join incoming and existing rows by key; nulls are equal."""
        same = " AND ".join(
            f"incoming.key{n} IS NOT DISTINCT FROM existing.key{n}" for n in range(len(self.keys))
        )
        return query(
            f"""SELECT incoming.position AS incoming, existing.position AS existing
            FROM incoming JOIN existing ON {same} ORDER BY ALL""",
            {
                "incoming": numbered(incoming, self.keys),
                "existing": numbered(existing, self.keys),
            },
        )

    def _written(self, incoming: pa.Table) -> pa.Table:
        if self.delete is None:
            return incoming
        stays = pc.invert(pc.fill_null(incoming[self.delete], False))
        return incoming.filter(stays).drop_columns([self.delete])

    def _check_merge(self, schema: pa.Schema, merge: Mapping[str, str]) -> None:
        unknown = {how for how in merge.values() if how not in MERGES}
        if unknown:
            raise LakeError(
                f"{', '.join(sorted(unknown))} is not a valid aggregate; use sum, min or max"
            )
        unmerged = [name for name in schema.names if name not in self.keys and name not in merge]
        if unmerged:
            raise LakeError(
                f"the column {', '.join(unmerged)} has no aggregate; make it a key, or give it sum,"
                " min or max"
            )
        if self.delete is not None or self.sequence is not None:
            raise LakeError(
                "aggregates cannot be combined with deletes or a sequence; leave out the column"
                " that marks deletes or orders rows"
            )


def _without_late(
    incoming: pa.Table, existing: pa.Table, pairs: pa.Table, sequence: str
) -> tuple[pa.Table, pa.Table]:
    """Leave out incoming rows with a smaller sequence than the existing row of their key."""
    ordered = query(
        """
        WITH judged AS (
            SELECT pairs.*, bool_or(old.sequence > new.sequence) OVER (PARTITION BY pairs.incoming)
                AS is_late
            FROM pairs JOIN old ON old.position = pairs.existing
            JOIN new ON new.position = pairs.incoming
        )
        SELECT incoming, existing, coalesce(is_late, false) AS is_late FROM judged ORDER BY ALL
        """,
        {
            "pairs": pairs,
            "old": numbered(existing, (), sequence=existing[sequence]),
            "new": numbered(incoming, (), sequence=incoming[sequence]),
        },
    )
    late = ordered.filter(ordered["is_late"])["incoming"]
    places = numbered(incoming, ())["position"]
    kept = incoming.filter(pc.invert(pc.is_in(places, value_set=late.combine_chunks())))
    # Only the existing rows of the remaining pairs are used.
    return kept, ordered.filter(pc.invert(ordered["is_late"]))


def _combined(
    rows: pa.Table, others: pa.Table, pairs: pa.Table, merge: Mapping[str, str]
) -> pa.Table:
    """Merge into each row its partners, one after the other."""
    while pairs.num_rows:
        turns = query(
            """SELECT incoming, existing,
                row_number() OVER (PARTITION BY incoming ORDER BY existing) = 1 AS is_next
            FROM pairs ORDER BY ALL""",
            {"pairs": pairs},
        )
        chosen = turns.filter(turns["is_next"])
        rows = _combined_once(rows, others, chosen, merge)
        pairs = turns.filter(pc.invert(turns["is_next"])).drop_columns(["is_next"])
    return rows


def _combined_once(
    rows: pa.Table, others: pa.Table, pairs: pa.Table, merge: Mapping[str, str]
) -> pa.Table:
    positions = numbered(rows, ())["position"]
    partners = pairs["existing"].take(pc.index_in(positions, value_set=pairs["incoming"]))
    for name, how in merge.items():
        index = rows.schema.get_field_index(name)
        field = rows.schema.field(index)
        values = _two_as_one(others[name].take(partners), rows[name], how, field)
        rows = rows.set_column(index, field, values)
    return rows


def _two_as_one(old: Any, new: Any, how: str, field: pa.Field) -> Any:
    """Combine two parts of an aggregate; nulls are ignored."""
    if how == "sum":
        return _sum(old, new, field)
    if pa.types.is_floating(field.type):
        return _least(old, new) if how == "min" else _most(old, new)
    is_old = pc.less_equal(old, new) if how == "min" else pc.greater_equal(old, new)
    return pc.if_else(pc.coalesce(is_old, pc.is_valid(old)), old, new)


def _sum(old: Any, new: Any, field: pa.Field) -> Any:
    """Add two parts, and reject a sum that does not fit the column.

    Arrow's sum of decimals has one digit more, and 128 bits hold 38, so 256 bits are used.
    """
    if pa.types.is_decimal128(field.type):
        old, new = (
            one.cast(pa.decimal256(one.type.precision, one.type.scale)) for one in (old, new)
        )
    try:
        return pc.coalesce(*(one.cast(field.type) for one in (pc.add_checked(old, new), old, new)))
    except pa.ArrowInvalid as error:
        raise IncompatibleSchema(
            f"a sum in column {field.name} does not fit into {field.type}: {error};"
            " make the column wider"
        ) from None


def _least(old: Any, new: Any) -> Any:
    """Return the minimum; as in Spark and DuckDB, NaN is above all numbers."""
    return pc.min_element_wise(old, new)


def _most(old: Any, new: Any) -> Any:
    """Return the maximum; Arrow ignores NaN, which in Spark and DuckDB is above all numbers."""
    has_nan = pc.or_(*(pc.fill_null(pc.is_nan(one), False) for one in (old, new)))
    nan = pa.scalar(float("nan"), new.type)
    return pc.if_else(has_nan, nan, pc.max_element_wise(old, new))
