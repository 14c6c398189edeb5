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
    """A schema that was read and found valid, its references within it."""

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
        """The full name of a record, which some subject name strategies use."""
        return self.root.name.full if isinstance(self.root, Record) else None

    def canonical(self) -> str:
        """As Java's `Schema.toString` prints it, with references by name."""
        return self._canonical

    def normalized(self) -> str:
        return self._normalized

    def meaning(self, *, normalized: bool = False) -> str:
        """References are put in, and what has no order stands in one."""
        return self._normalized_meaning if normalized else self._meaning

    def field_names(self) -> frozenset[str]:
        fields = self.root.fields if isinstance(self.root, Record) else ()
        return frozenset(field.name for field in fields)

    def formatted(self, format: str) -> str:
        """`resolved` has the referenced types in place of their names."""
        return print_schema(self.root) if format.lower() == "resolved" else self.canonical()

    def parsing_canonical_form(self) -> str:
        """What is left when only the layout of values counts."""
        return print_parsing_canonical_form(self.root)

    def fingerprint(self, algorithm: str = "CRC-64-AVRO") -> str:
        """Of the parsing canonical form, in hexadecimal: CRC-64-AVRO, MD5 or SHA-256."""
        import fastavro.schema

        text = self.parsing_canonical_form()
        return str(fastavro.schema.fingerprint(text, FINGERPRINTS[algorithm]))

    def compiled(self, key: Any, compile: Callable[["AvroSchema"], T]) -> T:
        """What was made of this schema to use it, made once."""
        if key not in self._compiled:
            self._compiled[key] = compile(self)
        found: T = self._compiled[key]
        return found

    def compiled_with(
        self, other: "AvroSchema", key: Any, compile: Callable[["AvroSchema", "AvroSchema"], T]
    ) -> T:
        """What was made of this schema and another, made once while the other lives."""
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
