"""Where the schemas of `headrace schema` come from: files, subjects and ids of a registry."""

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
    from headrace.serdes.registry_client import NewSchema, Reference, RegistryClient

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
    """What was named is no schema."""


class Found(msgspec.Struct, frozen=True):
    """A schema and where it is from."""

    label: str
    type: SchemaType
    text: str
    dependencies: tuple[Dependency, ...] = ()

    def parsed(self) -> ParsedSchema:
        from headrace.registry.schema_types import SchemaTypes

        return SchemaTypes().parse(self.type, self.text, self.dependencies, is_new=False)


class Place(msgspec.Struct, frozen=True):
    """What an argument names: a file, an id, or a subject, at a version or as a whole."""

    path: Path | None = None
    id: int | None = None
    subject: str = ""
    version: str = ""


def place_of(text: str) -> Place:
    """A text that looks like a file is one, there or not: no subject ends like that by chance."""
    path = Path(text)
    if path.suffix.lower() in ENDINGS or path.is_file():
        return Place(path=path)
    if found := _ID.fullmatch(text):
        return Place(id=int(found["id"]))
    if found := _VERSION.fullmatch(text):
        return Place(subject=found["subject"], version=found["version"])
    return Place(subject=text)


def parse_reference(text: str) -> "Reference":
    """An option `NAME=SUBJECT:VERSION`."""
    from headrace.serdes.registry_client import Reference

    found = _REFERENCE.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not of the form NAME=SUBJECT:VERSION")
    return Reference(found["name"], found["subject"], int(found["version"]))


def type_of(path: Path, given: str | None) -> SchemaType:
    """The type that is given, or the one that the file's name ends like."""
    if given is not None:
        return SchemaType(given.upper())
    try:
        return ENDINGS[path.suffix.lower()]
    except KeyError:
        raise NoSchema(
            f"{path}: schemas end in .avsc, .json or .proto; say what this is by --type"
        ) from None


class Schemas:
    """Finds schemas by what arguments name; a registry is asked only where one is needed."""

    def __init__(self, connect: "Callable[[], RegistryClient]") -> None:
        self._connect = connect

    @cached_property
    def client(self) -> "RegistryClient":
        return self._connect()

    def found(
        self,
        text: str,
        *,
        type: str | None = None,
        references: "Sequence[Reference]" = (),
    ) -> Found:
        """The schema of a file, of an id or of a version; of a subject its newest one."""
        place = place_of(text)
        if place.path is not None:
            dependencies = self.client.dependencies_of(references) if references else ()
            content = place.path.read_text(encoding="utf-8")
            return Found(text, type_of(place.path, type), content, dependencies)
        if place.id is not None:
            registered = self.client.schema(place.id)
            if registered is None:
                raise NoSchema(f"the registry has no schema {place.id}")
            return _registered(text, registered)
        version = place.version or "latest"
        return self.version(place.subject, version)

    def version(self, subject: str, version: int | str) -> Found:
        registered = self.client.version(subject, version)
        number = version if registered.told is None else registered.told.version
        return _registered(f"{subject}:{number}", registered)


def _registered(label: str, registered: Any) -> Found:
    return Found(label, SchemaType(registered.type), registered.text, registered.dependencies)


def new_schema(
    path: Path,
    type: str | None,
    references: "Sequence[Reference]" = (),
    metadata: Path | None = None,
    rules: Path | None = None,
) -> "NewSchema":
    """A file as what a registry is told; metadata and rules are Confluent's JSON."""
    from headrace.serdes.contracts import Metadata, RuleSet
    from headrace.serdes.registry_client import NewSchema

    return NewSchema(
        path.read_text(encoding="utf-8"),
        type_of(path, type).value,
        tuple(references),
        None if metadata is None else _document(metadata, "metadata", Metadata),
        None if rules is None else _document(rules, "ruleSet", RuleSet),
    )


def _document(path: Path, name: str, shape: Any) -> dict[str, Any]:
    """A JSON file, with or without the member that it will be of the request."""
    try:
        document = msgspec.json.decode(path.read_bytes(), type=dict[str, Any])
        content: dict[str, Any] = document.get(name, document)
        msgspec.convert(content, shape)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise NoSchema(f"{path} is no {name}: {error}") from error
    return content


def registry_options(command: _Command) -> _Command:
    """Where the registry is, and who one is to it."""
    options = (
        click.option(
            "--registry",
            envvar="HEADRACE_REGISTRY",
            default=f"http://{DEFAULT_REGISTRY}",
            show_default=True,
            metavar="URL,...",
            help="The schema registry, if need be with user:password@; also from"
            " HEADRACE_REGISTRY.",
        ),
        click.option(
            "--registry-login",
            envvar="HEADRACE_REGISTRY_LOGIN",
            default="",
            metavar="USER:PASSWORD",
            help="Also from HEADRACE_REGISTRY_LOGIN, where nobody sees it.",
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
            help="The authority of its certificate, where the system knows it not.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def type_option(command: _Command) -> _Command:
    return click.option(
        "--type",
        type=click.Choice([one.value.lower() for one in SchemaType], case_sensitive=False),
        help="What the file is; else its name says it: .avsc, .json, .proto.",
    )(command)


def reference_option(command: _Command) -> _Command:
    return click.option(
        "--reference",
        "references",
        type=parse_reference,
        multiple=True,
        metavar="NAME=SUBJECT:VERSION",
        help="A registered schema that the file refers to; may be repeated.",
    )(command)


def schemas_of(
    registry: str, registry_login: str, registry_token: str, registry_ca: str | None
) -> Schemas:
    """The schemas that `registry_options` lead to."""

    def connect() -> "RegistryClient":
        from headrace.serdes.registry_client import RegistryClient

        client = RegistryClient(
            registry, registry_login, token=registry_token, ca_file=registry_ca or ""
        )
        click.get_current_context().call_on_close(client.close)
        return client

    return Schemas(connect)
