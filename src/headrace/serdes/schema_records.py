"""The records of `_schemas` for schemas, and a decoder for all kinds of records.

Keys and values are JSON with Confluent's fields in Confluent's order. The order of keys matters, as
compaction compares their bytes.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any

import msgspec

from headrace.errors import HeadraceError
from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.fingerprints import fingerprint, stored_fingerprint

AVRO = "AVRO"


class UnknownRecord(HeadraceError):
    """A record of the topic that is invalid or irrelevant for this reader."""


class Key(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="keytype"):
    """The subject of a record; the kind comes first."""


class SchemaKey(Key, frozen=True, tag="SCHEMA"):
    subject: str = ""
    version: int = msgspec.field(default_factory=int)
    magic: int = msgspec.field(default_factory=lambda: 1)

    def __str__(self) -> str:
        """Format the key as Confluent's messages do."""
        return f"{{magic=1,keytype=SCHEMA,subject={self.subject},version={self.version}}}"


class DeleteSubjectKey(Key, frozen=True, tag="DELETE_SUBJECT"):
    subject: str = ""
    magic: int = msgspec.field(default_factory=int)


class ClearSubjectKey(Key, frozen=True, tag="CLEAR_SUBJECT"):
    subject: str | None = None
    magic: int = msgspec.field(default_factory=int)


class SchemaValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """One version of a subject."""

    subject: str = ""
    version: int = msgspec.field(default_factory=int)
    id: int = msgspec.field(default_factory=int)
    md5: str | None = None
    schema_type: str = msgspec.field(default_factory=lambda: AVRO, name="schemaType")
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rules: RuleSet | None = msgspec.field(default=None, name="ruleSet")
    schema: str = ""
    deleted: bool = msgspec.field(default_factory=bool)

    def fingerprint(self) -> bytes:
        stored = stored_fingerprint(self.md5)
        if stored is not None:
            return stored
        return fingerprint(self.schema, self.references or (), self.metadata, self.rules)


class DeleteSubjectValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """Marks all versions of a subject up to this one as deleted."""

    subject: str = ""
    version: int = msgspec.field(default_factory=int)


class ClearSubjectValue(msgspec.Struct, frozen=True, omit_defaults=True):
    """Removes the deleted versions of a subject or context for good."""

    subject: str | None = None


Decode = Callable[[bytes | None, bytes | None], tuple[Any, Any]]


def decoder_of(kinds: Mapping[type[Key], type[msgspec.Struct] | None]) -> Decode:
    """Return a decoder for these kinds of records by key; others raise `UnknownRecord`.

    An empty value means the same as none: Karapace deletes this way.
    """
    keys = msgspec.json.Decoder(reduce(or_, kinds))
    values = {key: msgspec.json.Decoder(kind) for key, kind in kinds.items() if kind is not None}

    def decode(key: bytes | None, value: bytes | None) -> tuple[Any, Any]:
        try:
            found = keys.decode(key or b"")
            decoder = values.get(type(found))
            content = decoder.decode(value) if value and decoder is not None else None
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise UnknownRecord(f"key {(key or b'')[:200]!r}: {error}") from error
        return found, content

    return decode
