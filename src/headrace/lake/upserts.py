"""Rows into a table by key: replace, merge or delete the row that is there, insert the others.

What becomes of rows is decided here, on Arrow tables alone, so that it is the same whether the
driver merges a small batch (`upserting`) or Spark's tasks merge a large one by parts of its keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.change_events import key_names, numbered, query
from headrace.lake.errors import IncompatibleSchema, LakeError
from headrace.lake.far_times import python_rows

MERGES = ("sum", "min", "max")


@dataclass(frozen=True, slots=True)
class Merged:
    """What a batch makes of a table's rows."""

    rows: Any
    """An Arrow table: what is to be written."""
    removed: Any
    """Positions of the standing rows in whose place they come, or that are deleted."""


@dataclass(frozen=True, slots=True)
class Upsert:
    """How rows go into a table; plain, so that it travels to tasks."""

    keys: tuple[str, ...]
    merge: Mapping[str, str] | None = None
    """For each other column how two rows become one; None lets the arriving row replace."""
    delete: str | None = None
    """A boolean column of arriving rows: true takes the matched row away and adds none."""
    sequence: str | None = None
    """A column that orders the rows of a key: a row does not replace one of a greater sequence."""

    def check(self, schema: pa.Schema) -> None:
        """Refuse keys and merged columns that are not the table's."""
        ordered = () if self.sequence is None else (self.sequence,)
        for name in (*self.keys, *ordered, *(self.merge or ())):
            if name not in schema.names:
                raise LakeError(f"the table has no column {name}; it has {', '.join(schema.names)}")
        if not self.keys:
            raise LakeError(
                "rows can only be put in the place of others by a key; name its columns"
            )
        if self.delete is not None and self.delete in schema.names:
            raise LakeError(
                f"the column {self.delete}, which says what to delete, is one of the table; use"
                " another name"
            )
        if self.merge is not None:
            self._check_merge(schema, self.merge)

    def arriving_schema(self, schema: pa.Schema) -> pa.Schema:
        """What arriving rows have: the table's columns, and the mark of what is to go."""
        return schema if self.delete is None else schema.append(pa.field(self.delete, pa.bool_()))

    @property
    def looked_at(self) -> tuple[str, ...]:
        """The columns of standing rows that decide; no others need be read."""
        ordered = () if self.sequence is None else (self.sequence,)
        return tuple(dict.fromkeys((*self.keys, *ordered, *(self.merge or ()))))

    def merged(self, arriving: pa.Table, standing: pa.Table) -> Merged:
        """Put arriving rows in the place of standing ones.

        Arriving rows are in the order of their arrival and have the arriving schema. Standing ones
        have the columns that are looked at, and may be of other keys too, which stay.
        """
        once = self._one_row_per_key(arriving)
        pairs = self._pairs(once, standing)
        if self.sequence is not None:
            once, pairs = _without_late(once, standing, pairs, self.sequence)
        rows = self._written(once)
        if self.merge is not None:
            rows = _combined(rows, standing, pairs, self.merge)
        return Merged(rows, pairs["standing"])

    def _one_row_per_key(self, rows: pa.Table) -> pa.Table:
        """Each key once: by sequence the newest, parts of an aggregate merged, else a mistake.

        Which of two rows without a sequence is the right one cannot be known here.
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
                f"the key {first[0]} is there {counted['count'][0].as_py()} times in one batch, and"
                f" {counted.num_rows - 1} further keys more than once; keep one row for each key,"
                " or say by SEQUENCE BY which one is the newest"
            )
        return self._parts_as_one(rows, self.merge)

    def _newest(self, rows: pa.Table, sequence: str) -> pa.Table:
        if nulls := rows[sequence].null_count:
            raise IncompatibleSchema(
                f"{nulls} of {rows.num_rows} rows have a null sequence (column {sequence}): a row"
                " without one has no place in the order; let an expectation drop or quarantine them"
            )
        newest = query(
            f"""SELECT position FROM rows QUALIFY row_number() OVER (
                PARTITION BY {key_names(self.keys)} ORDER BY sequence DESC, position DESC
            ) = 1 ORDER BY position""",
            {"rows": numbered(rows, self.keys, sequence=rows[sequence])},
        )
        return rows.take(newest["position"])

    def _parts_as_one(self, rows: pa.Table, merge: Mapping[str, str]) -> pa.Table:
        """Merge the second row of each key into the first, then the third, until all are in."""
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
                "arriving": pc.index_in(others["first"], value_set=firsts).cast(pa.int64()),
                "standing": others["position"],
            }
        )
        return _combined(rows.take(firsts), rows, pairs, merge)

    def _pairs(self, arriving: pa.Table, standing: pa.Table) -> pa.Table:
        """Which arriving and which standing rows have one key; nulls are the same key too."""
        same = " AND ".join(
            f"arriving.key{n} IS NOT DISTINCT FROM standing.key{n}" for n in range(len(self.keys))
        )
        return query(
            f"""SELECT arriving.position AS arriving, standing.position AS standing
            FROM arriving JOIN standing ON {same} ORDER BY ALL""",
            {
                "arriving": numbered(arriving, self.keys),
                "standing": numbered(standing, self.keys),
            },
        )

    def _written(self, arriving: pa.Table) -> pa.Table:
        if self.delete is None:
            return arriving
        stays = pc.invert(pc.fill_null(arriving[self.delete], False))
        return arriving.filter(stays).drop_columns([self.delete])

    def _check_merge(self, schema: pa.Schema, merge: Mapping[str, str]) -> None:
        unknown = {how for how in merge.values() if how not in MERGES}
        if unknown:
            raise LakeError(
                f"{', '.join(sorted(unknown))} is no way to merge; there are sum, min, max"
            )
        unmerged = [name for name in schema.names if name not in self.keys and name not in merge]
        if unmerged:
            raise LakeError(
                f"nothing says how to merge the column {', '.join(unmerged)}; it is neither a key"
                " nor given sum, min or max"
            )
        if self.delete is not None or self.sequence is not None:
            raise LakeError(
                "rows that are merged into others can neither delete them nor be older than them;"
                " leave out what marks deletes or orders rows"
            )


def _without_late(
    arriving: pa.Table, standing: pa.Table, pairs: pa.Table, sequence: str
) -> tuple[pa.Table, pa.Table]:
    """Leave out arriving rows that are older than the row of their key; equal ones replace it."""
    ordered = query(
        """
        WITH judged AS (
            SELECT pairs.*, bool_or(old.sequence > new.sequence) OVER (PARTITION BY pairs.arriving)
                AS is_late
            FROM pairs JOIN old ON old.position = pairs.standing
            JOIN new ON new.position = pairs.arriving
        )
        SELECT arriving, standing, coalesce(is_late, false) AS is_late FROM judged ORDER BY ALL
        """,
        {
            "pairs": pairs,
            "old": numbered(standing, (), sequence=standing[sequence]),
            "new": numbered(arriving, (), sequence=arriving[sequence]),
        },
    )
    late = ordered.filter(ordered["is_late"])["arriving"]
    places = numbered(arriving, ())["position"]
    kept = arriving.filter(pc.invert(pc.is_in(places, value_set=late.combine_chunks())))
    # The pairs that are left name standing rows; whose place they take is not asked any more.
    return kept, ordered.filter(pc.invert(ordered["is_late"]))


def _combined(
    rows: pa.Table, others: pa.Table, pairs: pa.Table, merge: Mapping[str, str]
) -> pa.Table:
    """Merge into each row the others that are paired with it, one after the other."""
    while pairs.num_rows:
        turns = query(
            """SELECT arriving, standing,
                row_number() OVER (PARTITION BY arriving ORDER BY standing) = 1 AS is_next
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
    partners = pairs["standing"].take(pc.index_in(positions, value_set=pairs["arriving"]))
    for name, how in merge.items():
        index = rows.schema.get_field_index(name)
        field = rows.schema.field(index)
        values = _two_as_one(others[name].take(partners), rows[name], how, field)
        rows = rows.set_column(index, field, values)
    return rows


def _two_as_one(old: Any, new: Any, how: str, field: pa.Field) -> Any:
    """Two parts of an aggregate as one; a part that is null adds nothing."""
    if how == "sum":
        return _sum(old, new, field)
    if pa.types.is_floating(field.type):
        return _least(old, new) if how == "min" else _most(old, new)
    is_old = pc.less_equal(old, new) if how == "min" else pc.greater_equal(old, new)
    return pc.if_else(pc.coalesce(is_old, pc.is_valid(old)), old, new)


def _sum(old: Any, new: Any, field: pa.Field) -> Any:
    """Both together, if the column holds that.

    Arrow gives a sum of decimals one digit more than they had, and 128 bits have no 39th.
    """
    if pa.types.is_decimal128(field.type):
        old, new = (
            one.cast(pa.decimal256(one.type.precision, one.type.scale)) for one in (old, new)
        )
    try:
        return pc.coalesce(*(one.cast(field.type) for one in (pc.add_checked(old, new), old, new)))
    except pa.ArrowInvalid as error:
        raise IncompatibleSchema(
            f"a sum in column {field.name} does not fit into {field.type} any more: {error};"
            " make the column wider"
        ) from None


def _least(old: Any, new: Any) -> Any:
    """For Spark and DuckDB NaN is above all numbers, so the least is NaN where nothing else is."""
    return pc.min_element_wise(old, new)


def _most(old: Any, new: Any) -> Any:
    """Arrow passes over NaN, which for Spark and DuckDB is above all numbers."""
    has_nan = pc.or_(*(pc.fill_null(pc.is_nan(one), False) for one in (old, new)))
    nan = pa.scalar(float("nan"), new.type)
    return pc.if_else(has_nan, nan, pc.max_element_wise(old, new))
