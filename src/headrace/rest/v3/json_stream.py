"""Several JSON values in one body, one after the other: cut apart as they arrive."""

import re

from headrace.rest.errors import bad_request

_SIGNS = re.compile(rb'["{}\[\]]')
_SIGNS_OR_BLANK = re.compile(rb'["{}\[\] \t\r\n]')
_STRING_END = re.compile(rb'["\\]')
_NO_BLANK = re.compile(rb"[^ \t\r\n]")
_BLANKS = b" \t\r\n"
_BARE_BYTES_MAX = 4096
"""How long a value outside of all brackets may be: it is no record, so it is only to be told."""


class JsonSplitter:
    """Finds where values end; whether they are valid is for who decodes them.

    Blanks between values mean nothing. A value that is neither object nor array ends at the next
    blank, so that whatever else is sent comes to the decoder, too, and is refused by it. No byte
    is looked at twice, however the body is cut.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._begin = 0
        self._scanned = 0
        self._depth = 0
        self._is_in_string = False

    @property
    def size(self) -> int:
        """How many bytes of an unfinished value are held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """The values that are whole now; raises for a bare one that is too long."""
        self._buffer += data
        values = []
        while (end := self._end()) is not None:
            values.append(bytes(self._buffer[self._begin : end]))
            self._begin = self._scanned = end
        # Once for all values, as what is left moves to the front.
        del self._buffer[: self._begin]
        self._scanned -= self._begin
        self._begin = 0
        return values

    def finish(self) -> list[bytes]:
        """What is left at the end of the body: nothing, or a value that is cut off or bare."""
        rest = bytes(self._buffer).strip(_BLANKS)
        self._buffer.clear()
        return [rest] if rest else []

    def _end(self) -> int | None:
        """Where the first value of the buffer ends, if it does."""
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
        """Only before a value; within one, `_scanned` is behind its begin."""
        if self._scanned == self._begin:
            found = _NO_BLANK.search(self._buffer, self._begin)
            self._begin = len(self._buffer) if found is None else found.start()
            self._scanned = self._begin

    def _check_bare(self, limit: int) -> None:
        if limit - self._begin > _BARE_BYTES_MAX:
            raise bad_request(
                f"a value of more than {_BARE_BYTES_MAX:,} bytes is no JSON object;"
                " each record has to be one"
            )

    def _leave_string(self) -> bool:
        while (found := _STRING_END.search(self._buffer, self._scanned)) is not None:
            if found[0] == b'"':
                self._is_in_string = False
                self._scanned = found.end()
                return True
            if found.end() >= len(self._buffer):
                self._scanned = found.start()  # What is escaped comes with the next bytes.
                return False
            self._scanned = found.end() + 1
        self._scanned = len(self._buffer)
        return False
