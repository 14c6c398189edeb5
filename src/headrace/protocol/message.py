"""What every wire message is: a typed struct with a table of its fields as Kafka defines them.

The table is text, one field a line, so that a definition module reads like the definition and
costs nothing to import; `codec.py` compiles it when the first such message is met:

    name  type  versions  [nullable[=versions]] [tag=number] [ignorable]

`versions` is `3` or `3-5` or `3+`. Types are Kafka's primitive types, the name of a structure of
the same module, or either behind `[]`. `nullable` alone means in all of the field's versions. A
tagged field is optional on the wire and left out when it has its default. An `ignorable` field
may be dropped silently when a version has no room for it; any other is an error then.
"""

from typing import ClassVar, Final

import msgspec

NEVER: Final = 1 << 15
"""The `FLEXIBLE_FROM` of messages that have no flexible version."""


class Structure(msgspec.Struct):
    """A group of fields within a message, as the elements of an array are."""

    FIELDS: ClassVar[str] = ""


class FrozenStructure(msgspec.Struct, frozen=True):
    """A structure that stands in a field of its own, where all messages share one default."""

    FIELDS: ClassVar[str] = ""


class Message(Structure):
    """A request, a response, or a record's value: what has versions and stands alone."""

    API_KEY: ClassVar[int] = -1
    VERSIONS: ClassVar[range] = range(0)
    FLEXIBLE_FROM: ClassVar[int] = NEVER
