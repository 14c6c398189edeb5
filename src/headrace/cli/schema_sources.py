"""Sources of schemas for `headrace schema`: files, subjects and ids of a registry."""

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
import msgspec

from headrace.cli.defaults import DEFAULT_REGISTRY
from headrace.errors import HeadraceError
from headrace.serdes.schemas import Dependency, ParsedSchema, SchemaType

if TYPE_CHECKING:
    from headrace.schema_clients.registry_client import NewSchema, Reference, RegistryClient

_Command = TypeVar("_Command", bound=Callable[..., Any])

ENDINGS = {
    ".avsc": SchemaType.AVRO,
    ".avro": SchemaType.AVRO,
    ".json": SchemaType.JSON,
    ".proto": SchemaType.PROTOBUF,
}
_VERSION = re.compile(r"(?P<subject>.+):(?P<version>\d+|latest)")
_ID = re.compile(r"id:(?P<id>\d+)")
_REFERENCE = re.compile(r"(?P<name>[^=]+)=(?P<subject>.+):(?P<version>\d+)")


class NoSchema(HeadraceError):
    """An argument does not name a schema."""


class Found(msgspec.Struct, frozen=True):
    """A schema and its origin."""

    label: str
    type: SchemaType
    text: str
    dependencies: tuple[Dependency, ...] = ()

    def parsed(self) -> ParsedSchema:
        from headrace.registry.schema_types import SchemaTypes

        return SchemaTypes().parse(self.type, self.text, self.dependencies, is_new=False)


class Place(msgspec.Struct, frozen=True):
    """The meaning of an argument: a file, an id, or a subject, with or without a version."""

    path: Path | None = None
    id: int | None = None
    subject: str = ""
    version: str = ""


def place_of(text: str) -> Place:
    """Parse an argument; a text with a schema's file extension is a file, existing or not."""
    path = Path(text)
    if path.suffix.lower() in ENDINGS or path.is_file():
        return Place(path=path)
    if found := _ID.fullmatch(text):
        return Place(id=int(found["id"]))
    if found := _VERSION.fullmatch(text):
        return Place(subject=found["subject"], version=found["version"])
    return Place(subject=text)


def parse_reference(text: str) -> "Reference":
    """Parse `NAME=SUBJECT:VERSION`."""
    from headrace.schema_clients.registry_client import Reference

    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not of the form NAME=SUBJECT:VERSION")
    return Reference(found["name"], found["subject"], int(found["version"]))


def type_of(path: Path, given: str | None) -> SchemaType:
    """Return the given type, or the type by the file's extension."""
    if given is not None:
        return SchemaType(given.upper())
    try:
        return ENDINGS[path.suffix.lower()]
    except KeyError:
        raise NoSchema(
            f"{path}: unknown extension; use .avsc, .json or .proto, or give --type"
        ) from None


class Schemas:
    """Finds schemas by arguments; connects to a registry only if one is needed.

    `type` and `references` are those of files.
    """

    def __init__(
        self,
        connect: "Callable[[], RegistryClient]",
        type: str | None = None,
        references: "Sequence[Reference]" = (),
    ) -> None:
        self._connect = connect
        self._type = type
        self._references = references

    @cached_property
    def client(self) -> "RegistryClient":
        return self._connect()

    def found(self, text: str) -> Found:
        """Return the schema of a file, an id or a version; for a subject its newest one."""
        place = place_of(text)
        if place.path is not None:
            known = self.client.dependencies_of(self._references) if self._references else ()
            content = place.path.read_text(encoding="utf-8")
            return Found(text, type_of(place.path, self._type), content, known)
        if place.id is not None:
            registered = self.client.schema(place.id)
            if registered is None:
                raise NoSchema(f"the registry has no schema {place.id}")
            return _registered(text, registered)
        return self.version(place.subject, place.version or "latest")

    def all_found(self, text: str) -> list[Found]:
        """Return all versions of a subject, for transitive levels, or the one schema named."""
        place = place_of(text)
        if not place.subject or place.version:
            return [self.found(text)]
        numbers = self.client.versions(place.subject)
        return [self.version(place.subject, number) for number in numbers]

    def new(
        self, path: Path, metadata: Path | None = None, rules: Path | None = None
    ) -> "NewSchema":
        """Read a file as a schema to register; metadata and rules are Confluent's JSON."""
        from headrace.schema_clients.registry_client import NewSchema
        from headrace.serdes.contracts import Metadata, RuleSet

        return NewSchema(
            path.read_text(encoding="utf-8"),
            type_of(path, self._type).value,
            tuple(self._references),
            None if metadata is None else _document(metadata, "metadata", Metadata),
            None if rules is None else _document(rules, "ruleSet", RuleSet),
        )

    def version(self, subject: str, version: int | str) -> Found:
        registered = self.client.version(subject, version)
        known = registered.registration
        number = version if known is None else known.version
        return _registered(f"{subject}:{number}", registered)


def _registered(label: str, registered: Any) -> Found:
    return Found(label, SchemaType(registered.type), registered.text, registered.dependencies)


def _document(path: Path, name: str, shape: Any) -> dict[str, Any]:
    """Read a JSON file, with or without its member name in the request."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        content: dict[str, Any] = document.get(name, document)
        msgspec.convert(content, shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NoSchema(f"{path} is not valid {name}: {error}") from error
    return content


def registry_options(command: _Command) -> _Command:
    """Options for the registry's address and the login."""
    text = "The schema registry, optionally with user:password@; also from HEADRACE_REGISTRY."
    return _registry_options(command, f"http://{DEFAULT_REGISTRY}", text)


def decoding_options(command: _Command) -> _Command:
    """Options for the registry whose schemas decode records, none by default."""
    text = "Decode keys and values with schemas of this registry; also from HEADRACE_REGISTRY."
    return _registry_options(command, "", text)


def _registry_options(command: _Command, default: str, text: str) -> _Command:
    options = (
        click.option(
            "--registry",
            envvar="HEADRACE_REGISTRY",
            default=default,
            show_default=bool(default),
            metavar="URL,...",
            help=text,
        ),
        click.option(
            "--registry-login",
            envvar="HEADRACE_REGISTRY_LOGIN",
            default="",
            metavar="USER:PASSWORD",
            help="Login; also from HEADRACE_REGISTRY_LOGIN, which hides it from other users.",
        ),
        click.option(
            "--registry-token",
            envvar="HEADRACE_REGISTRY_TOKEN",
            default="",
            metavar="TOKEN",
            help="A bearer token; also from HEADRACE_REGISTRY_TOKEN.",
        ),
        click.option(
            "--registry-ca",
            type=click.Path(exists=True, dir_okay=False),
            default=None,
            metavar="FILE",
            help="Authority of its certificate, if the system does not trust it.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def reference_option(command: _Command) -> _Command:
    return click.option(
        "--reference",
        "references",
        type=parse_reference,
        multiple=True,
        metavar="NAME=SUBJECT:VERSION",
        help="A registered schema that the file references; may be repeated.",
    )(command)


def source_options(command: _Command) -> _Command:
    """Options of `schemas_of`: a file's type and references, and the registry."""
    type_option = click.option(
        "--type",
        type=click.Choice([one.value.lower() for one in SchemaType], case_sensitive=False),
        show_default="by its extension: .avsc, .json, .proto",
        help="Type of the file.",
    )
    return type_option(reference_option(registry_options(command)))


def schemas_of(
    registry: str,
    registry_login: str,
    registry_token: str,
    registry_ca: str | None,
    type: str | None = None,
    references: "Sequence[Reference]" = (),
) -> Schemas:
    """Return the schemas of `registry_options` or `source_options`."""

    def connect() -> "RegistryClient":
        from headrace.schema_clients.registry_client import RegistryClient

        client = RegistryClient(
            registry, registry_login, token=registry_token, ca_file=registry_ca or ""
        )
        click.get_current_context().call_on_close(client.close)
        return client

    return Schemas(connect, type, references)
