"""A zip of headrace, sent to executors and to a Spark Connect server.

Workers need a Python with the packages of `headrace[spark]` (`headrace spark doctor` lists them),
but not headrace itself: the zip makes a cluster run the driver's version.
"""

import atexit
import hashlib
import io
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from headrace.spark.launching.package_loader import PACKAGES

NOT_SENT = frozenset(
    {
        *("broker", "capture", "cli", "controller", "coordination", "groups", "http", "metadata"),
        *("peers", "quorum", "raft", "registry", "replication", "rest", "serving", "shares"),
        *("storage", "testing", "transactions"),
    }
)
"""Parts of headrace that no process of Spark uses."""

_DIGEST_LENGTH = 16


def temporary_zip() -> Path:
    """Write the zip and keep it until this process ends: executors fetch it when they start."""
    place = Path(tempfile.mkdtemp(prefix="headrace-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    return package_zip(place)


@contextmanager
def on_python_path(*archives: Path) -> Iterator[None]:
    """Put zips on the PYTHONPATH of a JVM that is started in this context, and of its processes.

    The processes of streaming sources run on the driver's machine with the workers' Python, and get
    none of the files that Spark sends to executors.
    """
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([*map(str, archives), *([before] if before else [])])
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def package_zip(directory: Path) -> Path:
    """Write a zip of the packages as installed here; its name identifies its content."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, path in sorted(_files()):
            archive.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    content = buffer.getvalue()
    digest = hashlib.sha256(content).hexdigest()[:_DIGEST_LENGTH]
    target = directory / f"headrace-{digest}.zip"
    target.write_bytes(content)
    return target


def digest_in_name(name: str) -> str | None:
    """Return the digest of the content from the name of such a zip; None for any other name."""
    found = re.fullmatch(rf"headrace-([0-9a-f]{{{_DIGEST_LENGTH}}})\.zip", name)
    return None if found is None else found[1]


def _files() -> Iterator[tuple[str, Path]]:
    for package in PACKAGES:
        spec = find_spec(package)
        assert spec is not None, f"{package} is a part of headrace"
        assert spec.origin is not None, f"{package} has an __init__.py"
        root = Path(spec.origin).parent
        for path in root.rglob("*"):
            inside = path.relative_to(root)
            is_sent = inside.parts[0] not in NOT_SENT and "__pycache__" not in inside.parts
            if is_sent and path.is_file():
                yield f"{package}/{inside.as_posix()}", path
