"""The check of SQL: one statement that only reads, and only served tables.

DuckDB itself determines the kind of a statement, and its parse tree the references. There are three
lines of defence:

- only SELECT, which includes WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE;
- only served tables and listed table functions: some of DuckDB's take memory addresses;
- a database without access to files or to its own configuration.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import duckdb
import msgspec

from headrace.serving.errors import InvalidQuery, NotReadOnly, TableNotFound, of_duckdb

TABLE_FUNCTIONS = frozenset(
    {
        "generate_series",
        "json_each",
        "json_tree",
        "pg_timezone_names",
        "range",
        "repeat",
        "repeat_row",
        "unnest",
    }
)
OPEN_SCHEMAS = frozenset({"information_schema"})
_CHECKED_MAX = 512
_ADVICE = "only SELECT, WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE are answered"


@dataclass(frozen=True, slots=True)
class References:
    """The references of a parse tree."""

    tables: frozenset[tuple[str, ...]]
    """Paths of one to three names as written, without the names of WITH."""
    functions: frozenset[str]
    """Table functions."""


class StatementChecker:
    """Checks statements before they run, and caches the accepted ones."""

    def __init__(self, cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._cursor = cursor
        self.references = lru_cache(_CHECKED_MAX)(self._references)

    def _references(self, sql: str) -> References:
        """Return the references of a statement; raise an error if it must not run."""
        with self._cursor() as cursor:
            try:
                _check_kind(cursor.extract_statements(sql))
                row = cursor.execute("SELECT json_serialize_sql(?)", [sql]).fetchone()
            except duckdb.Error as error:
                raise of_duckdb(error) from error
        assert row is not None
        tree = _decoded(row[0])
        if tree["error"]:
            raise InvalidQuery(str(tree.get("error_message", "the statement cannot be read")))
        found = references(tree)
        check_functions(found)
        return found


def _decoded(text: str) -> Any:
    """Decode a parse tree; DuckDB limits the depth of expressions, but not of queries."""
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise InvalidQuery("the statement is nested too deeply; use WITH") from error


def references(tree: Any) -> References:
    """Walk a serialized parse tree without recursion, since it may be deep.

    A name of WITH hides a table only within its scope. Elsewhere the same name is a table, possibly
    one of DuckDB's own.
    """
    tables: set[tuple[str, ...]] = set()
    functions: set[str] = set()
    visible: Counter[str] = Counter()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _Scope):
            visible[node.name] += node.change
            continue
        if isinstance(node, list):
            waiting += reversed(node)
        if not isinstance(node, dict):
            continue
        match node.get("type"):
            case "BASE_TABLE":
                names = (node["catalog_name"], node["schema_name"], node["table_name"])
                path = tuple(name for name in names if name)
                if len(path) > 1 or not visible[path[0].lower()]:
                    tables.add(path)
            case "TABLE_FUNCTION":
                functions.add(str(node["function"].get("function_name", "")).lower())
        waiting += reversed(list(_parts(node)))
    return References(frozenset(tables), frozenset(functions))


def check_functions(found: References) -> None:
    refused = sorted(found.functions - TABLE_FUNCTIONS)
    if refused:
        raise NotReadOnly(
            f"the table function {refused[0]} is not available here; available are"
            f" {', '.join(sorted(TABLE_FUNCTIONS))}"
        )


def served_names(
    found: References, known: Mapping[str, str], closed_zones: Collection[str] = ()
) -> frozenset[str]:
    """Return the tables of the lake that a statement reads.

    `known` has the table's own name for each spelling in lower case.
    """
    names: set[str] = set()
    for path in found.tables:
        written = ".".join(path)
        name = known.get(written.lower())
        if name is not None:
            names.add(name)
        elif len(path) != 2 or path[0].lower() not in OPEN_SCHEMAS:
            raise TableNotFound(written, sorted(set(known.values())), closed_zones)
    return frozenset(names)


def _check_kind(statements: Sequence[duckdb.Statement]) -> None:
    if len(statements) != 1:
        raise NotReadOnly(f"send one statement, not {len(statements)}")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI:
        raise NotReadOnly("this expands to several statements; PIVOT needs IN with the values")
    if kind != duckdb.StatementType.SELECT:
        raise NotReadOnly(f"{kind.name} statements are refused: {_ADVICE}")


@dataclass(frozen=True, slots=True)
class _Scope:
    """The begin (1) or the end (-1) of the scope of a name of WITH."""

    name: str
    change: int


def _parts(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the parts of a node in the order in which names become visible.

    Each query of WITH may use the names before its own. A recursive query may use its own name in
    the repeated part, not in the initial part.
    """
    given = [(str(entry["key"]).lower(), entry["value"]) for entry in _common_tables(node)]
    for name, query in given:
        yield query
        yield _Scope(name, 1)
    for key, value in node.items():
        if key == "cte_map":
            continue
        if key == "right" and node.get("type") == "RECURSIVE_CTE_NODE":
            name = str(node["cte_name"]).lower()
            yield from (_Scope(name, 1), value, _Scope(name, -1))
        else:
            yield value
    for name, _ in given:
        yield _Scope(name, -1)


def _common_tables(node: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    found = node.get("cte_map")
    return found.get("map", ()) if isinstance(found, dict) else ()
