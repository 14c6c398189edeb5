"""From a path to who answers it, with contexts and aliases worked into the subject.

Subjects may hold slashes, written `%2F`, so paths are cut before they are decoded. A path under
`/contexts/{context}` means the same path for subjects of that context.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import unquote

from headrace.http.errors import BadRequest
from headrace.http.operations import Operation
from headrace.serdes.subject_names import EVERY_CONTEXT, normalized_context

_SUBJECT_FOLLOWS = "subjects"
_SETTINGS = ("config", "mode")


class Target(NamedTuple):
    """A path without its context, and the prefix that the context gives to subjects.

    The default context gives an empty one: `/contexts/./subjects` lists that context alone, where
    a path without a context, and so without a prefix, lists them all.
    """

    segments: Sequence[str]
    context_prefix: str | None = None


class Match(NamedTuple):
    """What answers a path, by method, and the parts of the path that vary."""

    operations: Mapping[str, Operation]
    parameters: Mapping[str, str]


class _Branch:
    def __init__(self) -> None:
        self.literals: dict[str, _Branch] = {}
        self.variable: tuple[str, _Branch] | None = None
        self.operations: dict[str, Operation] = {}


class Router:
    """A tree of path segments."""

    def __init__(self, operations: Iterable[Operation]) -> None:
        self._root = _Branch()
        for operation in operations:
            branch = self._root
            for segment in operation.path.strip("/").split("/"):
                branch = _grown(branch, segment)
            branch.operations[operation.method] = operation

    def match(self, segments: Sequence[str]) -> Match | None:
        branch = self._root
        parameters: dict[str, str] = {}
        for segment in segments:
            literal = branch.literals.get(segment)
            if literal is not None:
                branch = literal
            elif branch.variable is not None:
                name, branch = branch.variable
                parameters[name] = segment
            else:
                return None
        return Match(branch.operations, parameters) if branch.operations else None


def target_of(raw_path: bytes, alias_of: Callable[[str], str]) -> Target:
    """The segments of a path: decoded, with its context and aliases put into its subject."""
    path = raw_path.decode("latin-1").strip("/")
    target = _contextual([unquote(segment) for segment in path.split("/")])
    segments = list(target.segments)
    for place, segment in enumerate(segments[1:], 1):
        if segments[place - 1] == _SUBJECT_FOLLOWS:
            segments[place] = alias_of(segment)
            break
    return Target(segments, target.context_prefix)


def with_context(prefix: str, text: str) -> str:
    """A subject, or the beginning of one, in the context of the path unless it names its own."""
    is_qualified = text.startswith((":.", EVERY_CONTEXT))
    return text if is_qualified else prefix + text


def _contextual(segments: list[str]) -> Target:
    if segments[0] != "contexts" or len(segments) == 1:
        return Target(segments)
    try:
        prefix = normalized_context(segments[1])
    except ValueError as error:
        raise BadRequest(str(error)) from error
    rest = segments[2:]
    if not rest:
        return Target(["contexts", prefix], prefix)
    if rest[0] in _SETTINGS and len(rest) == 1:
        return Target([*rest, prefix] if prefix else rest, prefix)
    place = 1 if rest[0] in _SETTINGS else _place_of_subject(rest)
    if 0 < place < len(rest):
        rest[place] = with_context(prefix, rest[place])
    return Target(rest, prefix)


def _place_of_subject(segments: Sequence[str]) -> int:
    return segments.index(_SUBJECT_FOLLOWS) + 1 if _SUBJECT_FOLLOWS in segments else 0


def _grown(branch: _Branch, segment: str) -> _Branch:
    if not segment.startswith("{"):
        return branch.literals.setdefault(segment, _Branch())
    if branch.variable is None:
        branch.variable = (segment.strip("{}"), _Branch())
    assert branch.variable[0] == segment.strip("{}"), "one place in a path has one name"
    return branch.variable[1]
