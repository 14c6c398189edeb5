"""Find the operation of a path: a tree of path segments.

Names of subjects, groups and transactions may contain slashes, written `%2F`, so a path is split
into segments before these are decoded. A literal segment wins over a variable one, and a variable
with literal text around it, as in `{id}:terminate`, wins over a bare one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from urllib.parse import unquote

T = TypeVar("T")

Found = dict[str, tuple[T, dict[str, str]]]
"""The targets of a path by method, each with the values of its variable segments."""


def path_segments(raw_path: bytes) -> list[str]:
    """Split and decode a path; slashes at its ends do not count."""
    return [unquote(one) for one in raw_path.decode("latin-1").strip("/").split("/")]


def allowed_methods(found: Iterable[str]) -> str:
    """Return the value of the Allow header for a path with operations of these methods."""
    methods = {*found, "OPTIONS"}
    if "GET" in methods:
        methods.add("HEAD")
    return ", ".join(sorted(methods))


@dataclass(slots=True)
class _Branch(Generic[T]):
    literals: "dict[str, _Branch[T]]" = field(default_factory=dict)
    variables: "dict[tuple[str, str], _Branch[T]]" = field(default_factory=dict)
    """By the literal text before and after the variable, the longest first."""
    bare: "_Branch[T] | None" = None
    """The branch of a variable without literal text, if that is the only variable."""
    targets: dict[str, tuple[T, Sequence[str]]] = field(default_factory=dict)
    """By method, with the names of the variables in the path."""


class Router(Generic[T]):
    """Targets by method and path; variable segments are empty only with `allows_empty`."""

    def __init__(self, routes: Iterable[tuple[str, str, T]], *, allows_empty: bool = False) -> None:
        self._root: _Branch[T] = _Branch()
        self._length_min = 0 if allows_empty else 1
        for method, path, target in routes:
            self._add(method, path, target)

    def match(self, segments: Sequence[str]) -> Found[T]:
        """Return every target of a path; empty if the path is unknown."""
        branch: _Branch[T] = self._root
        values: list[str] = []
        for segment in segments:
            literal = branch.literals.get(segment)
            if literal is not None and not branch.variables:
                branch = literal
            elif literal is None and branch.bare is not None and len(segment) >= self._length_min:
                branch = branch.bare
                values.append(segment)
            else:  # Several branches may match, or none.
                found: Found[T] = {}
                self._collect(self._root, segments, 0, (), found)
                return found
        return {
            method: (target, dict(zip(names, values, strict=True)))
            for method, (target, names) in branch.targets.items()
        }

    def _collect(
        self,
        branch: _Branch[T],
        segments: Sequence[str],
        place: int,
        values: tuple[str, ...],
        found: Found[T],
    ) -> None:
        if place == len(segments):
            for method, (target, names) in branch.targets.items():
                if method not in found:  # A more literal path came first.
                    found[method] = target, dict(zip(names, values, strict=True))
            return
        segment = segments[place]
        literal = branch.literals.get(segment)
        if literal is not None:
            self._collect(literal, segments, place + 1, values, found)
        for (before, after), following in branch.variables.items():
            end = len(segment) - len(after)
            if end - len(before) < self._length_min:
                continue
            if segment.startswith(before) and segment.endswith(after):
                value = segment[len(before) : end]
                self._collect(following, segments, place + 1, (*values, value), found)

    def _add(self, method: str, path: str, target: T) -> None:
        branch, names = self._root, []
        for segment in path.strip("/").split("/"):
            before, is_variable, rest = segment.partition("{")
            if not is_variable:
                branch = branch.literals.setdefault(segment, _Branch())
                continue
            name, _, after = rest.partition("}")
            names.append(name)
            found = branch.variables.setdefault((before, after), _Branch())
            by_length = sorted(branch.variables.items(), key=lambda one: -len("".join(one[0])))
            branch.variables = dict(by_length)
            branch.bare = found if list(branch.variables) == [("", "")] else None
            branch = found
        assert method not in branch.targets, f"{method} {path} is described twice"
        branch.targets[method] = target, names
