"""The MD5 of a schema and its contract, as Confluent computes it.

Equal fingerprints mean one id within a context. As a UUID the fingerprint is the schema's `guid`,
which is the same in every registry.
"""

import hashlib
import struct
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from headrace.serdes.contracts import Metadata, Reference, Rule, RuleSet

if TYPE_CHECKING:
    from hashlib import _Hash

_VERSION = struct.Struct(">i")
_PRESENT = b"\x01"
"""Distinguishes empty metadata and rules from missing ones."""


def fingerprint(
    text: str,
    references: Sequence[Reference] = (),
    metadata: Metadata | None = None,
    rules: RuleSet | None = None,
) -> bytes:
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False)
    for reference in references:
        _add_texts(digest, (reference.name, reference.subject))
        if reference.version is not None:
            digest.update(_VERSION.pack(reference.version))
    if metadata is not None:
        digest.update(_PRESENT)
        _add_metadata(digest, metadata.sorted())
    if rules is not None:
        digest.update(_PRESENT)
        for rule in rules.sorted().rules:
            _add_rule(digest, rule)
        _add_texts(digest, (rules.enable_at,))
    return digest.digest()


def stored_fingerprint(md5: str | None) -> bytes | None:
    """Return the stored fingerprint, which counts if parts of the schema are stored encrypted."""
    try:
        return b64decode(md5, validate=True) if md5 else None
    except Base64Error:
        return None  # Not written by Confluent; compute the fingerprint instead.


def guid(fingerprint: bytes) -> str:
    return str(UUID(bytes=fingerprint))


def fingerprint_of_guid(text: str) -> bytes | None:
    """Return the fingerprint of a guid, None if the text is not a guid."""
    try:
        return UUID(text).bytes
    except ValueError:
        return None


def _add_metadata(digest: "_Hash", metadata: Metadata) -> None:
    for path, names in (metadata.tags or {}).items():
        _add_texts(digest, (path, *names))
    for name, value in (metadata.properties or {}).items():
        _add_texts(digest, (name, value))
    _add_texts(digest, metadata.sensitive or ())


def _add_rule(digest: "_Hash", rule: Rule) -> None:
    _add_texts(digest, (rule.name, rule.doc, rule.kind, rule.mode, rule.type))
    _add_texts(digest, rule.tags or ())
    for name, value in (rule.params or {}).items():
        _add_texts(digest, (name, value))
    _add_texts(digest, (rule.expr, rule.on_success, rule.on_failure))
    if rule.disabled:
        digest.update(_PRESENT)


def _add_texts(digest: "_Hash", texts: Sequence[str | None]) -> None:
    for text in texts:
        if text is not None:
            digest.update(text.encode("utf-8", "surrogatepass"))
