"""Errors of data, whatever the format; an invalid schema is an `InvalidSchema`."""

from headrace.errors import HeadraceError


class PayloadError(HeadraceError):
    """Data that a valid schema does not allow."""


class UnfitValue(PayloadError):
    """A value that does not match its schema; the message names the field."""


class CorruptPayload(PayloadError):
    """Bytes that are not a value of their schema."""


class CorruptContainer(PayloadError):
    """A file that is not an Avro container file, or one with a damaged block."""
