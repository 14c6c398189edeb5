"""What serializers need of a type of schemas: values to bytes and back."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

from headrace.serdes.rules.executors import Subject
from headrace.serdes.schemas import Dependency, SchemaType

Parsed = TypeVar("Parsed")

Tags: TypeAlias = Mapping[str, list[str]]
"""The tags of fields by their paths, from a schema's metadata."""


class Format(Protocol[Parsed]):
    """One type of schemas. What stands before a value is Protobuf's way to its message."""

    @property
    def schema_type(self) -> SchemaType: ...

    def parse(self, text: str, dependencies: Sequence[Dependency] = ()) -> Parsed: ...

    def name(self, schema: Parsed) -> str | None:
        """The schema's own name, of which a subject may be made."""
        ...

    def before(self, schema: Parsed, value: Any) -> bytes:
        """What follows the schema's id, before the value."""
        ...

    def encode(self, schema: Parsed, value: Any) -> bytes: ...

    def split(self, body: bytes) -> tuple[bytes, bytes]:
        """What stood before a value, and the value."""
        ...

    def ruled(self, schema: Parsed, tags: Tags) -> Subject:
        """Values of a schema as the rules of its contract see them."""
        ...

    def maker(self, class_: type) -> Callable[[Any], Any]:
        """Makes objects of a class from decoded values."""
        ...

    def decode(self, writer: Parsed, reader: Parsed | None, before: bytes, body: bytes) -> Any: ...
