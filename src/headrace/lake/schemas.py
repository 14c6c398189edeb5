"""Schemas of tables: Delta's types as Arrow types, and the rules of their evolution.

Delta has no unsigned, nanosecond or large types. `normalised` maps each Arrow type to the Delta
type that holds all its values, so that nothing is truncated silently.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from headrace.lake.errors import IncompatibleSchema

_UNSIGNED = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
}
_KEPT = {
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.binary(),
    pa.date32(),
}
_WIDER = {
    (pa.int8(), pa.int16()),
    (pa.int8(), pa.int32()),
    (pa.int8(), pa.int64()),
    (pa.int16(), pa.int32()),
    (pa.int16(), pa.int64()),
    (pa.int32(), pa.int64()),
    (pa.float32(), pa.float64()),
    (pa.int8(), pa.float64()),
    (pa.int16(), pa.float64()),
    (pa.int32(), pa.float64()),
}
"""Delta's type widening apart from decimals; a long does not fit into a double."""


@dataclass(frozen=True, slots=True)
class Evolution:
    """A change of a table's schema: the result, the new columns and the widened ones."""

    schema: pa.Schema
    added: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()

    @property
    def is_change(self) -> bool:
        return bool(self.added or self.widened)


def normalised(schema: pa.Schema) -> pa.Schema:
    """Return the schema in Delta's types, without metadata."""
    for name in doubled(schema.names):
        raise IncompatibleSchema(
            f"column {name} appears twice; names in Delta are case-insensitive, so rename one"
        )
    return pa.schema([_normalised_field(field, field.name) for field in schema])


def doubled(names: Iterable[str]) -> list[str]:
    """Return the names that occur more than once, without regard to case, as written first."""
    first: dict[str, str] = {}
    twice: dict[str, None] = {}
    for name in names:
        if name.lower() in first:
            twice[first[name.lower()]] = None
        first.setdefault(name.lower(), name)
    return list(twice)


def evolution(old: pa.Schema, new: pa.Schema) -> Evolution:
    """Evolve the old schema to hold rows of the new one.

    Columns that the new schema lacks stay, with nulls in new rows. Added columns come last and are
    nullable, because old rows have no values for them.
    """
    added: list[str] = []
    widened: list[str] = []
    fields = _merged(list(old), list(normalised(new)), "", added, widened)
    return Evolution(pa.schema(fields), tuple(added), tuple(widened))


def holding_both(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    """Return the columns of both schemas, each in the wider of its two types.

    A column is nullable if either schema lacks it or allows nulls. Names that differ only in case
    are rejected.
    """
    return normalised(pa.schema(_holding_both(list(one), list(other), "")))


def conform(rows: Any, schema: pa.Schema) -> Any:
    """Convert a record batch or table to exactly these columns; missing ones are null.

    Nulls in required columns are rejected even if the rows have the schema already, because Arrow
    does not check them.
    """
    unknown = [name for name in rows.schema.names if name not in schema.names]
    if unknown:
        raise IncompatibleSchema(
            f"the table has no column {', '.join(unknown)}; it has {', '.join(schema.names)}."
            " Evolve the table first, or leave the column out"
        )
    columns = [_column(rows, field) for field in schema]
    for column, field in zip(columns, schema, strict=True):
        _refuse_nulls(column, field, field.name)
    if rows.schema.equals(schema):
        return rows
    return type(rows).from_arrays(columns, schema=schema)


def type_text(of: pa.DataType) -> str:
    """Format a type as Delta and Spark do in DDL."""
    names = {
        pa.int8(): "byte",
        pa.int16(): "short",
        pa.int32(): "int",
        pa.int64(): "long",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.bool_(): "boolean",
        pa.date32(): "date",
    }
    if of in names:
        return names[of]
    if pa.types.is_decimal(of):
        return f"decimal({of.precision},{of.scale})"
    if pa.types.is_timestamp(of):
        return "timestamp" if of.tz else "timestamp_ntz"
    if pa.types.is_struct(of):
        return f"struct<{', '.join(f'{f.name}: {type_text(f.type)}' for f in of)}>"
    if pa.types.is_map(of):
        return f"map<{type_text(of.key_type)}, {type_text(of.item_type)}>"
    if pa.types.is_list(of):
        return f"array<{type_text(of.value_type)}>"
    return str(of)


def leaves(schema: pa.Schema) -> Iterator[tuple[tuple[str, ...], pa.DataType]]:
    """Yield the path and type of every column, with structs expanded."""
    for field in schema:
        yield from _leaves(field, ())


def _leaves(field: pa.Field, above: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    path = (*above, field.name)
    if pa.types.is_struct(field.type):
        for child in field.type:
            yield from _leaves(child, path)
    else:
        yield path, field.type


def _normalised_field(field: pa.Field, path: str) -> pa.Field:
    return pa.field(field.name, _normalised_type(field.type, path), field.nullable)


def _normalised_type(of: pa.DataType, path: str) -> pa.DataType:
    if of in _KEPT:
        return of
    if of in _UNSIGNED:
        return _UNSIGNED[of]
    if pa.types.is_timestamp(of):
        return pa.timestamp("us", tz="UTC" if of.tz else None)
    if pa.types.is_decimal(of) and of.precision <= 38:
        return pa.decimal128(of.precision, of.scale)
    if pa.types.is_large_string(of) or of == pa.string_view():
        return pa.string()
    if pa.types.is_large_binary(of) or pa.types.is_fixed_size_binary(of) or of == pa.binary_view():
        return pa.binary()
    if pa.types.is_float16(of):
        return pa.float32()
    if pa.types.is_date64(of):
        return pa.date32()
    if pa.types.is_dictionary(of):
        return _normalised_type(of.value_type, path)
    if pa.types.is_struct(of):
        return pa.struct([_normalised_field(child, f"{path}.{child.name}") for child in of])
    if pa.types.is_map(of):
        item = _normalised_field(of.item_field, f"{path}.value").with_name("value")
        return pa.map_(_normalised_type(of.key_type, f"{path}.key"), item)
    if pa.types.is_list(of) or pa.types.is_large_list(of) or pa.types.is_fixed_size_list(of):
        element = _normalised_field(of.value_field, f"{path}.element")
        return pa.list_(element.with_name("element"))
    raise IncompatibleSchema(
        f"column {path} has the type {of}, which Delta does not support; cast it, for example to"
        " string, long, double or timestamp"
    )


def _merged(
    old: list[pa.Field], new: list[pa.Field], above: str, added: list[str], widened: list[str]
) -> list[pa.Field]:
    added_fields = {field.name: field for field in new}
    known = {field.name.lower(): field.name for field in old}
    fields = []
    for field in old:
        path = f"{above}{field.name}"
        other = added_fields.get(field.name)
        if other is None:
            if not field.nullable:
                raise IncompatibleSchema(
                    f"column {path} is required and the new schema lacks it;"
                    f" keep it, or rebuild the table without it"
                )
            fields.append(field)
        else:
            fields.append(_merged_field(field, other, path, added, widened))
    for field in new:
        path = f"{above}{field.name}"
        if field.name in {one.name for one in old}:
            continue
        if field.name.lower() in known:
            raise IncompatibleSchema(
                f"column {path} differs from {above}{known[field.name.lower()]} only in case;"
                " names in Delta are case-insensitive, so use the old name"
            )
        added.append(path)
        fields.append(field.with_nullable(True))
    return fields


def _merged_field(
    old: pa.Field, new: pa.Field, path: str, added: list[str], widened: list[str]
) -> pa.Field:
    """Merge a field; a required column stays so, and nulls are rejected when rows are written."""
    if old.nullable and not new.nullable:
        raise IncompatibleSchema(
            f"column {path} may be null and cannot become required, as existing rows may have"
            " nulls. Keep it nullable and expect it to be not null, or rebuild the table"
        )
    return pa.field(old.name, _merged_type(old.type, new.type, path, added, widened), old.nullable)


def _merged_type(
    old: pa.DataType, new: pa.DataType, path: str, added: list[str], widened: list[str]
) -> pa.DataType:
    if old == new:
        return old
    if _is_wider(old, new):
        widened.append(path)
        return new
    if pa.types.is_struct(old) and pa.types.is_struct(new):
        return pa.struct(_merged(list(old), list(new), f"{path}.", added, widened))
    if pa.types.is_list(old) and pa.types.is_list(new):
        element = _merged_field(old.value_field, new.value_field, f"{path}.element", added, widened)
        return pa.list_(element)
    if pa.types.is_map(old) and pa.types.is_map(new) and old.key_type == new.key_type:
        item = _merged_field(old.item_field, new.item_field, f"{path}.value", added, widened)
        if not item.equals(old.item_field) and f"{path}.value" not in widened:
            widened.append(f"{path}.value")  # deltalake does not complete structs in old maps.
        return pa.map_(old.key_type, item)
    raise IncompatibleSchema(
        f"column {path} is {type_text(old)} and cannot become {type_text(new)}, which does not"
        f" hold all its values. Cast it to {type_text(old)}, give it another name, or"
        " rebuild the table"
    )


def _holding_both(one: list[pa.Field], other: list[pa.Field], above: str) -> list[pa.Field]:
    others = {field.name: field for field in other}
    fields = [
        _field_for_both(field, others[field.name], f"{above}{field.name}")
        if field.name in others
        else field.with_nullable(True)
        for field in one
    ]
    known = {field.name for field in one}
    return fields + [field.with_nullable(True) for field in other if field.name not in known]


def _field_for_both(one: pa.Field, other: pa.Field, path: str) -> pa.Field:
    of_type = _type_for_both(one.type, other.type, path)
    return pa.field(one.name, of_type, one.nullable or other.nullable)


def _type_for_both(one: pa.DataType, other: pa.DataType, path: str) -> pa.DataType:
    if one == other or _is_wider(other, one) or pa.types.is_null(other):
        return one
    if _is_wider(one, other) or pa.types.is_null(one):
        return other
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        return pa.struct(_holding_both(list(one), list(other), f"{path}."))
    if pa.types.is_list(one) and pa.types.is_list(other):
        return pa.list_(_field_for_both(one.value_field, other.value_field, f"{path}.element"))
    if pa.types.is_map(one) and pa.types.is_map(other) and one.key_type == other.key_type:
        item = _field_for_both(one.item_field, other.item_field, f"{path}.value")
        return pa.map_(one.key_type, item)
    raise IncompatibleSchema(
        f"column {path} is {type_text(one)} and {type_text(other)}, and neither holds all values"
        " of the other"
    )


def _is_wider(narrow: pa.DataType, wide: pa.DataType) -> bool:
    """Return whether every value of the first type is a value of the second."""
    if pa.types.is_decimal(wide):
        digits = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
        if narrow in digits:
            return bool(wide.precision - wide.scale >= digits[narrow])
        if pa.types.is_decimal(narrow):
            return bool(
                wide.scale >= narrow.scale
                and wide.precision - wide.scale >= narrow.precision - narrow.scale
            )
    return (narrow, wide) in _WIDER


def _column(rows: Any, field: pa.Field) -> Any:
    if field.name not in rows.schema.names:
        if not field.nullable:
            raise IncompatibleSchema(f"column {field.name} is required and the rows lack it")
        return pa.nulls(rows.num_rows, field.type)
    column = rows.column(field.name)
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise IncompatibleSchema(
            f"column {field.name} is {type_text(field.type)} and the rows have"
            f" {type_text(column.type)}: {error}"
        ) from error


def _refuse_nulls(values: Any, field: pa.Field, path: str) -> None:
    """Reject nulls in required fields, also inside structs, lists and maps."""
    if values.null_count and not field.nullable:
        raise IncompatibleSchema(
            f"column {path} is required and null in {values.null_count} of {len(values)} rows. Let"
            " an expectation drop or quarantine them, set a default in the query, or rebuild the"
            " table with a nullable column"
        )
    if _has_required(field.type):
        chunks = values.chunks if isinstance(values, pa.ChunkedArray) else [values]
        for chunk in chunks:
            for inner, child in _inside(chunk.drop_null(), field.type):
                _refuse_nulls(inner, child, f"{path}.{child.name}")


def _has_required(of: pa.DataType) -> bool:
    """Return whether a field inside the type is required, apart from keys of maps."""
    children: list[pa.Field] = []
    if pa.types.is_struct(of):
        children = list(of)
    elif pa.types.is_list(of):
        children = [of.value_field]
    elif pa.types.is_map(of):
        children = [of.item_field]
    return any(not child.nullable or _has_required(child.type) for child in children)


def _inside(values: Any, of: pa.DataType) -> list[tuple[Any, pa.Field]]:
    """Return the children of non-null structs, lists or maps, with their fields."""
    if pa.types.is_struct(of):
        return list(zip(values.flatten(), of, strict=True))
    if pa.types.is_map(of):
        first, last = (values.offsets[0].as_py(), values.offsets[-1].as_py()) if values else (0, 0)
        return [(values.items.slice(first, last - first), of.item_field)]
    return [(values.flatten(), of.value_field)]
