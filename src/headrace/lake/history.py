"""What a table's log tells of its versions: which commits there were, and what each was made of."""

from itertools import islice

from headrace.lake.commits import Commit
from headrace.lake.landing import Landing
from headrace.lake.lineage import Lineage


class History:
    """The versions of one table, as far back as its log reaches."""

    def __init__(self, landing: Landing) -> None:
        self._landing = landing
        self._log = landing.log

    def commit(self, version: int) -> Commit:
        """What the log says of a version."""
        return self._log.read(version)

    def commits(self, limit: int | None = None) -> list[Commit]:
        """The commits that the log still has, newest first."""
        return [self.commit(version) for version in islice(reversed(self._log.versions()), limit)]

    def lineage(self, version: int | None = None) -> Lineage | None:
        """Where the rows of a version came from; of the newest that says so, unless one is given.

        Versions that only rewrite files say nothing of their own.
        """
        if version is None:
            return self.lineage_at(self._landing.newest().version)
        return self.commit(version).lineage

    def lineage_at(self, version: int) -> Lineage | None:
        """The newest lineage that a version or one before it has told."""
        while self._log.has(version):
            said = self.commit(version).lineage
            if said is not None:
                return said
            version -= 1
        return None

    def settled(self, version: int) -> int:
        """The newest version that has the very rows of this one.

        What only rewrites files makes a version of its own, and those before it lose their files
        to vacuum. So whoever wants the rows, and not the files, reads this one.
        """
        while self._log.has(version + 1):
            commit = self.commit(version + 1)
            if commit.removes_rows or commit.added_files():
                break
            version += 1
        return version
