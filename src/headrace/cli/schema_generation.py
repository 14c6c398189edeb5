"""`headrace schema generate`: classes of schemas, schemas of classes, tables of both."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from headrace.serdes.registry_client import Reference

_CLASS = re.compile(r"[\w./-]+:(?!latest$)[A-Za-z_][\w.]*")

FLAVOURS = ("dataclass", "pydantic", "msgspec")


@click.command("generate")
@click.argument("source")
@click.option(
    "--flavour",
    type=click.Choice(FLAVOURS),
    default="dataclass",
    show_default=True,
    help="What kind of classes.",
)
@click.option("--sql", "as_sql", is_flag=True, help="CREATE TABLE for an Avro schema.")
@click.option(
    "--type",
    type=click.Choice([one.value.lower() for one in SchemaType], case_sensitive=False),
    help="Of a class: which type of schema to make, else avro. Of a file: what it is.",
)
@click.option("--message", default=None, help="The message of a .proto file, if not the first.")
@click.option("--namespace", default="", help="The namespace of the schema of a table.")
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
    references: "tuple[Reference, ...]",
    **registry: Any,
) -> None:
    """Write Python classes of a schema, or a schema of a class or a table.

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
        found = schemas_of(**registry).found(source, type=type, references=references)
        text = table_of(found) if as_sql else classes_of(found, flavour, message)
    if output is None:
        print_line(text.rstrip())
    else:
        output.write_text(text.rstrip() + "\n", encoding="utf-8")


def is_class(source: str) -> bool:
    """`shop.orders:Order` is a class; `orders-value:3` is a version, `orders.json` a file."""
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
        raise NoSchema(f"{found.label} is of type {found.type}; tables are made of AVRO only")
    return table_of_avro(parse(found.text, found.dependencies, lenient=True))


def classes_of(found: Found, flavour: str, message: str | None) -> str:
    """Python source; what a schema refers to becomes classes of the same module."""
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
