"""How a change gets into a table: planned on the newest version, it lands directly behind or not.

Whoever creates the next commit wins; the loser looks again and plans anew. What the wheel does
itself, such as to delete, is held to the same.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from deltalake import CommitProperties, DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError

from headrace.lake.commits import OUR_METADATA, Token, information, transaction
from headrace.lake.errors import CommitConflict, wheel_error
from headrace.lake.followed import is_old_log_needed
from headrace.lake.head import Head
from headrace.lake.lineage import Lineage
from headrace.lake.metadata import check_may_shrink, takes_rows

Actions = Iterable[Mapping[str, Any]]

_ATTEMPTS = 20
"""How often a commit is planned anew when another writer was quicker."""
_CHECKPOINT_EVERY = 100

_log = logging.getLogger(__name__)


class Landing:
    """The way into one table; threads may share it."""

    def __init__(self, name: str, place: Path) -> None:
        self.name = name
        self.lock = threading.RLock()
        """Held by whoever needs what is newest to stay as it is known here."""
        self._head = Head(place)
        self.log = self._head.log

    def newest(self) -> Head:
        """What the table is now, as far as this process has heard."""
        with self.lock:
            self._head.follow()
            return self._head

    def change(
        self,
        operation: str,
        plan: Callable[[Head], Actions],
        token: Token | None = None,
        lineage: Lineage | None = None,
    ) -> int:
        """Plan actions on the newest version and land directly behind it, or look again.

        A plan without any action is not committed, unless there is a token to keep.
        """
        with self.lock:
            for _ in range(_ATTEMPTS):
                head = self.newest()
                if token is not None and head.has(token):
                    return head.version
                planned = list(plan(head))
                if any(map(takes_rows, planned)):
                    check_may_shrink(head.properties, self.name, operation)
                if token is None and lineage is None and not planned:
                    return head.version
                said = information("WRITE", _metadata(operation, lineage), {"mode": operation})
                actions = [said, *transaction(token), *planned]
                version = head.version + 1
                if head.log.write(version, actions):
                    self._checkpoint(version)
                    return version
        raise self.conflict(operation, _ATTEMPTS)

    def by_wheel(
        self,
        operation: str,
        run: Callable[[DeltaTable, CommitProperties], None],
        token: Token | None,
        lineage: Lineage | None,
    ) -> int:
        """Let the wheel plan and commit; what others were quicker at is repeated."""
        properties = CommitProperties(
            custom_metadata={OUR_METADATA: _metadata(operation, lineage)},
            max_commit_retries=0,
            app_transactions=[Transaction(token.writer, token.batch)] if token else None,
        )
        with self.lock:
            for _ in range(_ATTEMPTS):
                head = self.newest()
                if token is not None and head.has(token):
                    return head.version
                check_may_shrink(head.properties, self.name, operation)
                try:
                    run(head.delta(), properties)
                except CommitFailedError:
                    continue
                except (DeltaError, OSError) as error:
                    raise wheel_error(f"{operation} of {self.name}", error) from error
                head = self.newest()
                if token is not None and not head.has(token):
                    # The wheel commits nothing where nothing changes, not even a token.
                    return self.change("append", lambda _: [], token, lineage)
                return head.version
        raise self.conflict(operation, _ATTEMPTS)

    def _checkpoint(self, version: int) -> None:
        """Gather the log now and then, so that opening a table stays quick.

        What is old goes, unless a flow that stands still has yet to read it. The commit stands,
        whether this succeeds or not; the next one tries again.
        """
        if (version + 1) % _CHECKPOINT_EVERY:
            return
        try:
            delta = self.newest().delta()
            delta.create_checkpoint()
            if not self.is_old_log_needed():
                delta.cleanup_metadata()
        except (DeltaError, OSError) as error:
            _log.warning("no checkpoint of %s at version %d: %s", self.name, version, error)

    def is_old_log_needed(self) -> bool:
        """Whether one who follows the table has yet to read what would be cleaned up now."""
        head = self.newest()
        return is_old_log_needed(self.log, head.version, head.properties, time.time())

    def conflict(self, operation: str, attempts: int) -> CommitConflict:
        """What to say when others were quicker each time, and who was so last."""
        newest = self.log.read(self.newest().version)
        return CommitConflict(
            f"{operation} of {self.name} met other commits {attempts} times, the last of them"
            f" version {newest.version} ({newest.operation}), and was given up. If that was"
            " optimize, run it less often, or while the pipeline rests; else a table has one"
            " writer, so see which other pipeline or program writes to it"
        )


def _metadata(operation: str, lineage: Lineage | None) -> dict[str, Any]:
    said: dict[str, Any] = {"operation": operation}
    if lineage is not None:
        said["lineage"] = lineage.document()
    return said
