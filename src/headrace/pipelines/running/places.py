"""Tables by name, as values that can travel to wherever a batch is written."""

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from headrace.lake.catalog import Lake
from headrace.lake.commits import Token
from headrace.lake.tables import Table


class TablePlace:
    """A table of some generation: opened where it is used, since an open table does not travel."""

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
        """Write as the only one: several flows may feed a table, from several threads."""
        locks = Path(self.root) / "_headrace" / "locks"
        locks.mkdir(parents=True, exist_ok=True)
        with (locks / f"{self.name}.g{self.generation}").open("a") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield self.table

    @contextmanager
    def scratch(self, token: Token, purpose: str) -> Iterator[Path]:
        """A folder for the files of one batch on their way, which tasks reach as they do the lake.

        A writer has one, so what a crash has left there goes before its next batch.
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
