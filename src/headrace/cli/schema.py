"""`headrace schema`: schemas of registries and files, their changes and consequences."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from headrace.cli.options import confirm, json_option
from headrace.cli.output import counted, print_json, print_line, print_table, warn
from headrace.cli.schema_evolution import evolve, print_changes, print_consequences
from headrace.cli.schema_generation import generate
from headrace.cli.schema_sources import (
    Found,
    Schemas,
    place_of,
    registry_options,
    schemas_of,
    source_options,
)

if TYPE_CHECKING:
    from headrace.schema_clients.registry_client.schemas import Verdict

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
@click.option("--normalize", is_flag=True, help="Treat equivalent schemas as the same.")
@click.option("--metadata", type=_FILE, help="Tags and properties, as Confluent's JSON.")
@click.option("--rules", type=_FILE, help="The rule set of a data contract, as Confluent's JSON.")
@source_options
@json_option
def register(
    subject: str,
    file: Path,
    normalize: bool,
    metadata: Path | None,
    rules: Path | None,
    as_json: bool,
    **source: Any,
) -> None:
    """Register FILE as the next version of SUBJECT, unless it is already registered."""
    schemas = schemas_of(**source)
    client, schema = schemas.client, schemas.new(file, metadata, rules)
    client.register(subject, schema, normalize=normalize)
    version = client.lookup(subject, schema, normalize=normalize)
    if as_json:
        print_json({"subject": subject, "version": version.version, "id": version.id})
        return
    print_line(f"{subject} version {version.version} has the id {version.id}")


@command.command("list")
@click.argument("prefix", default="")
@click.option(
    "--deleted", is_flag=True, help="Include versions that were deleted, but not permanently."
)
@registry_options
@json_option
def list_subjects(prefix: str, deleted: bool, as_json: bool, **registry: Any) -> None:
    """List subjects and their versions, optionally with names starting with PREFIX."""
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
    """Print the text of SCHEMA; with --json its registration."""
    schemas = schemas_of(**registry)
    place = place_of(schema)
    if not as_json or place.path is not None:
        print_line(readable(schemas.found(schema)))
        return
    if place.id is not None:
        schemas.found(schema)
        found = schemas.client.schema(place.id)
    else:
        found = schemas.client.version(place.subject, place.version or "latest")
    assert found is not None, "found() has read it"
    print_json(found.registration)


def readable(found: Found) -> str:
    """Indent JSON; .proto files are unchanged."""
    try:
        return msgspec.json.format(found.text, indent=2).rstrip()
    except msgspec.DecodeError:
        return found.text.rstrip()


@command.command("diff")
@click.argument("old")
@click.argument("new", required=False)
@source_options
@json_option
def diff(old: str, new: str | None, as_json: bool, **source: Any) -> None:
    """Show the changes from OLD to NEW, and the readers that they break.

    \b
    headrace schema diff orders-value                 the last two versions
    headrace schema diff orders-value:1 orders-value:3
    headrace schema diff orders-value orders.avsc
    """
    from headrace.registry.evolution.comparing import changes_between
    from headrace.registry.evolution.consequences import consequences_of

    before, after = _pair(schemas_of(**source), old, new)
    changes = changes_between(before.parsed(), after.parsed())
    consequences = consequences_of(before.parsed(), after.parsed())
    if as_json:
        print_json({"changes": changes, "consequences": consequences})
        return
    print_line(f"{before.label} -> {after.label}")
    print_changes(changes)
    print_consequences(consequences)


def _pair(schemas: Schemas, old: str, new: str | None) -> tuple[Found, Found]:
    if new is not None:
        return schemas.found(old), schemas.found(new)
    place = place_of(old)
    if not place.subject or place.version:
        raise click.UsageError("name a second schema, or a subject alone for its last two versions")
    versions = schemas.client.versions(place.subject)
    if len(versions) < 2:
        raise click.UsageError(f"{place.subject} has only one version; name a file to compare with")
    before, after = versions[-2:]
    return schemas.version(place.subject, before), schemas.version(place.subject, after)


@command.command("check")
@click.argument("old")
@click.argument("new")
@click.option(
    "--level",
    type=click.Choice(LEVELS, case_sensitive=False),
    show_default="the subject's, for files BACKWARD",
    help="Compatibility level.",
)
@click.option("--normalize", is_flag=True, help="Treat equivalent schemas as the same.")
@source_options
@json_option
def check(
    old: str, new: str, level: str | None, normalize: bool, as_json: bool, **source: Any
) -> int:
    """Check whether NEW may follow OLD; exits with 1 if not.

    \b
    headrace schema check orders-value orders.avsc
    headrace schema check orders-value:2 orders.avsc --level FULL
    headrace schema check old.avsc new.avsc --level FULL      needs no registry
    """
    schemas = schemas_of(**source)
    place, target = place_of(old), place_of(new)
    if level is None and place.subject and target.path is not None:
        candidate = schemas.new(target.path)
        verdict = schemas.client.check(place.subject, candidate, place.version, normalize=normalize)
        messages, lines = _reasons(verdict)
    else:
        messages, lines = _local_reasons(schemas, old, new, level)
    if as_json:
        print_json({"is_compatible": not messages, "messages": messages})
    elif not messages:
        print_line(f"{new} may follow {old}")
    else:
        for line in lines:
            print_line(line)
        warn(f"{new} may not follow {old}; for advice, run `headrace schema evolve`")
    return 1 if messages else 0


def _reasons(verdict: "Verdict") -> tuple[list[str], list[str]]:
    """Return a registry's messages as they are, and as lines for people."""
    from headrace.registry.compatibility.messages import describes_settings, plain_message

    if verdict.is_compatible:
        return [], []
    messages = list(verdict.messages) or ["the registry gives no reason"]
    return messages, [plain_message(one) for one in messages if not describes_settings(one)]


def _local_reasons(
    schemas: Schemas, old: str, new: str, level: str | None
) -> tuple[list[str], list[str]]:
    """Compare without a registry's verdict; a subject means all of its versions."""
    from headrace.registry.compatibility.levels import Level, Version, conflict
    from headrace.registry.compatibility.messages import messages_of, plain_text
    from headrace.registry.schema_types import installed_kind

    place = place_of(old)
    if level is None and place.subject:
        level = schemas.client.config(place.subject).get("compatibilityLevel")
    wanted = Level((level or Level.BACKWARD).upper())
    previous = [Version(one.parsed()) for one in schemas.all_found(old)]
    candidate = schemas.found(new)
    compare = installed_kind(candidate.type).incompatibilities
    found = conflict(wanted, candidate.parsed(), previous, compare)
    lines = [] if found is None else [plain_text(one) for one in found.incompatibilities]
    return messages_of(found), lines


@command.command("delete")
@click.argument("schema", metavar="SUBJECT[:VERSION]")
@click.option(
    "--permanent",
    is_flag=True,
    help="Delete permanently; without it, a registration restores the version.",
)
@click.option("--yes", "-y", is_flag=True, help="Skip the confirmation; scripts are never asked.")
@registry_options
@json_option
def delete(schema: str, permanent: bool, yes: bool, as_json: bool, **registry: Any) -> None:
    """Delete a version of a subject, or all of them.

    --permanent first makes the soft delete that registries require, if it is missing.
    """
    place = place_of(schema)
    if not place.subject:
        raise click.UsageError("name a subject, or SUBJECT:VERSION")
    client = schemas_of(**registry).client
    version = place.version
    if version == "latest":  # After a soft delete, `latest` would mean another version.
        version = str(client.versions(place.subject)[-1])
    for_good = " permanently, which makes its data unreadable" if permanent else ""
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
        f"{' permanently' if permanent else ''}: {numbers}"
    )


def _steps(client: Any, subject: str, version: str, *, permanent: bool) -> list[bool]:
    """Return the steps of a deletion: registries require a soft delete before a permanent one."""
    if not permanent:
        return [False]
    if subject not in client.subjects(subject):
        return [True]
    is_there = not version or int(version) in client.versions(subject)
    return [False, True] if is_there else [True]
