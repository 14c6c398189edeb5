"""What keeps a capture from going on."""

from headrace.errors import HeadraceError


class CaptureError(HeadraceError):
    """A topic cannot be written into files here; nothing half written is left behind."""


class TopicMadeAgain(CaptureError):
    """The files are of a topic that is no more; one of the same name has other records."""

    def __init__(self, topic: str, folder: str) -> None:
        super().__init__(
            f"topic {topic!r} was deleted and made again since {folder} was begun: its offsets are "
            "other records now. Name another directory with --to, or move this one away; then all "
            "of the new topic is captured"
        )
