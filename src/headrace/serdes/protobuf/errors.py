"""What can be wrong with Protobuf's values and bytes; a bad schema is an `InvalidSchema`."""

from headrace.errors import HeadraceError


class ProtobufError(HeadraceError):
    """Root of what goes wrong with data of a valid schema."""


class UnknownMessage(ProtobufError):
    """A message's name, or a way to one, that the schema does not have."""


class UnfitValue(ProtobufError):
    """A value that its message has no place for, or that lacks a field which is required."""


class CorruptPayload(ProtobufError):
    """Bytes that are no message of their type."""
