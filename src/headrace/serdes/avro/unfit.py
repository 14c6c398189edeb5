"""How a value that does not fit is told of: what is wrong with it, and at which field."""

from typing import Any, NoReturn

from headrace.serdes.avro.errors import UnfitValue


class Unfit(Exception):
    """A value that does not fit, on its way out to where its whole path is known."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []

    def within(self, step: str) -> "Unfit":
        """The same, seen from one step further out."""
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
