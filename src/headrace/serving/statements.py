"""Which SQL may run: one statement that only reads, and only tables that are served.

DuckDB itself says what kind a statement is, and its own parse tree says what it refers to. Three
walls stand behind each other: only SELECT (which WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE are
kinds of); only tables and table functions of the lists here, since some functions of DuckDB take
memory addresses as arguments; and a database without access to files or its own configuration.
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
    """What a parse tree refers to."""

    tables: frozenset[tuple[str, ...]]
    """Paths of one to three names, as they were written, without those that WITH gives."""
    functions: frozenset[str]
    """Functions in the place of tables."""


class StatementChecker:
    """Checks statements before they run; what was found right is remembered for a while."""

    def __init__(self, cursor: Callable[[], duckdb.DuckDBPyConnection]) -> None:
        self._cursor = cursor
        self.references = lru_cache(_CHECKED_MAX)(self._references)

    def _references(self, sql: str) -> References:
        """What a statement refers to, or an error if it is not one that may run."""
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
    """A parse tree; DuckDB bounds how deep expressions are, and not how deep queries are."""
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise InvalidQuery("the statement is nested too deeply; use WITH") from error


def references(tree: Any) -> References:
    """Walk a serialised parse tree; it may be deeper than Python likes to recurse.

    A name that WITH gives hides a table only where DuckDB itself sees it. Elsewhere the same name
    is a table, and may be one of DuckDB's own.
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
            f"the table function {refused[0]} is not available here; those that are:"
            f" {', '.join(sorted(TABLE_FUNCTIONS))}"
        )


def served_names(
    found: References, known: Mapping[str, str], closed_zones: Collection[str] = ()
) -> frozenset[str]:
    """The tables of the lake that must be there for the statement to run.

    `known` gives for each way of writing a name, in lower case, the table's own name.
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
        raise NotReadOnly(f"send one statement; these are {len(statements)}")
    kind = statements[0].type
    if kind == duckdb.StatementType.MULTI:
        raise NotReadOnly("this stands for several statements; PIVOT needs IN with the values")
    if kind != duckdb.StatementType.SELECT:
        raise NotReadOnly(f"{kind.name} statements are refused: {_ADVICE}")


@dataclass(frozen=True, slots=True)
class _Scope:
    """From here on a name that WITH gives is seen (1), or is not any more (-1)."""

    name: str
    change: int


def _parts(node: Mapping[str, Any]) -> Iterator[Any]:
    """What is below a node, in the order in which names become visible.

    Each query of WITH sees the names before its own. A recursive one sees its own in the part that
    is repeated, not in the part that it starts with.
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
