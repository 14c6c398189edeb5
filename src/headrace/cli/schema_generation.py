"""`headrace schema generate`: classes from schemas, schemas from classes, tables both ways."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from headrace.cli.output import print_line
from headrace.cli.schema_sources import (
    ENDINGS,
    Found,
    NoSchema,
    reference_option,
    registry_options,
    schemas_of,
)
from headrace.serdes.schemas import SchemaType

_CLASS = re.compile(r"[\w./-]+:(?!latest$)[A-Za-z_][\w.]*")

FLAVOURS = ("dataclass", "pydantic", "msgspec")


@click.command("generate")
@click.argument("source")
@click.option(
    "--flavour",
    type=click.Choice(FLAVOURS),
    default="dataclass",
    show_default=True,
    help="Kind of classes.",
)
@click.option("--sql", "as_sql", is_flag=True, help="Print CREATE TABLE for an Avro schema.")
@click.option(
    "--type",
    type=click.Choice([one.value.lower() for one in SchemaType], case_sensitive=False),
    help="For a class, the schema type to generate, by default avro; for a file, its type.",
)
@click.option("--message", show_default="the first", help="Message of a .proto file.")
@click.option("--namespace", default="", help="Namespace of a table's schema.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@reference_option
@registry_options
def generate(
    source: str,
    flavour: str,
    as_sql: bool,
    type: str | None,
    message: str | None,
    namespace: str,
    output: Path | None,
    **options: Any,
) -> None:
    """Generate Python classes from a schema, or a schema from a class or a table.

    \b
    headrace schema generate orders-value --flavour pydantic -o orders.py
    headrace schema generate shop.orders:Order --type json
    headrace schema generate orders.sql -o orders.avsc
    headrace schema generate orders.avsc --sql
    """
    if source.lower().endswith(".sql"):
        text = schema_of_table(Path(source), namespace)
    elif is_class(source):
        text = schema_of_class(source, type or SchemaType.AVRO)
    else:
        found = schemas_of(type=type, **options).found(source)
        text = table_of(found) if as_sql else formatted(classes_of(found, flavour, message))
    if output is None:
        print_line(text.rstrip())
    else:
        output.write_text(text.rstrip() + "\n", encoding="utf-8")


def is_class(source: str) -> bool:
    """Return whether a text such as `shop.orders:Order` names a class, not a version or a file."""
    return bool(_CLASS.fullmatch(source)) and Path(source).suffix.lower() not in ENDINGS


def schema_of_class(source: str, type: str) -> str:
    import msgspec

    from headrace.cli.python_objects import load_object
    from headrace.serdes.classes.conversion import schema_of

    wanted = SchemaType(type.upper())
    text = schema_of(load_object(source), wanted)
    return text if wanted is SchemaType.PROTOBUF else msgspec.json.format(text, indent=2)


def schema_of_table(path: Path, namespace: str) -> str:
    import msgspec

    from headrace.serdes.avro.sql import avro_of_table

    schema = avro_of_table(path.read_text(encoding="utf-8"), namespace=namespace)
    return msgspec.json.format(schema.canonical(), indent=2)


def table_of(found: Found) -> str:
    from headrace.serdes.avro.parsing import parse
    from headrace.serdes.avro.sql import table_of_avro

    if found.type is not SchemaType.AVRO:
        raise NoSchema(f"{found.label} is of type {found.type}; tables need AVRO")
    return table_of_avro(parse(found.text, found.dependencies, lenient=True))


def classes_of(found: Found, flavour: str, message: str | None) -> str:
    """Return Python source; referenced schemas become classes of the same module."""
    from headrace.serdes.classes import conversion
    from headrace.serdes.classes.naming import Flavour

    wanted = Flavour(flavour)
    schema = found.parsed()
    match found.type:
        case SchemaType.AVRO:
            return conversion.source_of_avro(schema.formatted("resolved"), wanted)
        case SchemaType.JSON:
            return conversion.source_of_json_schema(found.text, wanted, found.dependencies)
        case SchemaType.PROTOBUF:
            from headrace.serdes.protobuf.parsing import ProtobufSchema

            assert isinstance(schema, ProtobufSchema)
            return conversion.source_of_descriptor(
                schema.descriptor, wanted, message=message, dependencies=schema.files[:-1]
            )


def formatted(source: str) -> str:
    """Sort imports and lay out the source with ruff if it is installed."""
    if find_spec("ruff") is None:
        return source
    for step in (("check", "--select=I", "--fix"), ("format",)):
        command = [sys.executable, "-m", "ruff", *step, "--isolated", "-"]
        done = subprocess.run(command, input=source, capture_output=True, text=True, check=True)
        source = done.stdout
    return source
