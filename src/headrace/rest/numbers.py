"""Whole numbers in requests: their types, and digits alone in texts."""

from typing import Annotated

from msgspec import Meta

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
_DIGITS_MAX = 19
"""The digits of the largest number of 64 bits."""

Int32 = Annotated[int, Meta(ge=0, le=INT32_MAX)]
Count = Annotated[int, Meta(ge=1, le=INT32_MAX)]
Int64 = Annotated[int, Meta(ge=0, le=INT64_MAX)]


def whole(text: str, low: int = 0, high: int = INT32_MAX) -> int | None:
    """Return the number in a text; None unless it is digits alone and within the bounds."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        return None
    number = int(text)
    return number if low <= number <= high else None
