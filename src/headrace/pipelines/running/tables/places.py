"""Tables by name, as values that can be pickled for tasks."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from headrace.lake.catalog import Lake
from headrace.lake.commit_log import Token
from headrace.lake.tables import Table


class TablePlace:
    """A table of a generation; opened on use, since an open table cannot be pickled."""

    def __init__(self, root: str, name: str, generation: int) -> None:
        self.root = root
        self.name = name
        self.generation = generation
        self._table: Table | None = None

    @property
    def table(self) -> Table:
        if self._table is None:
            self._table = Lake(self.root).table(self.name, self.generation)
        return self._table

    def __reduce__(self) -> tuple[type["TablePlace"], tuple[str, str, int]]:
        return TablePlace, (self.root, self.name, self.generation)

    @contextmanager
    def held(self) -> Iterator[Table]:
        """Lock the table for writing: several flows may feed it, from several threads."""
        locks = Path(self.root) / "_headrace" / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / f"{self.name}.g{self.generation}").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield self.table

    @contextmanager
    def scratch(self, token: Token, purpose: str) -> Iterator[Path]:
        """Yield a folder for the intermediate files of a batch, on the lake's file system.

        Each writer has one, so its next batch removes the files of a crash.
        """
        writer = sha256(token.writer.encode()).hexdigest()[:32]
        home = Path(self.root).absolute() / "_headrace" / purpose
        folder = home / f"{self.name}.g{self.generation}" / writer
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
