"""`headrace schema evolve`: consequences of a change, advice, and migration of data. SCH-8"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headrace.cli.options import (
    bootstrap_option,
    client_properties,
    command_config_option,
    json_option,
    property_option,
)
from headrace.cli.output import counted, print_json, print_line
from headrace.cli.schema_sources import Found, NoSchema, schemas_of, source_options
from headrace.errors import HeadraceError
from headrace.serdes.schemas import ParsedSchema, SchemaType

if TYPE_CHECKING:
    from headrace.registry.evolution.changes import Change
    from headrace.registry.evolution.consequences import Break, Consequences

_MARKS = {"added": "+", "removed": "-", "changed": "~"}


class NeedsTransform(HeadraceError):
    """Data that the new schema cannot read without a transform."""


@click.command("evolve")
@click.argument("old")
@click.argument("new")
@click.option(
    "--data",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Move this Avro container file to the new schema.",
)
@click.option(
    "--output",
    "-o",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File for the values of --data.",
)
@click.option("--topic", help="Move this topic's values to the new schema.")
@click.option("--to", "target", metavar="TOPIC", help="Topic for the records of --topic.")
@click.option(
    "--transform",
    metavar="MODULE:FUNCTION",
    help="Function from old to new values; needed if the new schema cannot read the old data."
    " For Protobuf it receives messages and may return dicts.",
)
@source_options
@bootstrap_option
@command_config_option
@property_option
@json_option
def evolve(
    old: str,
    new: str,
    data: Path | None,
    output: Path | None,
    topic: str | None,
    target: str | None,
    transform: str | None,
    bootstrap: str,
    command_config: str | None,
    properties: tuple[tuple[str, str], ...],
    as_json: bool,
    **source: Any,
) -> int:
    """Show the levels that the step from OLD to NEW satisfies, with advice, and move data.

    \b
    headrace schema evolve orders-value orders.avsc
    headrace schema evolve v1.avsc v2.avsc --data orders.avro -o orders-v2.avro
    headrace schema evolve orders-value v2.avsc --topic orders --to orders-v2 \\
        --transform moving.py:split_name
    """
    if (data is None) != (output is None) or (topic is None) != (target is None):
        raise click.UsageError("--data goes with --output, and --topic with --to")
    schemas = schemas_of(**source)
    after = schemas.found(new)
    if data is None and topic is None:
        _show([one.parsed() for one in schemas.all_found(old)], after.parsed(), as_json=as_json)
        return 0
    if data is not None and after.type is not SchemaType.AVRO:
        raise NoSchema(f"{after.label} is of type {after.type}; --data needs an Avro schema")
    from headrace.cli.schema_migration import loaded_transform, move_container, move_topic
    from headrace.schema_clients.registry_client import NewSchema

    function = None if transform is None else loaded_transform(transform)
    if function is None:
        _refuse_unreadable(schemas.found(old), after)
    moved: dict[str, Any] = {}
    if data is not None and output is not None:
        moved["values"] = move_container(data, output, after, function)
    if topic is not None and target is not None:
        settings = client_properties(command_config, properties)
        schema = NewSchema(after.text, after.type.value, source["references"])
        moved |= move_topic(bootstrap, settings, topic, target, schemas.client, schema, function)
    if as_json:
        print_json(moved)
        return 0
    dropped = moved.pop("dropped", 0)
    for name, count in moved.items():
        print_line(f"{counted(count, name.removesuffix('s'))} moved")
    if dropped:
        print_line(f"{counted(dropped, 'record')} dropped by {transform}")
    return 0


def _show(previous: list[ParsedSchema], new: ParsedSchema, *, as_json: bool) -> None:
    from headrace.registry.evolution.comparing import changes_between
    from headrace.registry.evolution.consequences import consequences_of, kept_levels

    changes = changes_between(previous[-1], new)
    consequences = consequences_of(previous[-1], new)
    levels = [level.value for level in kept_levels(new, previous)]
    if as_json:
        print_json({"changes": changes, "levels": levels, "consequences": consequences})
        return
    print_changes(changes)
    print_line(f"levels satisfied: {', '.join(levels)}")
    print_consequences(consequences, with_advice=True)


def print_changes(changes: "Sequence[Change]") -> None:
    for change in changes:
        detail = f": {change.detail}" if change.detail else ""
        print_line(f"  {_MARKS[change.kind]} {change.path}{detail}")
    if not changes:
        print_line("  no differences for readers")


def print_consequences(consequences: "Consequences", *, with_advice: bool = False) -> None:
    """Print the meaning of each direction for a deployment: readers or writers first."""
    _print_direction(
        "backward: new readers read old data", consequences.backward, with_advice=with_advice
    )
    _print_direction(
        "forward: old readers read new data", consequences.forward, with_advice=with_advice
    )


def _print_direction(title: str, breaks: "Sequence[Break]", *, with_advice: bool) -> None:
    print_line(f"{title}: {'no' if breaks else 'yes'}")
    for found in breaks:
        print_line(f"  {found.name}: {found.text}" if found.name else f"  {found.text}")
        if with_advice:
            print_line(f"    {found.advice}")


def _refuse_unreadable(before: Found, after: Found) -> None:
    from headrace.registry.evolution.consequences import consequences_of

    broken = consequences_of(before.parsed(), after.parsed()).backward
    if broken:
        raise NeedsTransform(
            f"{after.label} cannot read the data of {before.label}: {broken[0].text}; give"
            " --transform MODULE:FUNCTION, which converts each value"
        )
