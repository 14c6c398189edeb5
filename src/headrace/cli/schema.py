"""`headrace schema`: schemas of any registry, and of files; what changes and whom it breaks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.cli.options import confirm, json_option
from headrace.cli.output import counted, print_json, print_line, print_table, warn
from headrace.cli.schema_evolution import evolve, print_changes, print_consequences, versions_of
from headrace.cli.schema_generation import generate
from headrace.cli.schema_sources import (
    Found,
    Schemas,
    new_schema,
    place_of,
    reference_option,
    registry_options,
    schemas_of,
    type_option,
)

if TYPE_CHECKING:
    from headrace.serdes.registry_client import Reference

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)

LEVELS = (
    *("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE"),
    *("FULL", "FULL_TRANSITIVE"),
)


@click.group("schema", short_help="Register, compare, check, move and generate schemas.")
def command() -> None:
    """Register, list, compare and check schemas, move data to new ones, generate classes.

    \b
    A SCHEMA is a file (.avsc, .json, .proto), a subject (its newest version),
    SUBJECT:VERSION, or id:NUMBER.
    """


command.add_command(evolve)
command.add_command(generate)


class SubjectListed(msgspec.Struct, frozen=True):
    """A subject of the registry."""

    subject: str
    versions: list[int]
    type: str
    id: int
    compatibility: str


@command.command("register")
@click.argument("subject")
@click.argument("file", type=_FILE)
@type_option
@reference_option
@click.option("--normalize", is_flag=True, help="Take schemas that mean the same for the same.")
@click.option("--metadata", type=_FILE, help="Tags and properties, as Confluent's JSON.")
@click.option("--rules", type=_FILE, help="The rule set of a data contract, as Confluent's JSON.")
@registry_options
@json_option
def register(
    subject: str,
    file: Path,
    type: str | None,
    references: "tuple[Reference, ...]",
    normalize: bool,
    metadata: Path | None,
    rules: Path | None,
    as_json: bool,
    **registry: Any,
) -> None:
    """Register FILE as the next version of SUBJECT; what is registered already stays as it is."""
    client = schemas_of(**registry).client
    schema = new_schema(file, type, references, metadata, rules)
    client.register(subject, schema, normalize=normalize)
    version = client.lookup(subject, schema, normalize=normalize)
    if as_json:
        print_json({"subject": subject, "version": version.version, "id": version.id})
        return
    print_line(f"{subject} version {version.version} has the id {version.id}")


@command.command("list")
@click.argument("prefix", default="")
@click.option("--deleted", is_flag=True, help="Those too that are deleted and not yet for good.")
@registry_options
@json_option
def list_subjects(prefix: str, deleted: bool, as_json: bool, **registry: Any) -> None:
    """List subjects, all or those that begin with PREFIX, and their versions."""
    client = schemas_of(**registry).client
    found = []
    for subject in client.subjects(prefix, deleted=deleted):
        versions = client.versions(subject, deleted=deleted)
        newest = client.version(subject, versions[-1], deleted=deleted)
        level = str(client.config(subject).get("compatibilityLevel", ""))
        found.append(SubjectListed(subject, versions, newest.type, newest.id, level))
    if as_json:
        print_json(found)
        return
    print_table(
        ("subject", "type", "versions", "newest id", "compatibility"),
        [
            (one.subject, one.type, ", ".join(map(str, one.versions)), one.id, one.compatibility)
            for one in found
        ],
    )


@command.command("show")
@click.argument("schema")
@registry_options
@json_option
def show(schema: str, as_json: bool, **registry: Any) -> None:
    """Write the text of SCHEMA; with --json all that the registry tells of it."""
    schemas = schemas_of(**registry)
    place = place_of(schema)
    if not as_json or place.path is not None:
        print_line(readable(schemas.found(schema)))
        return
    if place.id is not None:
        schemas.found(schema)
        told = schemas.client.schema(place.id)
    else:
        told = schemas.client.version(place.subject, place.version or "latest")
    assert told is not None, "it was found"
    print_json(told.told)


def readable(found: Found) -> str:
    """JSON with indentation; .proto files have their lines already."""
    try:
        return msgspec.json.format(found.text, indent=2).rstrip()
    except msgspec.DecodeError:
        return found.text.rstrip()


@command.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@type_option
@reference_option
@registry_options
@json_option
def diff(
    old: str,
    new: str | None,
    type: str | None,
    references: "tuple[Reference, ...]",
    as_json: bool,
    **registry: Any,
) -> None:
    """Show what NEW adds to OLD, removes and changes, and which readers that breaks.

    \b
    headrace schema diff orders-value                 the last two versions
    headrace schema diff orders-value:1 orders-value:3
    headrace schema diff orders-value orders.avsc
    """
    from headrace.registry.evolution.changes import changes_between
    from headrace.registry.evolution.consequences import consequences_of

    schemas = schemas_of(**registry)
    before, after = _pair(schemas, old, new, type, references)
    changes = changes_between(before.parsed(), after.parsed())
    consequences = consequences_of(before.parsed(), after.parsed())
    if as_json:
        print_json({"changes": changes, "consequences": consequences})
        return
    print_line(f"{before.label} -> {after.label}")
    print_changes(changes)
    print_consequences(consequences)


def _pair(
    schemas: Schemas,
    old: str,
    new: str | None,
    type: str | None,
    references: "Sequence[Reference]",
) -> tuple[Found, Found]:
    if new is not None:
        return (
            schemas.found(old, type=type, references=references),
            schemas.found(new, type=type, references=references),
        )
    place = place_of(old)
    if not place.subject or place.version:
        raise click.UsageError("name a second schema, or a subject alone for its last two versions")
    versions = schemas.client.versions(place.subject)
    if len(versions) < 2:
        raise click.UsageError(f"{place.subject} has one version only; name a file beside it")
    before, after = versions[-2:]
    return schemas.version(place.subject, before), schemas.version(place.subject, after)


@command.command("check")
@click.argument("old")
@click.argument("new")
@click.option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    help="By this level; else by the subject's own, and between files by BACKWARD.",
)
@type_option
@reference_option
@click.option("--normalize", is_flag=True, help="Take schemas that mean the same for the same.")
@registry_options
@json_option
def check(
    old: str,
    new: str,
    level: str | None,
    type: str | None,
    references: "tuple[Reference, ...]",
    normalize: bool,
    as_json: bool,
    **registry: Any,
) -> int:
    """Say whether NEW may follow OLD; the exit code is 1 where it may not.

    \b
    headrace schema check orders-value orders.avsc
    headrace schema check orders-value:2 orders.avsc --level FULL
    headrace schema check old.avsc new.avsc --level FULL      needs no registry
    """
    schemas = schemas_of(**registry)
    place, target = place_of(old), place_of(new)
    if level is None and place.subject and target.path is not None:
        candidate = new_schema(target.path, type, references)
        verdict = schemas.client.check(place.subject, candidate, place.version, normalize=normalize)
        messages = list(verdict.messages) or ["the registry does not say why"]
        messages = [] if verdict.is_compatible else messages
    else:
        messages = _complaints(schemas, old, new, level, type, references)
    if as_json:
        print_json({"is_compatible": not messages, "messages": messages})
    elif not messages:
        print_line(f"{new} may follow {old}")
    else:
        _tell_why_not(old, new, messages)
    return 1 if messages else 0


def _complaints(
    schemas: Schemas,
    old: str,
    new: str,
    level: str | None,
    type: str | None,
    references: "Sequence[Reference]",
) -> list[str]:
    """By the rules of this program; a subject as a whole has all its versions looked at."""
    from headrace.registry.compatibility.levels import Level, Version, complaints
    from headrace.registry.schema_types import installed_kind

    place = place_of(old)
    if level is None and place.subject:
        level = schemas.client.config(place.subject).get("compatibilityLevel")
    wanted = Level((level or Level.BACKWARD).upper())
    previous = [Version(one.parsed()) for one in versions_of(schemas, old, type, references)]
    candidate = schemas.found(new, type=type, references=references)
    compare = installed_kind(candidate.type).incompatibilities
    return complaints(wanted, candidate.parsed(), previous, compare)


def _tell_why_not(old: str, new: str, messages: Sequence[str]) -> None:
    from headrace.registry.evolution.consequences import plain_message

    for message in messages:
        if not message.startswith(("{oldSchema", "{validateFields")):
            print_line(plain_message(message))
    warn(f"{new} may not follow {old}; `headrace schema evolve` says what would help")


@command.command("delete")
@click.argument("schema", metavar="SUBJECT[:VERSION]")
@click.option(
    "--permanent", is_flag=True, help="For good; else it can come back by being registered."
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask; scripts are never asked.")
@registry_options
@json_option
def delete(schema: str, permanent: bool, yes: bool, as_json: bool, **registry: Any) -> None:
    """Delete a version of a subject, or all of them.

    With --permanent what is not deleted yet is first deleted, as registries want it.
    """
    place = place_of(schema)
    if not place.subject:
        raise click.UsageError("name a subject, or SUBJECT:VERSION")
    client = schemas_of(**registry).client
    version = place.version
    if version == "latest":  # Once it is deleted softly, another one is.
        version = str(client.versions(place.subject)[-1])
    for_good = " for good, with all data of it becoming unreadable" if permanent else ""
    confirm(f"Delete {schema}{for_good}?", yes=yes)
    deleted: list[int] = []
    for is_permanent in _steps(client, place.subject, version, permanent=permanent):
        if version:
            deleted = [client.delete_version(place.subject, version, permanent=is_permanent)]
        else:
            deleted = client.delete_subject(place.subject, permanent=is_permanent)
    if as_json:
        print_json({"subject": place.subject, "versions": deleted, "permanent": permanent})
        return
    numbers = ", ".join(map(str, deleted))
    print_line(
        f"{place.subject}: {counted(len(deleted), 'version')} deleted"
        f"{' for good' if permanent else ''}: {numbers}"
    )


def _steps(client: Any, subject: str, version: str, *, permanent: bool) -> list[bool]:
    """Registries delete for good only what is deleted softly."""
    if not permanent:
        return [False]
    if subject not in client.subjects(subject):
        return [True]
    is_there = not version or int(version) in client.versions(subject)
    return [False, True] if is_there else [True]
