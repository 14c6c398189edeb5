"""Whole numbers as callers write them: digits alone, and never more of them than a number has."""

INT32_MAX = (1 << 31) - 1
_DIGITS_MAX = 19
"""As many as the largest number of 64 bits has."""


def whole(text: str, low: int = 0, high: int = INT32_MAX) -> int | None:
    """The number that a text is; None for what is none, or is not from `low` to `high`."""
    if not (text.isascii() and text.isdecimal() and len(text) <= _DIGITS_MAX):
        return None
    number = int(text)
    return number if low <= number <= high else None
