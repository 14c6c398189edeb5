"""Converts tables to Avro schemas and back: a table is a record, a nullable column a union.

| SQL | Avro |
|---|---|
| BOOLEAN, BIT(1) | boolean |
| SMALLINT, INTEGER and narrower | int |
| BIGINT, INTEGER UNSIGNED | long |
| REAL, FLOAT(24) and narrower; DOUBLE PRECISION, FLOAT | float; double |
| DECIMAL(p, s), NUMERIC(p, s) | bytes, decimal |
| CHAR, VARCHAR, TEXT, JSON, XML, INTERVAL | string |
| BINARY, VARBINARY, BLOB, BYTEA | bytes |
| DATE; TIME | int, date; long, time-micros |
| TIMESTAMP, DATETIME | long, local-timestamp-micros |
| TIMESTAMP WITH TIME ZONE | long, timestamp-micros |
| UUID; ENUM('A', 'B'); an array | string, uuid; enum; array |

Times with up to three fraction digits are in milliseconds.
"""

import datetime
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from headrace.serdes.avro import model
from headrace.serdes.avro.create_table import Column, Table, read_table
from headrace.serdes.avro.parsing import STRICT_NAME, parse
from headrace.serdes.avro.schema import AvroSchema
from headrace.serdes.schemas import InvalidSchema
from headrace.serdes.sql_tokens import Token

PLAIN_TYPES: Final = {
    **dict.fromkeys(("BOOLEAN", "BOOL"), "boolean"),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "INT2", "INT4", "YEAR"), "int"
    ),
    **dict.fromkeys(("SERIAL", "SMALLSERIAL", "SERIAL4", "SERIAL2"), "int"),
    **dict.fromkeys(("BIGINT", "INT8", "BIGSERIAL", "SERIAL8"), "long"),
    **dict.fromkeys(("REAL", "FLOAT4"), "float"),
    **dict.fromkeys(("DOUBLE", "DOUBLE PRECISION", "FLOAT8"), "double"),
    **dict.fromkeys(("CHAR", "CHARACTER", "VARCHAR", "VARCHAR2", "NCHAR", "NVARCHAR"), "string"),
    **dict.fromkeys(("CHAR VARYING", "CHARACTER VARYING", "BPCHAR", "NAME", "CITEXT"), "string"),
    **dict.fromkeys(("TEXT", "TINYTEXT", "MEDIUMTEXT", "LONGTEXT", "NTEXT", "CLOB"), "string"),
    **dict.fromkeys(("JSON", "JSONB", "XML", "INTERVAL", "INET", "CIDR", "SET"), "string"),
    **dict.fromkeys(("BINARY", "VARBINARY", "BINARY VARYING", "BYTEA", "BLOB"), "bytes"),
    **dict.fromkeys(("TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "IMAGE", "RAW", "VARBIT"), "bytes"),
}
DECIMALS: Final = ("DECIMAL", "NUMERIC", "NUMBER", "DEC")
FLOAT_DIGITS: Final = 24
"""Maximum number of binary digits for which FLOAT(n) has four bytes."""

SQL_TYPES: Final = {
    "boolean": "BOOLEAN",
    "int": "INTEGER",
    "long": "BIGINT",
    "float": "REAL",
    "double": "DOUBLE PRECISION",
    "bytes": "BYTEA",
    "string": "VARCHAR",
    "date": "DATE",
    "time-millis": "TIME(3)",
    "time-micros": "TIME(6)",
    "timestamp-millis": "TIMESTAMP(3) WITH TIME ZONE",
    "timestamp-micros": "TIMESTAMP(6) WITH TIME ZONE",
    "local-timestamp-millis": "TIMESTAMP(3)",
    "local-timestamp-micros": "TIMESTAMP(6)",
    "uuid": "UUID",
}
EPOCH: Final = datetime.date(1970, 1, 1)
TRUTHS: Final = {"TRUE": True, "FALSE": False, "1": True, "0": False, "T": True, "F": False}


def avro_of_table(sql: str, *, namespace: str = "") -> AvroSchema:
    """Return the schema of a table's rows; a column without a valid Avro name keeps it in
    `sqlName`."""
    table = read_table(sql)
    record: dict[str, Any] = {"type": "record", "name": _avro_name(table.name)}
    if space := namespace or ".".join(map(_avro_name, filter(None, table.schema.split(".")))):
        record["namespace"] = space
    if table.comment:
        record["doc"] = table.comment
    record["fields"] = [_field(column, table) for column in table.columns.values()]
    return parse(json.dumps(record, ensure_ascii=False))


def table_of_avro(schema: AvroSchema, *, name: str = "") -> str:
    """Format CREATE TABLE for a record's schema, with comments in PostgreSQL's syntax."""
    record = schema.root
    if not isinstance(record, model.Record):
        raise InvalidSchema(f"a table has the fields of a record, not a {record.kind}")
    table = _quoted(name or record.name.simple)
    lines = [f"    {_column_text(field)}" for field in record.fields]
    statements = [f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n)"]
    if record.doc:
        statements.append(f"COMMENT ON TABLE {table} IS {_sql_text(record.doc)}")
    statements += [
        f"COMMENT ON COLUMN {table}.{_quoted(_sql_name(field))} IS {_sql_text(field.doc)}"
        for field in record.fields
        if field.doc
    ]
    return ";\n".join(statements) + ";\n"


def _field(column: Column, table: Table) -> dict[str, Any]:
    kind = _type(column, table)
    name = _avro_name(column.name)
    field: dict[str, Any] = {"name": name, "type": kind}
    default = model.MISSING if column.default is None else _default(column, kind, column.default)
    if column.is_nullable:
        # A union's default belongs to its first branch.
        field["type"] = ["null", kind] if default is model.MISSING else [kind, "null"]
        field["default"] = None if default is model.MISSING else default
    elif default is not model.MISSING:
        field["default"] = default
    if column.comment:
        field["doc"] = column.comment
    if name != column.name:
        field["sqlName"] = column.name
    return field


def _type(column: Column, table: Table) -> Any:
    kind = _scalar(column, table)
    return {"type": "array", "items": ["null", kind]} if column.is_array else kind


def _scalar(column: Column, table: Table) -> Any:
    words = column.type.removesuffix(" ARRAY")
    column.is_array |= words != column.type
    name, _, rest = words.partition(" ")
    numbers = [int(part) for part in column.arguments if part.isdigit()]
    if name in DECIMALS:
        return _decimal(column, numbers)
    if "UNSIGNED" in rest:
        return _unsigned(name)
    if name in ("TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "DATETIME", "DATETIME2"):
        return _time(name, rest, numbers)
    match name:
        case "DATE":
            return {"type": "int", "logicalType": "date"}
        case "UUID" | "UNIQUEIDENTIFIER":
            return {"type": "string", "logicalType": "uuid"}
        case "FLOAT":
            return "float" if numbers and numbers[0] <= FLOAT_DIGITS else "double"
        case "BIT":
            return "boolean" if numbers in ([], [1]) else "bytes"
        case "ENUM":
            return _enum(column, table)
    known = PLAIN_TYPES.get(words) or PLAIN_TYPES.get(name)
    if known is None:
        raise InvalidSchema(
            f"the column {column.name} has the type {column.type}, which is unknown"
        )
    return known


def _decimal(column: Column, numbers: list[int]) -> Any:
    if not numbers:
        example = f"{column.type}(10, 2)"
        raise InvalidSchema(f"the column {column.name} has no precision; write {example}")
    scale = numbers[1] if len(numbers) > 1 else 0
    return {"type": "bytes", "logicalType": "decimal", "precision": numbers[0], "scale": scale}


def _unsigned(name: str) -> Any:
    """Return a type that holds the unsigned range."""
    match name:
        case "BIGINT":
            return {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": 0}
        case "INT" | "INTEGER":
            return "long"
    return PLAIN_TYPES.get(name, "int")


def _time(name: str, rest: str, numbers: list[int]) -> Any:
    unit = "millis" if numbers and numbers[0] <= 3 else "micros"
    if name in ("TIME", "TIMETZ"):
        return {"type": "int" if unit == "millis" else "long", "logicalType": f"time-{unit}"}
    has_zone = name == "TIMESTAMPTZ" or "WITH TIME ZONE" in rest or "WITH LOCAL" in rest
    prefix = "" if has_zone else "local-"
    return {"type": "long", "logicalType": f"{prefix}timestamp-{unit}"}


def _enum(column: Column, table: Table) -> Any:
    """Return an enum if its values are valid symbols, or a string."""
    if not all(STRICT_NAME.fullmatch(symbol) for symbol in column.arguments):
        return "string"
    name = f"{_avro_name(table.name)}_{_avro_name(column.name)}"
    return {"type": "enum", "name": name, "symbols": list(column.arguments)}


def _default(column: Column, kind: Any, token: Token) -> Any:
    """Convert a constant to a JSON default; MISSING if only a database can evaluate it."""
    name = kind.get("logicalType", kind["type"]) if isinstance(kind, dict) else kind
    text = token.value
    try:
        match name:
            case "boolean":
                return TRUTHS[text.upper()]
            case "int" | "long":
                return int(text)
            case "float" | "double":
                return float(text)
            case "decimal":
                return _decimal_default(Decimal(text), kind["scale"])
            case "date":
                return (datetime.date.fromisoformat(text) - EPOCH).days
            case "string" | "enum" | "uuid":
                return text
            case "bytes":
                return text
    except (ValueError, KeyError, InvalidOperation):
        reason = f"the column {column.name} of {column.type} cannot have the default {text!r}"
        raise InvalidSchema(reason) from None
    return model.MISSING


def _decimal_default(number: Decimal, scale: int) -> str:
    """Return the two's complement of the unscaled number, as the text of a bytes default."""
    unscaled = int(number.scaleb(scale))
    if number.scaleb(scale) != unscaled:
        raise ValueError("more digits than the scale")
    size = (unscaled.bit_length() + 8) // 8
    return unscaled.to_bytes(size, "big", signed=True).decode("latin-1")


def _avro_name(name: str) -> str:
    plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
    return plain if STRICT_NAME.fullmatch(plain) else f"_{plain}"


def _column_text(field: model.Field) -> str:
    node, is_nullable = _without_null(field.type)
    text = f"{_quoted(_sql_name(field))} {_sql_type(node, field.name)}"
    if not is_nullable:
        text += " NOT NULL"
    if field.has_default and field.default is not None:
        default = _sql_default(node, field.default)
        text += f" DEFAULT {default}" if default else ""
    return text


def _without_null(node: model.Node) -> tuple[model.Node, bool]:
    if not isinstance(node, model.Union):
        return node, False
    others = [branch for branch in node.branches if branch.kind != "null"]
    if len(others) != 1:
        raise InvalidSchema("a column has one type; a union of several has no column")
    return others[0], len(others) < len(node.branches)


def _sql_type(node: model.Node, name: str) -> str:
    if node.logical is not None and node.logical.name == "decimal":
        return f"DECIMAL({node.logical.precision}, {node.logical.scale})"
    if node.logical is not None and node.logical.name in SQL_TYPES:
        return SQL_TYPES[node.logical.name]
    match node:
        case model.Primitive() if node.kind in SQL_TYPES:
            return SQL_TYPES[node.kind]
        case model.Fixed():
            return f"BINARY({node.size})"
        case model.Enum():
            return f"VARCHAR({max(map(len, node.symbols), default=1)})"
        case model.Array():
            return f"{_sql_type(_without_null(node.items)[0], name)} ARRAY"
    raise InvalidSchema(f"the field {name} is a {node.kind}, which no column holds")


def _sql_default(node: model.Node, default: Any) -> str | None:
    if node.logical is not None and node.logical.name == "decimal":
        number = int.from_bytes(default.encode("latin-1"), "big", signed=True)
        return str(Decimal(number).scaleb(-node.logical.scale))
    if node.logical is not None and node.logical.name == "date":
        return f"DATE '{EPOCH + datetime.timedelta(days=default)}'"
    if node.logical is not None and node.logical.name != "uuid":
        return None
    match default:
        case bool():
            return "TRUE" if default else "FALSE"
        case int() | float():
            return str(default)
        case str() if node.kind != "bytes":
            return _sql_text(default)
    return None


def _sql_name(field: model.Field) -> str:
    name = field.properties.get("sqlName")
    return name if isinstance(name, str) else field.name


def _quoted(name: str) -> str:
    """Quote a name unless it is a plain identifier."""
    if re.fullmatch(r"[a-z_][a-z0-9_]*", name):
        return name
    return '"' + name.replace('"', '""') + '"'


def _sql_text(text: str | None) -> str:
    return "'" + (text or "").replace("'", "''") + "'"
