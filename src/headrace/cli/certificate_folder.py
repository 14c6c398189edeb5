"""A folder with a certificate authority and the certificates that it has signed.

`ca.crt` is for everyone who connects. Each certificate has three files: NAME.crt, NAME.key, and
NAME.pem with both, as brokers read it. Keys are readable by their owner only.
"""

import datetime as dt
import os
from collections.abc import Sequence

import msgspec

from headrace.errors import HeadraceError
from headrace.runtime import files
from headrace.security.certificates import (
    CertificateFacts,
    Issued,
    make_authority,
    make_certificate,
    read_certificates,
)

AUTHORITY = "ca"
AUTHORITY_DAYS = 3650
RENEWED_DAYS = 30
"""A certificate with fewer days left is made again."""

_MODE = 0o700


class Made(msgspec.Struct, frozen=True):
    """A certificate of a folder, and the reason why it was made if it was."""

    name: str
    path: str
    facts: CertificateFacts
    reason: str | None = None


class CertificateFolder:
    """Makes missing files and keeps valid ones."""

    def __init__(self, path: str, now: dt.datetime) -> None:
        self.path = path
        self._now = now

    @property
    def authority_path(self) -> str:
        return self.file(AUTHORITY, "crt")

    def file(self, name: str, kind: str) -> str:
        """Return the path of a file: kind is crt, key or pem."""
        return os.path.join(self.path, f"{_file_name(name)}.{kind}")

    def authority(self, title: str) -> Made:
        """Make the authority unless the folder has one."""
        if self._has(AUTHORITY):
            return Made(AUTHORITY, self.authority_path, self._facts(AUTHORITY))
        os.makedirs(self.path, mode=_MODE, exist_ok=True)
        self._write(AUTHORITY, make_authority(title, self._now, AUTHORITY_DAYS))
        return Made(AUTHORITY, self.authority_path, self._facts(AUTHORITY), "new")

    def certificate(
        self, name: str, hosts: Sequence[str], days: int, *, renew: bool = False
    ) -> Made:
        """Make a certificate unless the folder has a valid one for these hosts."""
        if name == AUTHORITY:
            raise HeadraceError(f"{AUTHORITY} is the name of the authority; choose another one")
        reason = "renewed on request" if renew and self._has(name) else self._reason(name, hosts)
        if reason is not None:
            self._write(name, make_certificate(self._signer(), name, hosts, self._now, days))
        return Made(name, self.file(name, "pem"), self._facts(name), reason)

    def _reason(self, name: str, hosts: Sequence[str]) -> str | None:
        """Return why a certificate has to be made; None if the one of the folder will do."""
        if not self._has(name):
            return "new"
        facts = self._facts(name)
        if facts.days_left(self._now) < RENEWED_DAYS:
            return f"renewed: the old one expires on {facts.not_after:%Y-%m-%d}"
        if missing := [host for host in hosts if host not in facts.names]:
            return f"renewed for {', '.join(missing)}"
        return None

    def _signer(self) -> Issued:
        return Issued(self._read(AUTHORITY, "crt").decode(), self._read(AUTHORITY, "key").decode())

    def _facts(self, name: str) -> CertificateFacts:
        return read_certificates(self._read(name, "crt"))[0]

    def _has(self, name: str) -> bool:
        return os.path.exists(self.file(name, "crt")) and os.path.exists(self.file(name, "key"))

    def _read(self, name: str, kind: str) -> bytes:
        return files.read(self.file(name, kind))

    def _write(self, name: str, issued: Issued) -> None:
        """Write the certificate last: without it the next start makes all files again."""
        files.replace_secret(self.file(name, "key"), issued.key.encode())
        if name != AUTHORITY:
            files.replace_secret(self.file(name, "pem"), issued.bundle.encode())
        files.replace_file(self.file(name, "crt"), issued.certificate.encode())


def _file_name(name: str) -> str:
    """Return a file's name for a host or a user, which may contain any character."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise HeadraceError(f"{name!r} cannot be the name of a file")
    return name.replace(":", "_").replace("*", "_")
