"""What can be wrong with how payloads shall be read; a bad payload itself is a row, no error."""

from headrace.errors import HeadraceError


class DecodingError(HeadraceError):
    """Payloads cannot be decoded at all, whatever they hold."""


class InvalidSchema(DecodingError):
    """A schema's text is not one, or is not one that rows can have."""


class InvalidFormatOption(DecodingError):
    """An option of a payload format is missing, unknown or makes no sense."""


class RegistryUnavailable(DecodingError):
    """A schema registry did not answer, so a whole batch cannot be read now."""
