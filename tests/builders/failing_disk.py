"""A disk that fails on purpose: full, broken, or gone in the middle of an operation."""

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from headrace.runtime import files

# Everything through which storage changes what is on a disk.
CHANGES = (
    "create",
    "create_empty",
    "fsync",
    "ftruncate",
    "mkdir",
    "pwrite",
    "rename",
    "replace",
    "rmdir",
    "unlink",
)


class Killed(BaseException):
    """The process is gone; nothing that would run afterwards may count on anything."""


@contextmanager
def killed_after(changes: int, *, torn_bytes: int = 0) -> Iterator[None]:
    """Let some changes happen and die at the next one, of which a write leaves a few bytes."""
    left = changes
    with pytest.MonkeyPatch.context() as patch:

        def failing(real: Callable[..., Any]) -> Callable[..., Any]:
            def change(*arguments: Any) -> Any:
                nonlocal left
                left -= 1
                if left < 0:
                    if real is files_pwrite:
                        fd, data, position = arguments
                        real(fd, bytes(data)[:torn_bytes], position)
                    raise Killed
                return real(*arguments)

            return change

        files_pwrite = files.pwrite
        for name in CHANGES:
            patch.setattr(files, name, failing(getattr(files, name)))
        try:
            yield
        except Killed:
            return


@contextmanager
def failing_writes(code: int = errno.ENOSPC, *, after_bytes: int = 0) -> Iterator[None]:
    """Every write stores the first few bytes, and then fails."""
    real = files.pwrite
    room = after_bytes

    def pwrite(fd: int, data: Any, position: int) -> int:
        nonlocal room
        if not room:
            raise OSError(code, "the disk refuses")
        written = real(fd, bytes(data)[:room], position)
        room -= written
        return written

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "pwrite", pwrite)
        yield


@contextmanager
def failing(name: str, code: int = errno.EIO) -> Iterator[None]:
    """One kind of operation fails, always."""

    def fail(*_: Any, **__: Any) -> Any:
        raise OSError(code, "the disk refuses")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, name, fail)
        yield


@contextmanager
def broken_disk(path: str, *, changes: Sequence[str] = CHANGES) -> Iterator[None]:
    """Fail every change below a path; other paths work as usual."""

    def is_below(place: Any) -> bool:
        where = os.readlink(f"/proc/self/fd/{place}") if isinstance(place, int) else str(place)
        return where.startswith(f"{path}/")

    def breaking(real: Callable[..., Any]) -> Callable[..., Any]:
        def change(place: Any, *arguments: Any) -> Any:
            if is_below(place):
                raise OSError(errno.EIO, "the disk refuses")
            return real(place, *arguments)

        return change

    with pytest.MonkeyPatch.context() as patch:
        for name in changes:
            patch.setattr(files, name, breaking(getattr(files, name)))
        yield
