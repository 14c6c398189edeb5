"""Optimistic commits: a change is planned on the newest version and becomes the next one, or fails.

The writer that creates the next commit wins; the others plan again on the new version. The same
holds for operations that deltalake plans, such as a delete.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from headrace.lake.commit_log import OUR_METADATA, Commit, Token, information, transaction
from headrace.lake.errors import CommitConflict, deltalake_error
from headrace.lake.lineage import Lineage
from headrace.lake.metadata import check_may_shrink, takes_rows
from headrace.lake.reader_positions import is_old_log_needed
from headrace.lake.snapshot import Snapshot
from headrace.runtime.clock import Clock

Actions = Iterable[Mapping[str, Any]]

_ATTEMPTS = 20
"""Attempts to commit while other writers are quicker."""
_CHECKPOINT_EVERY = 100

_log = logging.getLogger(__name__)


class Committer:
    """Commits changes to one table; threads may share it."""

    def __init__(self, name: str, place: Path, clock: Clock) -> None:
        self.name = name
        self._clock = clock
        self.lock = threading.RLock()
        """Held while a thread relies on the newest known version."""
        self._snapshot = Snapshot(place)
        self.log = self._snapshot.log

    def snapshot(self) -> Snapshot:
        """Return the newest version, after reading new commits."""
        with self.lock:
            self._snapshot.follow()
            return self._snapshot

    def change(
        self,
        operation: str,
        plan: Callable[[Snapshot], Actions],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Plan actions on the newest version and commit them as the next one.

        A plan without actions is only committed to record a token or a lineage.
        """

        def attempt(snapshot: Snapshot) -> int | None:
            planned = list(plan(snapshot))
            if any(map(takes_rows, planned)):
                check_may_shrink(snapshot.properties, self.name, operation)
            if token is None and lineage is None and not planned:
                return snapshot.version
            metadata, now_ms = _metadata(operation, lineage), self._clock.now_ms()
            about = information("WRITE", metadata, {"mode": operation}, now_ms)
            version = snapshot.version + 1
            if not snapshot.log.write(version, [about, *transaction(token), *planned]):
                return None
            self._checkpoint(version)
            return version

        return self._committed(operation, token, attempt)

    def by_deltalake(
        self,
        operation: str,
        run: Callable[[DeltaTable, CommitProperties], None],
        token: Token | None,
        lineage: Lineage | None,
    ) -> int:
        """Let deltalake plan and commit."""
        properties = CommitProperties(
            custom_metadata={OUR_METADATA: _metadata(operation, lineage)},
            max_commit_retries=0,
            app_transactions=[Transaction(token.writer, token.batch)] if token else None,
        )

        def attempt(snapshot: Snapshot) -> int | None:
            check_may_shrink(snapshot.properties, self.name, operation)
            try:
                run(snapshot.delta(), properties)
            except CommitFailedError:
                return None
            except (DeltaError, OSError) as error:
                raise deltalake_error(f"{operation} of {self.name}", error) from error
            after = self.snapshot()
            if token is not None and not after.has(token):
                # Without a change deltalake commits nothing, not even the token.
                return self.change("append", lambda _: [], token, lineage)
            return after.version

        return self._committed(operation, token, attempt)

    def _committed(
        self, operation: str, token: Token | None, attempt: Callable[[Snapshot], int | None]
    ) -> int:
        """Return the version with the batch; an attempt on the newest one is None on a conflict."""
        with self.lock:
            for _ in range(_ATTEMPTS):
                snapshot = self.snapshot()
                if token is not None and snapshot.has(token):
                    return snapshot.version
                if (version := attempt(snapshot)) is not None:
                    return version
        raise self.conflict(operation, _ATTEMPTS)

    def _checkpoint(self, version: int) -> None:
        """Write a checkpoint now and then, so that opening a table stays quick.

        Old entries are removed unless a stopped flow has yet to read them. A failure does not
        affect the commit; the next checkpoint tries again.
        """
        if (version + 1) % _CHECKPOINT_EVERY:
            return
        try:
            delta = self.snapshot().delta()
            delta.create_checkpoint()
            if not self.is_old_log_needed():
                delta.cleanup_metadata()
        except (DeltaError, OSError) as error:
            _log.warning(
                "checkpoint failed",
                extra={"table": self.name, "version": version, "error": str(error)},
            )

    def is_old_log_needed(self) -> bool:
        """Return whether a reader that follows the table still needs expired log entries."""
        snapshot = self.snapshot()
        return is_old_log_needed(
            self.log, snapshot.version, snapshot.properties, self._clock.now_ms()
        )

    def conflict(self, operation: str, attempts: int) -> CommitConflict:
        """Return the error after all attempts; it names the last commit that was quicker."""
        newest = self.log.read(self.snapshot().version)
        return CommitConflict(
            f"{operation} of {self.name} failed after {attempts} conflicts with other commits, the"
            f" last with version {newest.version} ({newest.operation}). If that was optimize, run"
            " it less often or while the pipeline is stopped. Otherwise find the other program that"
            " writes to the table: it may have one writer only"
        )


class History:
    """The commits of one table, as far back as its log reaches."""

    def __init__(self, committer: Committer) -> None:
        self._committer = committer
        self._log = committer.log

    def commit(self, version: int) -> Commit:
        return self._log.read(version)

    def commits(self, limit: int | None = None) -> list[Commit]:
        """Return the commits that are still in the log, newest first."""
        return [self.commit(version) for version in islice(reversed(self._log.versions()), limit)]

    def lineage(self, version: int | None = None) -> Lineage | None:
        """Return the lineage of a version, by default the newest one; rewrites have none."""
        if version is None:
            return self.lineage_at(self._committer.snapshot().version)
        return self.commit(version).lineage

    def lineage_at(self, version: int) -> Lineage | None:
        """Return the newest lineage up to a version."""
        while self._log.has(version):
            found = self.commit(version).lineage
            if found is not None:
                return found
            version -= 1
        return None

    def latest_with_same_rows(self, version: int) -> int:
        """Return the newest version with the same rows as this one.

        Rewrites make versions of their own, and vacuum removes the files of those before them. So
        a reader of the rows should read this version.
        """
        while self._log.has(version + 1):
            commit = self.commit(version + 1)
            if commit.removes_rows or commit.added_files():
                break
            version += 1
        return version


def _metadata(operation: str, lineage: Lineage | None) -> dict[str, Any]:
    metadata: dict[str, Any] = {"operation": operation}
    if lineage is not None:
        metadata["lineage"] = lineage.document()
    return metadata
