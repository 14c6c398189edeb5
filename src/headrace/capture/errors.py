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


class LogCutBack(CaptureError):
    """A log ends before what its files have; what comes to it now are other records."""

    def __init__(self, topic: str, partition: int, captured: int, end: int, folder: str) -> None:
        super().__init__(
            f"{topic}-{partition} was captured up to offset {captured - 1} and goes back to {end}: "
            "the log was cut, by a backup that was restored or an election of a replica that was "
            "behind, and its offsets are other records now. Name another --group, and another "
            f"directory with --to or move {folder} away; then all that the topic has is captured"
        )
