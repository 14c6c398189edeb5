"""The files that a pipeline was loaded from, and a short text that tells their states apart.

It goes into every commit, so it holds no value of the environment: pipeline.toml counts as it is
written. It is the same wherever the folder is, also where a checkout has other ends of lines.
"""

import hashlib
from collections.abc import Iterable
from pathlib import Path

_DIGITS = 12
"""As many as git takes for a large repository: no two states of a folder will share them."""
_INSTALLED = "site-packages"


class LoadedFiles:
    """Files by the names that the folder knows them by, each as it was when it was read."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._contents: dict[str, bytes] = {}

    def text(self, path: Path) -> str:
        """Read a file of the folder; what is read is what counts, whatever becomes of the file."""
        text = path.read_text(encoding="utf-8")
        self.add(self._name(path), text)
        return text

    def add(self, name: str, text: str) -> None:
        """Count a text that was read elsewhere."""
        self._contents[name] = text.encode()

    def add_schema(self, section: str, path: Path) -> None:
        """Count a schema's file by who names it: it may be outside of the folder."""
        self._contents[f"{section}.schema"] = _content(path)

    def add_imported(self, paths: Iterable[Path]) -> None:
        """Count what files of the folder have imported out of it.

        A virtual environment may be in the folder too, and is no part of the pipeline.
        """
        for path in paths:
            name = self._name(path)
            if name not in self._contents and _INSTALLED not in path.parts:
                self._contents[name] = _content(path)

    def fingerprint(self) -> str:
        """Another text for other files, whatever the order in which they were read."""
        digest = hashlib.sha256()
        for name, content in sorted(self._contents.items()):
            digest.update(f"{name}\0{len(content)}\0".encode("utf-8", "surrogateescape"))
            digest.update(content)
        return digest.hexdigest()[:_DIGITS]

    def _name(self, path: Path) -> str:
        return path.relative_to(self._folder).as_posix()


def _content(path: Path) -> bytes:
    return path.read_bytes().replace(b"\r\n", b"\n")
