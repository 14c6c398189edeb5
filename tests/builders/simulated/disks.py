"""Disks in memory behind `runtime.files`, one for each machine.

What a process has written survives its death. A power cut takes what was not synced: of each file a
part of the writes since its last sync stays, in their order, and the last of these may be torn. The
names of files are kept in a journal, as file systems do: a sync of any file or directory makes all
changes of names before it durable, and after a power cut the names are as of some later moment.
"""

import errno
import os
import posixpath
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any

from headrace.runtime import chance, files, thread_pools
from tests.builders.simulated.processes import Died, RunNow, current_process

_FIRST_FD = 1 << 24
_SPACE = 1 << 40


@dataclass(eq=False)
class File:
    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    changes: list[tuple[int, bytes | None]] = field(default_factory=list)
    """Writes since the last sync: position and bytes, or a size and None."""
    modified_ns: int = 0
    cuts: int = 0
    """How often the end of the durable content was cut off."""

    def write(self, position: int, data: bytes) -> None:
        _apply(self.content, position, data)
        self.changes.append((position, data))

    def resize(self, size: int) -> None:
        _apply(self.content, size, None)
        self.changes.append((size, None))

    def sync(self) -> None:
        for position, data in self.changes:
            _apply(self.durable, position, data)
            self.cuts += data is None
        self.changes.clear()

    def lose_power(self, chance: Random) -> None:
        kept = chance.randint(0, len(self.changes)) if chance.random() < 0.7 else 0
        for position, data in self.changes[:kept]:
            _apply(self.durable, position, data)
        if kept < len(self.changes):
            position, data = self.changes[kept]
            if data is not None and chance.random() < 0.5:
                _apply(self.durable, position, data[: chance.randint(0, len(data))])
        self.changes.clear()
        self.content = bytearray(self.durable)
        self.cuts += 1


def _apply(content: bytearray, position: int, data: bytes | None) -> None:
    size = len(content)
    if data is None:
        del content[position:]
        content.extend(bytes(max(0, position - size)))
        return
    content.extend(bytes(max(0, position - size)))
    content[position : position + len(data)] = data


@dataclass(eq=False)
class Directory:
    names: "dict[str, File | Directory]" = field(default_factory=dict)
    durable: "dict[str, File | Directory]" = field(default_factory=dict)


Entry = tuple[Directory, str, "File | Directory | None"]


class Disk:
    """The disk of one machine."""

    def __init__(self, chance: Random, now_ns: Callable[[], int]) -> None:
        self.root = Directory()
        self.boots = 1
        self.now_ns = now_ns
        self.on_change: Callable[[], bool] = lambda: False
        """Called before each change; true if the process dies instead of making it."""
        self._journal: list[tuple[Entry, ...]] = []
        self._chance = chance

    def find(self, path: str) -> "File | Directory":
        place: File | Directory = self.root
        for name in path.split("/"):
            if not isinstance(place, Directory):
                raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
            if name:
                try:
                    place = place.names[name]
                except KeyError:
                    raise FileNotFoundError(errno.ENOENT, "no such file", path) from None
        return place

    def parent(self, path: str) -> tuple[Directory, str]:
        above, name = posixpath.split(path)
        place = self.find(above)
        assert isinstance(place, Directory)
        return place, name

    def rename(self, *entries: Entry) -> None:
        """Change names; the changes of one call become durable together."""
        for directory, name, place in entries:
            if place is None:
                directory.names.pop(name, None)
            else:
                directory.names[name] = place
        self._journal.append(entries)

    def sync_names(self) -> None:
        self._commit(len(self._journal))

    def lose_power(self) -> None:
        self.boots += 1
        self._commit(self._chance.randint(0, len(self._journal)))
        self._journal.clear()
        self._restart(self.root)

    def _commit(self, count: int) -> None:
        for entries in self._journal[:count]:
            for directory, name, place in entries:
                if place is None:
                    directory.durable.pop(name, None)
                else:
                    directory.durable[name] = place
        del self._journal[:count]

    def _restart(self, directory: Directory) -> None:
        directory.names = dict(directory.durable)
        for place in directory.names.values():
            if isinstance(place, File):
                place.lose_power(self._chance)
            else:
                self._restart(place)


class SimulatedOs:
    """The names of `os` that `runtime.files` uses, over the disks of all machines.

    The first part of a path is the name of the machine.
    """

    path = SimpleNamespace(dirname=posixpath.dirname, join=posixpath.join)

    def __init__(self, disks: dict[str, Disk]) -> None:
        self._disks = disks
        self._open: dict[int, tuple[Disk, File | Directory]] = {}
        self._next_fd = _FIRST_FD

    def __getattr__(self, name: str) -> Any:
        if name.startswith("O_"):
            return getattr(os, name)
        raise AttributeError(name)

    def _disk(self, path: str) -> tuple[Disk, str]:
        _check_alive()
        _, machine, inner = path.split("/", 2) if path.count("/") > 1 else (*path.split("/"), "")
        return self._disks[machine], inner

    def _changing(self, disk: Disk) -> None:
        if disk.on_change():
            raise Died

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        disk, inner = self._disk(path)
        try:
            place = disk.find(inner)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            self._changing(disk)
            place = File(modified_ns=disk.now_ns())
            disk.rename((*disk.parent(inner), place))
        else:
            if flags & os.O_TRUNC and isinstance(place, File) and place.content:
                self._changing(disk)
                place.resize(0)
        self._next_fd += 1
        self._open[self._next_fd] = disk, place
        return self._next_fd

    def close(self, fd: int) -> None:
        self._open.pop(fd, None)

    def _file(self, fd: int) -> tuple[Disk, File]:
        _check_alive()
        disk, file = self._open[fd]
        assert isinstance(file, File)
        return disk, file

    def pread(self, fd: int, size: int, position: int) -> bytes:
        return bytes(self._file(fd)[1].content[position : position + size])

    def pwrite(self, fd: int, data: Any, position: int) -> int:
        disk, file = self._file(fd)
        written = bytes(data)
        try:
            self._changing(disk)
        except Died:
            file.write(position, written[: len(written) // 2])
            raise
        file.write(position, written)
        file.modified_ns = disk.now_ns()
        return len(written)

    def fsync(self, fd: int) -> None:
        _check_alive()
        disk, place = self._open[fd]
        self._changing(disk)
        if isinstance(place, File):
            place.sync()
        disk.sync_names()

    def ftruncate(self, fd: int, size: int) -> None:
        disk, file = self._file(fd)
        if size != len(file.content):
            self._changing(disk)
            file.resize(size)

    def truncate(self, path: str, size: int) -> None:
        disk, inner = self._disk(path)
        self._changing(disk)
        file = disk.find(inner)
        assert isinstance(file, File)
        file.resize(size)

    def fstat(self, fd: int) -> Any:
        return _facts(self._open[fd][1])

    def stat(self, path: str) -> Any:
        disk, inner = self._disk(path)
        return _facts(disk.find(inner))

    lstat = stat

    def utime(self, path: str, ns: tuple[int, int]) -> None:
        disk, inner = self._disk(path)
        file = disk.find(inner)
        assert isinstance(file, File)
        file.modified_ns = ns[1]

    def exists(self, path: str) -> bool:
        disk, inner = self._disk(path)
        try:
            disk.find(inner)
        except OSError:
            return False
        return True

    def listdir(self, path: str) -> list[str]:
        return list(self._directory(path).names)

    def _directory(self, path: str) -> Directory:
        disk, inner = self._disk(path)
        place = disk.find(inner)
        if not isinstance(place, Directory):
            raise NotADirectoryError(errno.ENOTDIR, "not a directory", path)
        return place

    @contextmanager
    def scandir(self, path: str) -> Iterator[list[Any]]:
        yield [_DirEntry(name, place) for name, place in self._directory(path).names.items()]

    def walk(self, path: str) -> Iterator[tuple[str, list[str], list[str]]]:
        names = self._directory(path).names
        inner = [name for name, place in names.items() if isinstance(place, Directory)]
        yield path, inner, [name for name in names if name not in inner]
        for name in inner:
            yield from self.walk(f"{path}/{name}")

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        disk, inner = self._disk(path)
        directory, name = disk.parent(inner)
        if name in directory.names:
            raise FileExistsError(errno.EEXIST, "exists", path)
        self._changing(disk)
        disk.rename((directory, name, Directory()))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        parts = path.split("/")
        for end in range(3, len(parts) + 1):
            part = "/".join(parts[:end])
            if not self.exists(part):
                self.mkdir(part)

    def rmdir(self, path: str) -> None:
        disk, inner = self._disk(path)
        place = disk.find(inner)
        assert isinstance(place, Directory)
        if place.names:
            raise OSError(errno.ENOTEMPTY, "not empty", path)
        self._changing(disk)
        disk.rename((*disk.parent(inner), None))

    def unlink(self, path: str) -> None:
        disk, inner = self._disk(path)
        disk.find(inner)
        self._changing(disk)
        disk.rename((*disk.parent(inner), None))

    def rename(self, path: str, new_path: str) -> None:
        disk, inner = self._disk(path)
        place = disk.find(inner)
        self._changing(disk)
        _, new_inner = self._disk(new_path)
        disk.rename((*disk.parent(inner), None), (*disk.parent(new_inner), place))

    replace = rename

    def statvfs(self, path: str) -> Any:
        return SimpleNamespace(f_frsize=1, f_blocks=_SPACE, f_bavail=_SPACE)


class _DirEntry:
    def __init__(self, name: str, place: File | Directory) -> None:
        self.name = name
        self._place = place

    def stat(self) -> Any:
        return _facts(self._place)

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        return isinstance(self._place, File)

    def is_dir(self) -> bool:
        return isinstance(self._place, Directory)


def _facts(place: File | Directory) -> Any:
    if isinstance(place, Directory):
        return SimpleNamespace(st_size=4096, st_mtime_ns=0)
    return SimpleNamespace(st_size=len(place.content), st_mtime_ns=place.modified_ns)


def _check_alive() -> None:
    process = current_process()
    if process is not None and not process.is_alive:
        raise Died


def _boot_id(disks: dict[str, Disk]) -> str:
    process = current_process()
    assert process is not None, "only a process of a machine asks for the boot"
    return f"{process.machine} {disks[process.machine].boots}"


class _AfterTheSimulation:
    """The real `os`, but it ignores that an object of a simulation closes its file."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def close(self, fd: int) -> None:
        if fd < _FIRST_FD:
            os.close(fd)


_OF_OS = ("pread", "pwrite", "fsync", "ftruncate", "rename", "replace", "unlink", "mkdir", "rmdir")


@contextmanager
def doors(disks: dict[str, Disk], randomness: Random) -> Iterator[None]:
    """Let all code of this process use simulated disks, chance and threads."""
    from headrace.broker import fetchers, hosting

    simulated = SimulatedOs(disks)
    replaced: list[tuple[Any, str, Any]] = [
        *((files, name, getattr(simulated, name)) for name in (*_OF_OS, "exists")),
        (files, "os", simulated),
        (files, "boot_id", lambda: _boot_id(disks)),
        (files, "reserve", lambda fd, position, size: False),
        (files, "fcntl", SimpleNamespace(LOCK_EX=0, LOCK_NB=0, lockf=lambda fd, how: None)),
        (chance, "urandom", randomness.randbytes),
        (thread_pools, "new", RunNow),
        # Turns end by the real time.
        (hosting, "perf_counter", lambda: 0.0),
        (fetchers, "perf_counter", lambda: 0.0),
    ]
    before = [(module, name, getattr(module, name)) for module, name, _ in replaced]
    for module, name, value in replaced:
        setattr(module, name, value)
    try:
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)
        setattr(files, "os", _AfterTheSimulation())  # noqa: B010
