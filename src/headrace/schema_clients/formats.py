"""The interface between serializers and a schema type: values to bytes and back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from headrace.schema_clients.rules.executors import Subject
from headrace.serdes.schemas import Dependency, SchemaType

Parsed = TypeVar("Parsed")

Tags: TypeAlias = Mapping[str, list[str]]
"""The tags of fields by their paths, from a schema's metadata."""


class Format(Protocol[Parsed]):
    """A schema type. Bytes `before` a value are Protobuf's path to its message."""

    @property
    def schema_type(self) -> SchemaType: ...

    def parse(self, text: str, dependencies: Sequence[Dependency] = ()) -> Parsed: ...

    def name(self, schema: Parsed) -> str | None:
        """Return the schema's own name, which some subject names contain."""
        ...

    def before(self, schema: Parsed, value: Any) -> bytes:
        """Return the bytes between the schema's id and the value."""
        ...

    def encode(self, schema: Parsed, value: Any) -> bytes: ...

    def split(self, body: bytes) -> tuple[bytes, bytes]:
        """Return the bytes before a value, and the value."""
        ...

    def ruled(self, schema: Parsed, tags: Tags) -> Subject:
        """Return the schema's values as the rules of its contract see them."""
        ...

    def maker(self, class_: type) -> Callable[[Any], Any]:
        """Return a function that makes objects of a class from decoded values."""
        ...

    def decode(self, writer: Parsed, reader: Parsed | None, before: bytes, body: bytes) -> Any: ...
