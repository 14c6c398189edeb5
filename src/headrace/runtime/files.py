"""The door to the file system: every read and write of a log passes through these names.

Callers use the module (`files.pwrite(...)`) and never `os`, so that a test can simulate a full
disk, a torn write or a crash.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from errno import EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM, ENOSPC
from functools import cache

from headrace.errors import HeadraceError

pread = os.pread
pwrite = os.pwrite
fsync = os.fsync
ftruncate = os.ftruncate
rename = os.rename
replace = os.replace
unlink = os.unlink
mkdir = os.mkdir
rmdir = os.rmdir
exists = os.path.exists

_CREATE = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_CREATE_OR_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
_EXISTING = os.O_RDWR | os.O_CLOEXEC
_REWRITE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_CLOEXEC
_MODE = 0o644
_SECRET = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_SECRET_MODE = 0o600
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_KEEP_SIZE = 1
_DESCRIPTORS_PLENTY = 65_536


class DirectoryInUse(HeadraceError):
    """Another process holds the lock of a log directory."""


class OpenFile:
    """A file descriptor that closes when its last user releases it.

    Segments forget their descriptors when too many are open, or when they are deleted; an answer
    that is still being sent from the file, or a sync that runs in a thread, keeps it alive.
    """

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def fileno(self) -> int:
        return self.fd

    def __del__(self) -> None:
        os.close(self.fd)


def create(path: str) -> OpenFile:
    """Create or truncate a file, and open it for reading and writing."""
    return OpenFile(os.open(path, _CREATE, _MODE))


def open_existing(path: str) -> OpenFile:
    return OpenFile(os.open(path, _EXISTING))


def create_empty(path: str) -> None:
    """Create or truncate a file."""
    os.close(os.open(path, _REWRITE, _MODE))


def pwrite_all(fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all bytes; the kernel may write only a part per call."""
    view = memoryview(data)
    while view:
        written = pwrite(fd, view, position)
        view = view[written:]
        position += written


def read_part(path: str, position: int, size_max: int) -> bytes:
    """Return bytes of a file from a position on; fewer at its end."""
    fd = os.open(path, _READ)
    try:
        return pread(fd, size_max, position)
    finally:
        os.close(fd)


def read(path: str) -> bytes:
    """The whole content of a small file."""
    fd = os.open(path, _READ)
    try:
        size = os.fstat(fd).st_size
        content = pread(fd, size, 0)
        while len(content) < size:
            more = pread(fd, size - len(content), len(content))
            if not more:
                break
            content += more
        return content
    finally:
        os.close(fd)


def read_tail(path: str, size: int) -> bytes:
    """The last bytes of a file, fewer if it is shorter."""
    fd = os.open(path, _READ)
    try:
        return pread(fd, size, max(0, os.fstat(fd).st_size - size))
    finally:
        os.close(fd)


def write(path: str, content: bytes | bytearray, *, sync: bool = False) -> None:
    """Overwrite a file; a crash may leave a part of the content, see `replace_file`."""
    fd = os.open(path, _REWRITE, _MODE)
    try:
        pwrite_all(fd, content, 0)
        if sync:
            fsync(fd)
    finally:
        os.close(fd)


def write_end(path: str, content: bytes | bytearray, position: int) -> None:
    """Replace the content of a file from a position on; create the file if it is missing."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, _MODE)
    try:
        pwrite_all(fd, content, position)
        ftruncate(fd, position + len(content))
    finally:
        os.close(fd)


def append_private(path: str, content: bytes) -> None:
    """Append to a file, all or nothing; a new file may be read by its owner only."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        size = os.fstat(fd).st_size
        rest = memoryview(content)
        try:
            while rest:
                rest = rest[os.write(fd, rest) :]
        except OSError:
            ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def replace_file(path: str, content: bytes | bytearray, *, sync: bool = True) -> None:
    """Replace the content of a file atomically."""
    temporary = f"{path}.tmp"
    write(temporary, content, sync=sync)
    replace(temporary, path)
    if sync:
        fsync_path(os.path.dirname(path))


def replace_secret(path: str, content: bytes | bytearray) -> None:
    """Replace the content of a file atomically; only its owner may read it, from the first byte."""
    temporary = f"{path}.tmp"
    if exists(temporary):
        unlink(temporary)  # A crash left it, and its mode may differ.
    fd = os.open(temporary, _SECRET, _SECRET_MODE)
    try:
        pwrite_all(fd, content, 0)
        fsync(fd)
    finally:
        os.close(fd)
    replace(temporary, path)
    fsync_path(os.path.dirname(path) or ".")


def reserve(fd: int, position: int, size: int) -> bool:
    """Allocate space beyond the end of a file without changing its size.

    Allocating once for many writes saves a third of the cost of a large write. False if the file
    system cannot do this; nothing depends on it.
    """
    return _fallocate()(fd, _KEEP_SIZE, position, size) == 0


@cache
def _fallocate() -> Callable[[int, int, int, int], int]:
    """Return the system call, which `os` lacks; import ctypes only for the first large write."""
    from ctypes import CDLL, c_int, c_int64

    library = CDLL(None)
    function = getattr(library, "fallocate64", None) or getattr(library, "fallocate", None)
    if function is None:
        return lambda fd, mode, position, size: -1
    function.argtypes = (c_int, c_int, c_int64, c_int64)
    return function  # type: ignore[no-any-return]


def fsync_path(path: str) -> None:
    """Sync a file, or the names in a directory, to the disk."""
    fd = os.open(path, _READ)
    try:
        fsync(fd)
    finally:
        os.close(fd)


def truncate(path: str, size: int) -> None:
    os.truncate(path, size)


def file_size(path: str) -> int:
    return os.stat(path).st_size


def modified_ms(path: str) -> int:
    """The time of the last write, which is the age of records without timestamp."""
    return os.stat(path).st_mtime_ns // 1_000_000


def set_modified_ms(path: str, modified_ms: int) -> None:
    """Give a file the age of another that it replaces."""
    os.utime(path, ns=(modified_ms * 1_000_000, modified_ms * 1_000_000))


def names(directory: str) -> list[str]:
    return os.listdir(directory)


def sized_files(directory: str) -> Iterator[tuple[str, int]]:
    """Name and size of each plain file in a directory; sizes of `.log` files only.

    A node may list thousands of directories at start, and other sizes are not needed.
    """
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if name.endswith(".log"):
                yield name, entry.stat().st_size
            elif entry.is_file(follow_symlinks=False):
                yield name, 0


def subdirectories(directory: str) -> list[str]:
    with os.scandir(directory) as entries:
        return [entry.name for entry in entries if entry.is_dir()]


def unlink_if_there(path: str) -> None:
    try:
        unlink(path)
    except FileNotFoundError:
        return


def rename_if_there(path: str, new_path: str) -> bool:
    try:
        replace(path, new_path)
    except FileNotFoundError:
        return False
    return True


def remove_tree(directory: str) -> None:
    """Remove a directory of plain files, as partition directories are."""
    try:
        for name in names(directory):
            unlink_if_there(f"{directory}/{name}")
        rmdir(directory)
    except FileNotFoundError:
        return


def tree_size(directory: str) -> int:
    """The bytes of all files below a directory; files deleted meanwhile are ignored."""
    total = 0
    for place, _, found in os.walk(directory):
        for name in found:
            try:
                total += os.lstat(os.path.join(place, name)).st_size
            except FileNotFoundError:
                continue
    return total


def make_directories(path: str) -> None:
    os.makedirs(path, exist_ok=True)


def lock(path: str) -> OpenFile:
    """Lock a file exclusively until the result is released, so that two nodes never share logs.

    Java uses the same kind of lock, so Kafka and Headrace exclude each other, too.
    """
    file = OpenFile(os.open(path, _CREATE_OR_OPEN, _MODE))
    try:
        fcntl.lockf(file.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        raise DirectoryInUse(
            f"{path} is locked: another broker uses this directory; stop it or choose another"
        ) from error
    return file


def space(path: str) -> tuple[int, int]:
    """Total and usable bytes of the file system that holds a path."""
    statistics = os.statvfs(path)
    block = statistics.f_frsize
    return statistics.f_blocks * block, statistics.f_bavail * block


def descriptors_max() -> int:
    """The maximum number of open files and connections of this process."""
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return soft if 0 < soft < _DESCRIPTORS_PLENTY else _DESCRIPTORS_PLENTY


def boot_id() -> str:
    """Return the kernel's id of the time since the machine started; empty where it has none."""
    try:
        with open(_BOOT_ID) as file:  # Its size is 0, so `read` would find nothing.
            return file.read().strip()
    except OSError:
        return ""


def is_passing(error: OSError) -> bool:
    """Return whether the error is lack of space rather than a failing disk."""
    return error.errno in (ENOSPC, EDQUOT, EFBIG, EMFILE, ENFILE, ENOMEM)
