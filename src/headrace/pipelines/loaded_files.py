"""The files that a pipeline was loaded from, and their fingerprint.

Every commit has the fingerprint, so it covers no value of the environment: pipeline.toml counts as
written. The folder's path and the line ends of a checkout do not change it.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

_DIGITS = 12
"""As many as git uses for a large repository, so that fingerprints do not collide."""
_INSTALLED = "site-packages"


class LoadedFiles:
    """Files by their path in the folder, each with the content that was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[str, bytes] = {}

    def text(self, path: Path) -> str:
        """Read a file of the folder; later changes of the file do not count."""
        text = path.read_text(encoding="utf-8")
        self.add(self._name(path), text)
        return text

    def add(self, name: str, text: str) -> None:
        """Add a text that was read elsewhere."""
        self._contents[name] = text.encode()

    def add_schema(self, section: str, path: Path) -> None:
        """Add a schema's file under its section; the file may be outside of the folder."""
        self._contents[f"{section}.schema"] = _content(path)

    def add_imported(self, paths: Iterable[Path]) -> None:
        """Add modules of the folder that its files have imported.

        A virtual environment inside the folder is not part of the pipeline.
        """
        for path in paths:
            name = self._name(path)
            if name not in self._contents and _INSTALLED not in path.parts:
                self._contents[name] = _content(path)

    def fingerprint(self) -> str:
        """Return a text that changes with the files, independent of the order of reading."""
        digest = hashlib.sha256()
        for name, content in sorted(self._contents.items()):
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
        return digest.hexdigest()[:_DIGITS]

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _content(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")
