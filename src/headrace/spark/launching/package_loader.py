"""Functions that load headrace from a pickle, before the rest of the pickle is unpickled.

They are pickled by value (`pickled_package`): the Python that runs them may have no headrace, or
another version. So they use only the standard library and each other.
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


def load_package(name: str, archive: bytes) -> None:
    """Make headrace importable from the zip; its name identifies its content.

    Pickles that leave this process contain the zip in turn. A process that has loaded another
    version, such as a worker that serves several clients, drops those modules. That is safe: Spark
    gives a process one task at a time, so nothing uses them.
    """
    if not _has_loaded(name):
        path = str(saved_zip(name, archive))
        _drop_modules()
        sys.path[:] = [path, *(entry for entry in sys.path if entry != path)]
        importlib.invalidate_caches()
    module = importlib.import_module("headrace.spark.launching.pickled_package")
    module.attach_package(name, archive)


def new_object(loaded: None, kind: Any, *arguments: Any) -> Any:
    """Create an object as pickle does; unpickling `loaded` has loaded the package before."""
    return kind.__new__(kind, *arguments)


def same_object(loaded: None, thing: Any) -> Any:
    """Return the thing itself; unpickling `loaded` has loaded the package before."""
    return thing


def saved_zip(name: str, archive: bytes) -> Path:
    """Return the zip's path on this machine; the first process that needs it writes it.

    Its content is executed, so it must be in a directory that other users cannot write to.
    """
    place = Path(tempfile.gettempdir()) / f"headrace-{os.getuid()}"
    place.mkdir(mode=0o700, exist_ok=True)
    status = place.lstat()
    is_ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    if not is_ours or status.st_mode & 0o077:
        raise PermissionError(
            f"other users may write to {place}, so headrace is not loaded from it:"
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
    """Write the zip with compiled modules, which takes 0.7 s.

    From a zip without them every process compiles what it imports: 0.2 s and more for each process
    that plans, commits a batch of the sink, or reads a stream.
    """
    is_unchecked = 1  # The content behind a name never changes.
    header = MAGIC_NUMBER + is_unchecked.to_bytes(4, "little") + bytes(8)
    with zipfile.ZipFile(io.BytesIO(archive)) as sent, zipfile.ZipFile(file, "w") as written:
        for name in sent.namelist():
            content = sent.read(name)
            written.writestr(name, content)
            if name.endswith(".py"):
                code = compile(content, str(path / name), "exec", dont_inherit=True)
                written.writestr(f"{name}c", header + marshal.dumps(code))


def _has_loaded(name: str) -> bool:
    """Return whether headrace was imported from that zip, or is the source of the zip."""
    module = sys.modules.get("headrace.spark.launching.pickled_package")
    if module is not None and module.attached_name() == name:
        return True
    package = sys.modules.get(PACKAGES[0])
    return package is not None and name in Path(package.__file__ or "").parts


def _drop_modules() -> None:
    for module in [one for one in sys.modules if one.partition(".")[0] in PACKAGES]:
        del sys.modules[module]
