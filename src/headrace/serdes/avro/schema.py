"""A valid Avro schema, and its texts."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from headrace.serdes.avro.model import Node, Record
from headrace.serdes.avro.normalizing import in_order, normalize
from headrace.serdes.avro.printing import print_parsing_canonical_form, print_schema
from headrace.serdes.schemas import SchemaType

FINGERPRINTS: Final = {"CRC-64-AVRO": "CRC-64-AVRO", "MD5": "md5", "SHA-256": "sha256"}

T = TypeVar("T")


@dataclass(eq=False)
class AvroSchema:
    """A valid schema with its references resolved."""

    root: Node
    known: frozenset[str] = frozenset()
    """Full names of the types that dependencies define."""

    _compiled: dict[Any, Any] = field(default_factory=dict, repr=False)
    _compiled_with: WeakKeyDictionary["AvroSchema", dict[Any, Any]] = field(
        default_factory=WeakKeyDictionary, repr=False
    )

    @property
    def type(self) -> SchemaType:
        return SchemaType.AVRO

    @property
    def name(self) -> str | None:
        """The full name of a record, used by some subject name strategies."""
        return self.root.name.full if isinstance(self.root, Record) else None

    def canonical(self) -> str:
        """Return the form of Java's `Schema.toString`, with references by name."""
        return self._canonical

    def normalized(self) -> str:
        return self._normalized

    def meaning(self, *, normalized: bool = False) -> str:
        """Return the text with references inlined and unordered parts sorted, for comparisons."""
        return self._normalized_meaning if normalized else self._meaning

    def field_names(self) -> frozenset[str]:
        fields = self.root.fields if isinstance(self.root, Record) else ()
        return frozenset(field.name for field in fields)

    def formatted(self, format: str) -> str:
        """Return the canonical text; `resolved` inlines the referenced types."""
        return print_schema(self.root) if format.lower() == "resolved" else self.canonical()

    def parsing_canonical_form(self) -> str:
        """Return the text reduced to attributes that affect the encoding."""
        return print_parsing_canonical_form(self.root)

    def fingerprint(self, algorithm: str = "CRC-64-AVRO") -> str:
        """Return a fingerprint of the parsing canonical form in hexadecimal."""
        import fastavro.schema

        text = self.parsing_canonical_form()
        return str(fastavro.schema.fingerprint(text, FINGERPRINTS[algorithm]))

    def compiled(self, key: Any, compile: Callable[["AvroSchema"], T]) -> T:
        """Return an object compiled from this schema, cached by key."""
        if key not in self._compiled:
            self._compiled[key] = compile(self)
        found: T = self._compiled[key]
        return found

    def compiled_with(
        self, other: "AvroSchema", key: Any, compile: Callable[["AvroSchema", "AvroSchema"], T]
    ) -> T:
        """Return an object compiled from this schema and another, cached while the other lives."""
        kept = self._compiled_with.setdefault(other, {})
        if key not in kept:
            kept[key] = compile(self, other)
        found: T = kept[key]
        return found

    @cached_property
    def _canonical(self) -> str:
        return print_schema(self.root, self.known)

    @cached_property
    def _meaning(self) -> str:
        return print_schema(in_order(self.root))

    @cached_property
    def _normalized_meaning(self) -> str:
        return print_schema(in_order(normalize(self.root)))

    @cached_property
    def _normalized(self) -> str:
        return print_schema(normalize(self.root), self.known)
