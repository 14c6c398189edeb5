"""Syncs of appended bytes, off the event loop.

A flush is planned on the loop, runs in a thread on descriptors and paths that do not change
meanwhile, and is recorded in the log on the loop again (`Log.plan_flush`, `FlushPlan.run`,
`Log.flushed`). All producers that wait for one plan share its sync: group commit.
"""

from collections.abc import Sequence

import msgspec

from headrace.runtime import files, thread_pools
from headrace.runtime.files import OpenFile

_THREADS = 8
_FEW = 4


class FlushPlan(msgspec.Struct, frozen=True):
    """The files to sync so that a log is safe up to an offset."""

    end_offset: int
    logs: tuple[OpenFile, ...]
    """Segment files with unsynced records, the oldest first."""

    paths: tuple[str, ...] = ()
    """Small files, and the directory itself if it has new names."""

    def run(self) -> None:
        """Sync all files. After an OSError the state of the disk is unknown: `Log.fail`."""
        self.sync_logs()
        for path in self.paths:
            _sync_if_there(path)

    def sync_logs(self) -> None:
        for file in self.logs:
            files.fsync(file.fd)


def run_all(plans: Sequence[FlushPlan]) -> None:
    """Run the plans of all logs when a node stops.

    Disks handle parallel syncs better, and directories that logs share are synced once.
    """
    if len(plans) <= _FEW:
        for plan in plans:
            plan.run()
        return
    with thread_pools.new(_THREADS, "flush") as pool:
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
