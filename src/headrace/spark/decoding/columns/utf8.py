"""Payloads that are not UTF-8, found before any string is taken from them."""

from typing import Any

import pyarrow as pa

from headrace.spark.decoding.columns.failures import NOT_UTF8, Failures
from headrace.spark.decoding.columns.spans import VOID, Spans


def note_bad_utf8(payloads: Any, roots: Spans, failures: Failures) -> None:
    """Void the payloads that are not UTF-8, before any string is taken from them."""
    try:
        payloads.cast(pa.string())
    except pa.ArrowInvalid:
        for index in range(len(roots)):
            if roots.kinds[index] != VOID and not is_utf8(roots.text(index)):
                failures.note(NOT_UTF8, roots, index, 0)
                roots.kinds[index] = VOID


def is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
