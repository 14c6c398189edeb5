"""What can be wrong with Avro's values and bytes; a bad schema is an `InvalidSchema`."""

from headrace.errors import HeadraceError


class AvroError(HeadraceError):
    """Root of what goes wrong with data of a valid schema."""


class UnfitValue(AvroError):
    """A value that its schema has no place for; the message names the field."""


class CorruptPayload(AvroError):
    """Bytes that are no value of their schema."""


class CorruptContainer(AvroError):
    """A file that is no Avro container file, or one with a damaged block."""
