"""Files and servers that logins depend on, watched in the background: users, and keys of tokens.

A source that becomes invalid or unreachable keeps its last valid content. The login of a client
never waits for one.
"""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from headrace.errors import HeadraceError, InvalidConfig
from headrace.security.sasl.jwks import Backoff, KeySet
from headrace.security.sasl.users_file import Stamp, UsersFile

if TYPE_CHECKING:
    from headrace.runtime.tasks import Tasks

_log = logging.getLogger(__name__)

_LOOK_INTERVAL_MS = 1000
_DOCUMENT_BYTES_MAX = 1 << 20
_FETCH_TIMEOUT_S = 10.0
_SCHEMES = ("http", "https", "file")


class WatchedUsers:
    """The users of a file, read again when the file changes."""

    def __init__(self, path: str) -> None:
        self._path = path
        try:
            self._file = UsersFile(self._stamp, self._read, self._failed)
        except OSError as error:
            raise InvalidConfig(
                f"headrace.sasl.plain.users.file: {path}: {error.strerror}"
            ) from error
        except UnicodeDecodeError as error:
            raise InvalidConfig(
                f"headrace.sasl.plain.users.file: {path} is not UTF-8 text"
            ) from error

    @property
    def users(self) -> Mapping[str, str]:
        return self._file.users

    def watch(self, tasks: "Tasks") -> None:
        tasks.every(lambda: _LOOK_INTERVAL_MS, self._look, f"users in {self._path}")

    def _look(self) -> None:
        if self._file.refresh():
            fields = {"path": self._path, "users": len(self._file.users)}
            _log.info("file of users read again", extra=fields)

    def _stamp(self) -> Stamp | None:
        return _stamp(self._path)

    def _read(self) -> str:
        with open(self._path, encoding="utf-8") as file:
            return file.read()

    def _failed(self, reason: str) -> None:
        fields = {"path": self._path, "error": reason}
        _log.error("file of users not usable, the users before it stay", extra=fields)


class WatchedKeys:
    """The keys at an address, fetched at intervals, and early if a key is missing."""

    def __init__(self, url: str, *, refresh_ms: int, backoff_ms: int, backoff_max_ms: int) -> None:
        scheme = urlsplit(url).scheme
        if scheme not in _SCHEMES:
            raise InvalidConfig(
                f"sasl.oauthbearer.jwks.endpoint.url must begin with one of {', '.join(_SCHEMES)}"
            )
        self.keys = KeySet()
        self._url = url
        self._is_file = scheme == "file"
        self._refresh_ms = refresh_ms
        self._backoff_ms = backoff_ms
        self._backoff_max_ms = backoff_max_ms
        self._early: asyncio.Event | None = None

    def watch(self, tasks: "Tasks") -> None:
        tasks.start(self._run(tasks), "keys of tokens")

    def missing(self, key_id: str | None, now_ms: int) -> None:
        """Fetch the keys early because a token names another one; bounded in number."""
        if self._early is not None and self.keys.asks_for_refresh(key_id, now_ms):
            self._early.set()

    async def _run(self, tasks: "Tasks") -> None:
        self._early = asyncio.Event()
        backoff = Backoff(self._backoff_ms, self._backoff_max_ms)
        seen: Stamp | None = None
        while True:
            self._early.clear()
            stamp = _stamp(self._path) if self._is_file else None
            if stamp is None or stamp != seen:
                wait_ms = await self._fetch(tasks, backoff)
                seen = stamp if not backoff.failures else None
            else:
                wait_ms = _LOOK_INTERVAL_MS
            await _elapsed(self._early, wait_ms)

    @property
    def _path(self) -> str:
        return unquote(urlsplit(self._url).path)

    async def _fetch(self, tasks: "Tasks", backoff: Backoff) -> int:
        """Fetch the keys; return the wait before the next attempt."""
        try:
            self.keys.replace(await tasks.in_thread(_read_document, self._url))
        except (OSError, ValueError, HeadraceError) as error:
            wait_ms = backoff.failed()
            fields = {"url": _shown(self._url), "error": str(error), "retry_ms": wait_ms}
            _log.warning("keys of tokens not fetched", extra=fields)
            return wait_ms
        backoff.failures = 0
        _log.info(
            "keys of tokens fetched", extra={"url": _shown(self._url), "keys": len(self.keys)}
        )
        return _LOOK_INTERVAL_MS if self._is_file else self._refresh_ms


def _read_document(url: str) -> bytes:
    """Fetch a document; a server that sends too much, or nothing, fails."""
    import urllib.request  # Large, and only for tokens.

    request = urllib.request.Request(url, headers={"Accept": "application/json"})
    with urllib.request.urlopen(request, timeout=_FETCH_TIMEOUT_S) as response:
        content: bytes = response.read(_DOCUMENT_BYTES_MAX + 1)
    if len(content) > _DOCUMENT_BYTES_MAX:
        raise ValueError(f"the document has more than {_DOCUMENT_BYTES_MAX} bytes")
    return content


def _shown(url: str) -> str:
    """Return an address without a password or a query, which may be secrets."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.hostname or ''}{parts.path}"


async def _elapsed(early: asyncio.Event, wait_ms: int) -> None:
    """Wait for a time or an event."""
    try:
        async with asyncio.timeout(wait_ms / 1000):
            await early.wait()
    except TimeoutError:
        return


def _stamp(path: str) -> Stamp | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns
