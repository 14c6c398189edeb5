"""Expectations about rows: flags computed by Spark, and the split made by the writing tasks.

Spark adds one boolean column per rule about single rows; a task counts them and splits its rows for
the table and for quarantine. So a batch is read once, whatever the number of such rules; rules
about whole batches cost one more job.
"""

import base64
import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.lake.arrow_times import python_rows
from headrace.lake.quarantine import QUARANTINE_SCHEMA, QUARANTINED_AT, UNREADABLE
from headrace.pipelines import model
from headrace.pipelines.running.errors import ExpectationFailed

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_FLAG = "_broken_"
_REFUSING = (model.Violation.DROP, model.Violation.QUARANTINE)
_PLACE = {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64()}


@dataclass(frozen=True, slots=True)
class Split:
    """A split batch: rows for the table, rows for quarantine, and the broken rules."""

    kept: pa.RecordBatch
    refused: pa.RecordBatch
    dropped: int
    broken: dict[str, int]


@dataclass(frozen=True, slots=True)
class RowChecks:
    """The expectations about single rows; each has a flag column with its number."""

    expectations: tuple[model.Expectation, ...]
    table: str
    flow: str

    @classmethod
    def of(cls, expectations: Sequence[model.Expectation], table: str, flow: str) -> "RowChecks":
        rows = (e for e in expectations if isinstance(e.rule, model.RowRule | model.UniqueKey))
        return cls(tuple(rows), table, flow)

    def split(self, batch: pa.RecordBatch, now: dt.datetime) -> Split:
        """Split the rows of a batch by its flags, which are removed."""
        broken: dict[str, int] = {}
        is_refused, rules, reasons = _unreadable(batch)
        if unreadable := pc.sum(is_refused).as_py():
            broken[UNREADABLE] = unreadable
        is_dropped = _none_of(batch)
        readable = pc.invert(is_refused)
        for number, expectation in enumerate(self.expectations):
            flags = pc.and_(batch.column(f"{_FLAG}{number}"), readable)
            count = pc.sum(flags).as_py() or 0
            if not count:
                continue
            broken[expectation.name] = count
            if expectation.on_violation is model.Violation.DROP:
                is_dropped = pc.or_(is_dropped, flags)
            elif expectation.on_violation is model.Violation.QUARANTINE:
                first = pc.and_(flags, pc.invert(is_refused))
                rules = pc.if_else(first, expectation.name, rules)
                reasons = pc.if_else(first, _text(expectation), reasons)
                is_refused = pc.or_(is_refused, flags)
        is_dropped = pc.and_(is_dropped, pc.invert(is_refused))
        columns = [name for name in batch.schema.names if not _is_helper(name)]
        kept = batch.filter(pc.invert(pc.or_(is_refused, is_dropped))).select(columns)
        refused = _refused_rows(self, batch, columns, is_refused, rules, reasons, now)
        return Split(kept, refused, pc.sum(is_dropped).as_py() or 0, broken)

    def check_counts(self, broken: dict[str, int]) -> None:
        """Reject the whole batch if a row breaks an expectation that fails the flow."""
        for expectation in self.expectations:
            count = broken.get(expectation.name, 0)
            if count and expectation.on_violation is model.Violation.FAIL:
                raise ExpectationFailed(
                    f"{count} rows for {self.table} break the expectation"
                    f" {expectation.name!r} ({_text(expectation)}); nothing of this batch was"
                    " written. Fix the flow or its input, or change the consequence for such rows,"
                    " and run again"
                )


def with_flags(
    rows: "DataFrame",
    checks: RowChecks,
    known: "Mapping[tuple[str, ...], DataFrame] | None" = None,
) -> "DataFrame":
    """Add one column per check that is true if a row breaks it.

    A condition with the result null counts as broken. `known` has the keys that the table has
    already, for each unique key with known values.

    Unique keys are checked last, and only among rows that pass everything else: a rejected row must
    not displace one with its key that would pass. For the same reason all keys are compared with
    the table before any is compared within the batch.
    """
    from pyspark.sql import functions as F  # noqa: N812

    # An unreadable row has no key.
    is_taken = F.col(model.ERROR).isNull() if model.ERROR in rows.columns else F.lit(True)
    keys: list[tuple[str, tuple[str, ...], model.Expectation]] = []
    for number, expectation in enumerate(checks.expectations):
        name = f"{_FLAG}{number}"
        if isinstance(expectation.rule, model.UniqueKey):
            keys.append((name, expectation.rule.columns, expectation))
        elif isinstance(expectation.rule, model.RowRule):
            holds = F.coalesce(F.expr(f"({expectation.rule.condition})"), F.lit(False))
            rows = rows.withColumn(name, ~holds)
            is_taken = _still_taken(is_taken, name, expectation)
    for name, columns, expectation in keys:
        rows = _with_known(rows, columns, name, is_taken, (known or {}).get(columns))
        is_taken = _still_taken(is_taken, name, expectation)
    for name, columns, _ in keys:
        # `is_taken` uses the flags, so a key sees the rows that earlier keys have rejected.
        rows = _with_repeats(rows, columns, name, is_taken)
    return rows


def _still_taken(is_taken: "Column", flag: str, expectation: model.Expectation) -> "Column":
    from pyspark.sql import functions as F  # noqa: N812

    return is_taken & ~F.col(flag) if expectation.on_violation in _REFUSING else is_taken


@dataclass(frozen=True, slots=True)
class Judged:
    """The results of rules about a whole batch."""

    warnings: list[str] = field(default_factory=list)
    newest_ms: dict[str, int] = field(default_factory=dict)
    """For each expectation of freshness the newest time among the rows."""


def check_table_rules(
    rows: "DataFrame", expectations: Sequence[model.Expectation], table: str, now: dt.datetime
) -> Judged:
    """Check the rules about a whole batch; return warnings, or reject the batch."""
    rules = [
        e
        for e in expectations
        if isinstance(e.rule, model.TableRule | model.Freshness | model.RowCount)
    ]
    if not rules:
        return Judged()
    from pyspark.sql import functions as F  # noqa: N812

    asked = [_aggregate(expectation).alias(f"r{i}") for i, expectation in enumerate(rules)]
    found = rows.agg(F.count(F.lit(1)).alias("n"), *asked).first()
    assert found is not None, "an aggregate without groups has one row"
    judged = Judged()
    for number, expectation in enumerate(rules):
        value = found[f"r{number}"]
        if isinstance(expectation.rule, model.Freshness) and value is not None:
            judged.newest_ms[expectation.name] = value // 1_000
        problem = _table_problem(expectation, value, found["n"], now)
        if problem is None:
            continue
        text = f"{table} breaks the expectation {expectation.name!r}: {problem}"
        if expectation.on_violation is model.Violation.FAIL:
            raise ExpectationFailed(f"{text}; nothing of this batch was written")
        judged.warnings.append(text)
    return judged


def _aggregate(expectation: model.Expectation) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    match expectation.rule:
        case model.TableRule(condition):
            return F.expr(condition)
        case model.Freshness(column):
            # As a number: Spark returns times in this machine's zone, without marking it.
            return F.unix_micros(F.max(F.expr(column)).cast("timestamp"))
        case _:
            return F.lit(None)


def _table_problem(
    expectation: model.Expectation, value: Any, count: int, now: dt.datetime
) -> str | None:
    match expectation.rule:
        case model.TableRule(condition):
            return None if value or not count else f"{condition} is {value}"
        case model.Freshness(column, age_s_max) if count:
            if value is None:
                return f"{column} has no value"
            age_s = now.timestamp() - value / 1_000_000
            return f"the newest {column} is {age_s:.0f} s old" if age_s > age_s_max else None
        case model.RowCount(least, most):
            is_fine = least <= count and (most is None or count <= most)
            return None if is_fine else f"the batch has {count} rows"
        case _:
            return None


def _with_known(
    rows: "DataFrame",
    keys: Sequence[str],
    flag: str,
    is_taken: "Column",
    known_keys: "DataFrame | None",
) -> "DataFrame":
    """Mark rows that pass everything else and whose key the table has."""
    from pyspark.sql import functions as F  # noqa: N812

    if known_keys is None:
        return rows.withColumn(flag, F.lit(False))
    known = f"{flag}_known"
    keys_there = known_keys.select(*keys).distinct().withColumn(known, F.lit(True))
    renamed = keys_there.select(*(F.col(k).alias(f"{known}_{k}") for k in keys), known)
    same = [F.col(k).eqNullSafe(F.col(f"{known}_{k}")) for k in keys]
    joined = rows.join(renamed, same, "left")
    broken = is_taken & F.coalesce(F.col(known), F.lit(False))
    return joined.withColumn(flag, broken).drop(known, *(f"{known}_{k}" for k in keys))


def _with_repeats(
    rows: "DataFrame", keys: Sequence[str], flag: str, is_taken: "Column"
) -> "DataFrame":
    """Mark rows that pass everything else and whose key an earlier row of the batch has."""
    from pyspark.sql import Window
    from pyspark.sql import functions as F  # noqa: N812

    order = [F.col(name) for name in ("topic", "partition", "offset") if name in rows.columns]
    window = Window.partitionBy(is_taken, *keys).orderBy(*(order or [F.lit(1)]))
    is_repeat = is_taken & (F.row_number().over(window) > 1)
    return rows.withColumn(flag, F.col(flag) | is_repeat)


def _unreadable(batch: pa.RecordBatch) -> tuple[pa.Array, pa.Array, pa.Array]:
    """Return flags of unreadable rows, with their rule and reason."""
    if model.ERROR not in batch.schema.names:
        texts = pa.nulls(batch.num_rows, pa.string())
        return _none_of(batch), texts, texts
    errors = batch.column(model.ERROR)
    is_bad = pc.is_valid(errors)
    return is_bad, pc.if_else(is_bad, UNREADABLE, pa.scalar(None, pa.string())), errors


def _refused_rows(
    checks: RowChecks,
    batch: pa.RecordBatch,
    columns: list[str],
    is_refused: pa.Array,
    rules: pa.Array,
    reasons: pa.Array,
    now: dt.datetime,
) -> pa.RecordBatch:
    count = pc.sum(is_refused).as_py() or 0
    if not count:
        return pa.RecordBatch.from_pylist([], QUARANTINE_SCHEMA)
    refused = batch.filter(is_refused)
    # Key, headers and times of the record, if the flow has them, are kept with its columns.
    kept = [name for name in (model.KEPT_RECORD,) if name in refused.schema.names]
    rows = python_rows(refused.select([*columns, *kept]))
    content: dict[str, Any] = {
        QUARANTINED_AT: pa.array([now] * count, pa.timestamp("us", "UTC")),
        "table": pa.array([checks.table] * count),
        "flow": pa.array([checks.flow] * count),
        "rule": rules.filter(is_refused),
        "reason": reasons.filter(is_refused),
        "payload": _column(refused, model.PAYLOAD, pa.binary()),
        "row": pa.array([_json(row) for row in rows], pa.string()),
    }
    content |= {name: _column(refused, name, kind) for name, kind in _PLACE.items()}
    return pa.RecordBatch.from_arrays(
        [content[field.name].cast(field.type) for field in QUARANTINE_SCHEMA],
        schema=QUARANTINE_SCHEMA,
    )


def _column(batch: pa.RecordBatch, name: str, kind: pa.DataType) -> pa.Array:
    """Return a column about a row's origin, if the flow has one of that name and type."""
    if name in batch.schema.names:
        found = batch.column(name)
        if pa.types.is_integer(found.type) == pa.types.is_integer(kind):
            return found.cast(kind)
    return pa.nulls(batch.num_rows, kind)


def _json(row: dict[str, Any]) -> str:
    """Return a row as JSON; NaN and infinity are texts, as in Spark."""
    try:
        return json.dumps(row, default=_plain, allow_nan=False)
    except ValueError:
        return json.dumps(_with_texts(row), default=_plain)


def _with_texts(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _with_texts(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_with_texts(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return value


def _plain(value: object) -> object:
    """Convert values that JSON lacks: times to ISO texts, bytes to base64, others to text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    return str(value)


def _none_of(batch: pa.RecordBatch) -> pa.Array:
    return pa.repeat(pa.scalar(False), batch.num_rows)


def _is_helper(name: str) -> bool:
    return name in model.RESERVED or name.startswith(_FLAG)


def _text(expectation: model.Expectation) -> str:
    if isinstance(expectation.rule, model.UniqueKey):
        return f"unique {', '.join(expectation.rule.columns)}"
    assert isinstance(expectation.rule, model.RowRule)
    return expectation.rule.condition
