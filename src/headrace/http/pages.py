"""Pages for browsers: static files from memory, and HTML under a strict content security policy.

A page may load scripts, styles, images and data from its own server only; inline scripts, such as
an import map, are allowed by their hash. A policy that forbids inline code stops injected code.
"""

import base64
import gzip
import hashlib
import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from headrace.http.operations import Operation

_GZIP_BYTES_MIN = 1_024
_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "font-src": "'self'",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}
_SAFE = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}


def html_page(html: str, *, inline_scripts: Sequence[str] = ()) -> Response:
    """Answer with a page; `inline_scripts` are the contents of its inline script elements."""
    policy = dict(_POLICY)
    hashes = (hashlib.sha256(script.encode()).digest() for script in inline_scripts)
    for digest in hashes:
        policy["script-src"] += f" 'sha256-{base64.b64encode(digest).decode()}'"
    value = "; ".join(f"{name} {sources}" for name, sources in policy.items())
    headers = {"Content-Security-Policy": value, "Cache-Control": "no-store", **_SAFE}
    return Response(html, media_type="text/html", headers=headers)


class StaticFiles:
    """The files of a folder, read once at the start.

    Their paths contain a digest of all files, so browsers may cache an answer for good: a new
    release has new paths. Only the paths of these files exist, so no request can leave the folder.
    """

    def __init__(self, folder: Path, path: str = "/static") -> None:
        found = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(folder.rglob("*"))
            if file.is_file()
        }
        build = hashlib.sha256()
        for name, content in found.items():
            build.update(b"%d:%b%d:" % (len(name), name.encode(), len(content)) + content)
        self._path = f"{path}/{build.hexdigest()[:12]}"
        self._files = {name: _File.of(name, content) for name, content in found.items()}

    def url(self, name: str) -> str:
        """Return the path of a file, given its path within the folder."""
        assert name in self._files, f"there is no static file {name}"
        return f"{self._path}/{name}"

    def operations(self) -> list[Operation]:
        return [
            Operation(
                "GET",
                f"{self._path}/{name}",
                file.answer,
                "A static file.",
                label="GET static file",
                is_described=False,
            )
            for name, file in self._files.items()
        ]


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    compressed: bytes | None
    """None if compression saves nothing."""
    media_type: str
    etag: str

    @classmethod
    def of(cls, name: str, content: bytes) -> "_File":
        compressed = gzip.compress(content, mtime=0) if len(content) >= _GZIP_BYTES_MIN else content
        return cls(
            content,
            compressed if len(compressed) < len(content) else None,
            mimetypes.guess_type(name)[0] or "application/octet-stream",
            hashlib.sha256(content).hexdigest()[:16],
        )

    async def answer(self, request: Request) -> Response:
        is_compressed = self.compressed is not None and _accepts_gzip(request)
        etag = f'"{self.etag}{"-gzip" if is_compressed else ""}"'
        headers = {
            "ETag": etag,
            "Cache-Control": "public, max-age=31536000, immutable",
            "Vary": "Accept-Encoding",
            **_SAFE,
        }
        known = (one.strip() for one in request.headers.get("if-none-match", "").split(","))
        if any(one in (etag, f"W/{etag}", "*") for one in known):
            return Response(status_code=304, headers=headers)
        if is_compressed:
            headers["Content-Encoding"] = "gzip"
        content = self.compressed if is_compressed else self.content
        return Response(content, media_type=self.media_type, headers=headers)


def _accepts_gzip(request: Request) -> bool:
    for part in request.headers.get("accept-encoding", "").split(","):
        name, _, quality = part.replace(" ", "").lower().partition(";q=")
        if name in ("gzip", "*"):
            return quality.strip("0.") != "" or not quality
    return False
