"""Several JSON values in one body, one after the other: cut apart as they arrive."""

import re

_SIGNS = re.compile(rb'["{}\[\]]')
_STRING_END = re.compile(rb'["\\]')
_BLANKS = b" \t\r\n"


class JsonSplitter:
    """Finds where values end; whether they are valid is for who decodes them.

    Blanks between values mean nothing. A value that is neither object nor array ends at the next
    blank, so that whatever else is sent comes to the decoder, too, and is refused by it.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0
        self._depth = 0
        self._is_in_string = False

    @property
    def size(self) -> int:
        """How many bytes of an unfinished value are held."""
        return len(self._buffer)

    def feed(self, data: bytes) -> list[bytes]:
        """The values that are whole now."""
        self._buffer += data
        values = []
        while (end := self._end()) is not None:
            values.append(bytes(self._buffer[:end]))
            del self._buffer[:end]
            self._scanned = 0
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
            found = _SIGNS.search(self._buffer, self._scanned)
            if self._depth == 0 and (bare := self._bare_end(found)) is not None:
                return bare
            if found is None:
                self._scanned = len(self._buffer) if self._depth else self._scanned
                return None
            self._scanned = found.end()
            match found[0]:
                case b'"':
                    self._is_in_string = True
                case b"{" | b"[":
                    self._depth += 1
                case _:
                    self._depth -= 1
                    if self._depth <= 0:
                        self._depth = 0
                        return self._scanned

    def _skip_blanks(self) -> None:
        if self._depth == 0 and not self._is_in_string and self._scanned == 0:
            kept = self._buffer.lstrip(_BLANKS)
            if len(kept) != len(self._buffer):
                self._buffer = kept

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

    def _bare_end(self, found: "re.Match[bytes] | None") -> int | None:
        """The end of a value outside of all brackets, such as a number: before the next blank."""
        limit = len(self._buffer) if found is None else found.start()
        for position in range(self._scanned, limit):
            if self._buffer[position] in _BLANKS:
                return position
        return None
