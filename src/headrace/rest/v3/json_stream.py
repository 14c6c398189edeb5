"""Splits a body of consecutive JSON values as it arrives."""

import re

from headrace.rest.errors import bad_request

_SIGNS = re.compile(rb'["{}\[\]]')
_SIGNS_OR_BLANK = re.compile(rb'["{}\[\] \t\r\n]')
_STRING_END = re.compile(rb'["\\]')
_NO_BLANK = re.compile(rb"[^ \t\r\n]")
_BLANKS = b" \t\r\n"
_BARE_BYTES_MAX = 4096
"""Maximum size of a value other than an object or array, which is reported as an error."""


class JsonSplitter:
    """Finds the ends of values; decoders check whether they are valid.

    White space between values has no meaning. A value other than an object or array ends at the
    next white space, so that the decoder receives and rejects it. No byte is scanned twice.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._scanned = 0
        self._depth = 0
        self._is_in_string = False

    @property
    def size(self) -> int:
        """Size of the buffered part of an incomplete value."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """Add bytes and return the values that are complete now."""
        self._buffer += data
        values = []
        while (end := self._end()) is not None:
            values.append(bytes(self._buffer[self._begin : end]))
            self._begin = self._scanned = end
        # Once for all values, because it moves the remaining bytes.
        del self._buffer[: self._begin]
        self._scanned -= self._begin
        self._begin = 0
        return values

    def finish(self) -> list[bytes]:
        """Return the truncated or bare value at the end of the body, if any."""
        rest = bytes(self._buffer).strip(_BLANKS)
        self._buffer.clear()
        return [rest] if rest else []

    def _end(self) -> int | None:
        """Return the end of the first value in the buffer; None if it is incomplete."""
        self._skip_blanks()
        while True:
            if self._is_in_string:
                if not self._leave_string():
                    return None
                continue
            signs = _SIGNS if self._depth else _SIGNS_OR_BLANK
            found = signs.search(self._buffer, self._scanned)
            if self._depth == 0:
                self._check_bare(len(self._buffer) if found is None else found.start())
            if found is None:
                self._scanned = len(self._buffer)
                return None
            self._scanned = found.end()
            match found[0]:
                case b'"':
                    self._is_in_string = True
                case b"{" | b"[":
                    self._depth += 1
                case b"}" | b"]":
                    self._depth = max(0, self._depth - 1)
                    if self._depth == 0:
                        return self._scanned
                case _:
                    return found.start()

    def _skip_blanks(self) -> None:
        """Skip white space before a value; within one, `_scanned` is after its begin."""
        if self._scanned == self._begin:
            found = _NO_BLANK.search(self._buffer, self._begin)
            self._begin = len(self._buffer) if found is None else found.start()
            self._scanned = self._begin

    def _check_bare(self, limit: int) -> None:
        if limit - self._begin > _BARE_BYTES_MAX:
            raise bad_request(
                f"a value of more than {_BARE_BYTES_MAX:,} bytes is not a JSON object;"
                " each record must be one"
            )

    def _leave_string(self) -> bool:
        while (found := _STRING_END.search(self._buffer, self._scanned)) is not None:
            if found[0] == b'"':
                self._is_in_string = False
                self._scanned = found.end()
                return True
            if found.end() >= len(self._buffer):
                self._scanned = found.start()  # The escaped byte is not received yet.
                return False
            self._scanned = found.end() + 1
        self._scanned = len(self._buffer)
        return False
