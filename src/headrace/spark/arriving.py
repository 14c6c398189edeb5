"""What an object that brings headrace along runs where it arrives, before it is unpickled.

These functions are pickled by value (`carrying`): the Python that runs them may have no headrace,
or another version of it. So they use the standard library and each other, nothing else of ours.
"""

import importlib
import io
import marshal
import os
import stat
import sys
import tempfile
import zipfile
from importlib.util import MAGIC_NUMBER
from pathlib import Path
from typing import Any, BinaryIO

PACKAGES = ("headrace", "pyspark_headrace")


def bring(name: str, archive: bytes) -> None:
    """Let this process import headrace from the zip of this name, which tells its content.

    What comes later from here brings the zip along in turn. A process that has loaded another
    version, as a worker that serves several clients may have, forgets that one: Spark gives a
    process one task at a time, so nobody is using it.
    """
    if not _has_loaded(name):
        path = str(kept(name, archive))
        _forget()
        sys.path[:] = [path, *(entry for entry in sys.path if entry != path)]
        importlib.invalidate_caches()
    importlib.import_module("headrace.spark.carrying").carry(name, archive)


def made(brought: None, kind: Any, *arguments: Any) -> Any:
    """A new object, as pickle makes it; `brought` only has to come first."""
    return kind.__new__(kind, *arguments)


def given(brought: None, thing: Any) -> Any:
    """The thing itself; `brought` only has to come first."""
    return thing


def kept(name: str, archive: bytes) -> Path:
    """The zip on this machine, written by whoever needs it first.

    What is in it is executed, so it has to lie where nobody else can write.
    """
    place = Path(tempfile.gettempdir()) / f"headrace-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o077:
        raise PermissionError(
            f"others may write to {place}, so headrace is not loaded from there:"
            " remove it, or start Spark with another TMPDIR"
        )
    path = place / name
    if not path.is_file():
        handle, unfinished = tempfile.mkstemp(dir=place)
        with os.fdopen(handle, "wb") as file:
            _write_compiled(archive, file, path)
        os.replace(unfinished, path)
    return path


def _write_compiled(archive: bytes, file: BinaryIO, path: Path) -> None:
    """Write the zip with its modules compiled, which takes 0.7 s.

    From a zip without, every process would compile what it imports: 0.2 s and more for each that
    plans, commits a batch of the sink, or reads a stream.
    """
    is_unchecked = 1  # The content of what has this name never changes.
    header = MAGIC_NUMBER + is_unchecked.to_bytes(4, "little") + bytes(8)
    with zipfile.ZipFile(io.BytesIO(archive)) as sent, zipfile.ZipFile(file, "w") as written:
        for name in sent.namelist():
            content = sent.read(name)
            written.writestr(name, content)
            if name.endswith(".py"):
                code = compile(content, str(path / name), "exec", dont_inherit=True)
                written.writestr(f"{name}c", header + marshal.dumps(code))


def _has_loaded(name: str) -> bool:
    """Whether headrace was imported here from that zip, or is what the zip was made of."""
    carrying = sys.modules.get("headrace.spark.carrying")
    if carrying is not None and getattr(carrying, "carried_name", lambda: None)() == name:
        return True
    package = sys.modules.get(PACKAGES[0])
    return package is not None and name in Path(package.__file__ or "").parts


def _forget() -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] in PACKAGES]:
        del sys.modules[module]
