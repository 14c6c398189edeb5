"""Errors of the decoding's configuration; a bad payload is a row with a message instead."""

from headrace.errors import HeadraceError


class DecodingError(HeadraceError):
    """Base of the errors that prevent all decoding."""


class InvalidSchema(DecodingError):
    """A schema cannot be parsed, or has no columns for rows."""


class InvalidFormatOption(DecodingError):
    """An option of a payload format is missing or invalid."""


class RegistryUnavailable(DecodingError):
    """The schema registry did not answer, so the batch cannot be read now."""
