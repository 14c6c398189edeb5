"""The source of a Python function under construction, and its compilation."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Any

_STRUCTS: dict[str, Struct] = {}


def struct_for(codes: str) -> Struct:
    """The big-endian `struct.Struct` of a run of codes; equal runs share one."""
    found = _STRUCTS.get(codes)
    if found is None:
        found = _STRUCTS[codes] = Struct(">" + codes)
    return found


class Source:
    """Collects the body of one function; values that it needs become its globals."""

    def __init__(self, signature: str, names: dict[str, Any]) -> None:
        self.lines = [f"def {signature}:"]
        self.names = dict(names)
        self.depth = 1
        self.count = 0

    def add(self, line: str) -> None:
        self.lines.append("    " * self.depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """The lines added within are indented under `head`."""
        self.add(head)
        self.depth += 1
        yield
        self.depth -= 1

    def fresh(self, stem: str) -> str:
        """Return a new name within the function."""
        self.count += 1
        return f"{stem}_{self.count}"

    def constant(self, stem: str, value: object) -> str:
        """Return the name of a global value."""
        name = self.fresh(stem)
        self.names[name] = value
        return name

    def literal(self, value: object) -> str:
        """An expression for a field's default: written out when it is short and immutable."""
        if value is None or isinstance(value, (bool, int, float, str)) or value == []:
            return repr(value)
        return self.constant("default", value)

    def function(self, title: str) -> Callable[..., Any]:
        """Compile; tracebacks show `title` as the file."""
        source = "\n".join(self.lines)
        exec(compile(source, f"<{title}>", "exec"), self.names)
        name = self.lines[0].split()[1].partition("(")[0]
        function: Callable[..., Any] = self.names[name]
        return function
