"""Reports values that do not fit: the reason, and the path of the field."""

from typing import Any, NoReturn

from headrace.serdes.payload_errors import UnfitValue


class Unfit(Exception):
    """A value does not fit; the path is completed on the way out."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def within(self, step: str) -> "Unfit":
        """Add one outer step to the path."""
        self.path.append(step)
        return self

    def as_error(self) -> UnfitValue:
        where = "".join(reversed(self.path)).lstrip(".")
        return UnfitValue(f"{where}: {self.reason}" if where else self.reason)


def refuse(value: Any, expected: str) -> NoReturn:
    if value is None:
        raise Unfit(f"null is not {expected}; only a union with null takes it")
    raise Unfit(f"{shown(value)} is not {expected}")


def shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:100]}..."
