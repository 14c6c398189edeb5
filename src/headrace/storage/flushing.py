"""Making appended bytes survive a power cut, off the event loop.

A flush is planned on the loop, carried out in a thread on descriptors and paths that nobody
changes meanwhile, and entered in the log on the loop again (`Log.plan_flush`, `FlushPlan.run`,
`Log.flushed`). All producers that wait for one plan share its sync: group commit.
"""

import msgspec

from headrace.runtime import files
from headrace.runtime.files import OpenFile


class FlushPlan(msgspec.Struct, frozen=True):
    """What must reach the disk so that a log is safe up to an offset."""

    end_offset: int
    logs: tuple[OpenFile, ...]
    """Segment files with unsynced records, the oldest first."""

    paths: tuple[str, ...] = ()
    """Small files beside them, and the directory itself when names in it are new."""

    def run(self) -> None:
        """Sync it all. An OSError means that nothing is known of what was written: see `Log.fail`.

        Small files may be gone or replaced by the time the thread gets to them.
        """
        for file in self.logs:
            files.fsync(file.fd)
        for path in self.paths:
            try:
                files.fsync_path(path)
            except FileNotFoundError:
                continue
