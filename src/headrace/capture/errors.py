"""What keeps a capture from going on."""

from headrace.errors import HeadraceError


class CaptureError(HeadraceError):
    """A topic cannot be written into files here; nothing half written is left behind."""
