"""Making appended bytes survive a power cut, off the event loop.

A flush is planned on the loop, carried out in a thread on descriptors and paths that nobody
changes meanwhile, and entered in the log on the loop again (`Log.plan_flush`, `FlushPlan.run`,
`Log.flushed`). All producers that wait for one plan share its sync: group commit.
"""

from collections.abc import Sequence

import msgspec

from headrace.runtime import files
from headrace.runtime.files import OpenFile

_THREADS = 8
_FEW = 4


class FlushPlan(msgspec.Struct, frozen=True):
    """What must reach the disk so that a log is safe up to an offset."""

    end_offset: int
    logs: tuple[OpenFile, ...]
    """Segment files with unsynced records, the oldest first."""

    paths: tuple[str, ...] = ()
    """Small files beside them, and the directory itself when names in it are new."""

    def run(self) -> None:
        """Sync it all. An OSError means that nothing is known of what was written: `Log.fail`."""
        self.sync_logs()
        for path in self.paths:
            _sync_if_there(path)

    def sync_logs(self) -> None:
        for file in self.logs:
            files.fsync(file.fd)


def run_all(plans: Sequence[FlushPlan]) -> None:
    """Carry out many plans at a stop, when every log of a node may have something to sync.

    Disks take many syncs better at once, and directories that logs share are synced once.
    """
    if len(plans) <= _FEW:
        for plan in plans:
            plan.run()
        return
    from concurrent.futures import ThreadPoolExecutor  # Slow to import, and only used here.

    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(FlushPlan.sync_logs, plans):
            pass
        for _ in pool.map(_sync_if_there, {path for plan in plans for path in plan.paths}):
            pass


def _sync_if_there(path: str) -> None:
    """Small files may have been deleted, or moved with their directory, since the plan."""
    try:
        files.fsync_path(path)
    except FileNotFoundError:
        return
