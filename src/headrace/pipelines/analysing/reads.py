"""The datasets that a query reads, found without running it.

SQL has them in its text. In a Python function the calls of `read` and `read_stream` are found, also
in functions of the same folder that it calls; names that are not built from texts are known only
when Spark evaluates the function.
"""

import ast
import inspect
import linecache
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import FunctionType, ModuleType
from typing import Any

from headrace.pipelines.model import Query
from headrace.pipelines.queries import resolving
from headrace.pipelines.queries.sql_references import references
from headrace.serdes.sql_tokens import SqlSyntaxError


@dataclass(frozen=True, slots=True)
class Read:
    """A dataset that a query reads, as a stream or whole."""

    name: str
    is_stream: bool


def reads_of(query: Query) -> tuple[Read, ...]:
    """Return the reads of a query, each once, in the order of its text; none for invalid SQL."""
    found = _reads_of_sql(query) if isinstance(query, str) else _reads_of_function(query)
    return tuple(dict.fromkeys(found))


def _reads_of_sql(sql: str) -> Iterator[Read]:
    try:
        found = references(sql)
    except SqlSyntaxError:
        return  # The evaluation of the query reports the error.
    for reference in found:
        yield Read(reference.name, reference.is_stream)


def _reads_of_function(function: Callable[..., Any]) -> list[Read]:
    search = _Search()
    search.look_into(function)
    return search.found


class _Search:
    """Follows a function's calls to functions of its own package."""

    def __init__(self) -> None:
        self.found: list[Read] = []
        self._seen: set[Any] = set()

    def look_into(self, function: Callable[..., Any]) -> None:
        function = inspect.unwrap(function)
        if not isinstance(function, FunctionType) or function in self._seen:
            return
        self._seen.add(function)
        tree = _tree_of(function)
        if tree is None:
            return
        scope = _scope_of(function)
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        for call in sorted(calls, key=lambda node: (node.lineno, node.col_offset)):
            self._call(call, scope, function)

    def _call(self, call: ast.Call, scope: Mapping[str, Any], caller: FunctionType) -> None:
        called = _value(call.func, scope)
        text = _text(call.args[0], scope) if call.args else None
        if called is resolving.read or _is_method(call.func, scope, ("table",), ("read", "table")):
            self._add(text, is_stream=False)
        elif called is resolving.read_stream or _is_method(
            call.func, scope, ("readStream", "table")
        ):
            self._add(text, is_stream=True)
        elif _is_method(call.func, scope, ("sql",)):
            self.found += _reads_of_sql(text or "")
        elif isinstance(called, FunctionType) and _are_neighbours(called, caller):
            self.look_into(called)

    def _add(self, text: str | None, *, is_stream: bool) -> None:
        if text is not None:
            self.found.append(Read(text.lower(), is_stream))


def _tree_of(function: FunctionType) -> ast.AST | None:
    """Return the function's syntax tree; a lambda inside a line has none."""
    file = function.__code__.co_filename
    return _functions_of("".join(linecache.getlines(file))).get(function.__code__.co_firstlineno)


@lru_cache(maxsize=64)
def _functions_of(source: str) -> Mapping[int, ast.AST]:
    """Return all functions of a file, by their first line, decorators included."""
    try:
        nodes = ast.walk(ast.parse(source))
    except SyntaxError:
        return {}
    found = (node for node in nodes if isinstance(node, ast.FunctionDef))
    return {min([one.lineno, *(d.lineno for d in one.decorator_list)]): one for one in found}


def _scope_of(function: FunctionType) -> dict[str, Any]:
    """Return the values of names inside a function, as far as known before a call."""
    scope = dict(function.__globals__)
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            scope[name] = cell.cell_contents
        except ValueError:
            continue  # Not assigned yet.
    parameters = inspect.signature(function).parameters.values()
    return scope | {one.name: one.default for one in parameters if one.default is not one.empty}


def _value(node: ast.expr, scope: Mapping[str, Any]) -> Any:
    """Return the value of a name or `module.name`; None for other expressions."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        module = _value(node.value, scope)
        return getattr(module, node.attr, None) if isinstance(module, ModuleType) else None
    return None


def _is_method(node: ast.expr, scope: Mapping[str, Any], *ways: tuple[str, ...]) -> bool:
    """Return whether this is `spark.` and a way: ("read", "table") for spark.read.table."""
    attributes: list[str] = []
    while isinstance(node, ast.Attribute):
        if _value(node, scope) is resolving.spark:
            break
        attributes.insert(0, node.attr)
        node = node.value
    return tuple(attributes) in ways and _value(node, scope) is resolving.spark


def _text(node: ast.expr, scope: Mapping[str, Any]) -> str | None:
    """Return the value of a text, of a name bound to one, or of an f-string of these."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.FormattedValue):
        return _text(node.value, scope)
    if isinstance(node, ast.JoinedStr):
        parts = [_text(part, scope) for part in node.values]
        return None if None in parts else "".join(filter(None, parts))
    value = _value(node, scope)
    return value if isinstance(value, str) else None


def _are_neighbours(one: FunctionType, other: FunctionType) -> bool:
    """Return whether both are in one file, or both outside of installed packages."""
    locations = [function.__code__.co_filename for function in (one, other)]
    return locations[0] == locations[1] or not any(
        "site-packages" in location for location in locations
    )
