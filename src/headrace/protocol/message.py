"""The base of every wire message: a typed struct whose annotations are Kafka's definition.

A field is one line: its name, its type on the wire, the versions that have it, its default.

    topic_id: Annotated[Uuid, "13+ ignorable"] = ZERO
    partitions: Annotated[list[FetchPartition], "0+"] = []

The text is `versions [nullable=versions] [tag=number] [ignorable]`, and `versions` is `3` or `3-5`
or `3+`. A type with `| None` is nullable in all of the field's versions, unless `nullable=` lists
fewer. A tagged field is optional on the wire and left out when it has its default. An `ignorable`
field may be dropped silently when a version has no room for it; any other is an error then.
`codec.py` compiles the fields for the first such message.
"""

from typing import Annotated, ClassVar, Final, TypeAlias

import msgspec

Int8: TypeAlias = Annotated[int, "int8"]
Int16: TypeAlias = Annotated[int, "int16"]
Uint16: TypeAlias = Annotated[int, "uint16"]
Int32: TypeAlias = Annotated[int, "int32"]
Uint32: TypeAlias = Annotated[int, "uint32"]
Int64: TypeAlias = Annotated[int, "int64"]
Records: TypeAlias = Annotated[memoryview | bytes, "records"]

NEVER: Final = 1 << 15
"""The `FLEXIBLE_FROM` of messages that have no flexible version."""


class Structure(msgspec.Struct):
    """A group of fields within a message, as the elements of an array are."""


class FrozenStructure(msgspec.Struct, frozen=True):
    """A structure as a single field; all messages share one default."""


class Message(Structure):
    """A request, a response, or a record's value: a structure with versions."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[range] = range(0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER
