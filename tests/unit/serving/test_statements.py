"""SQL may read served tables, and nothing else."""

from collections.abc import Iterator

import duckdb
import pytest

from headrace.http.errors import HttpError
from headrace.serving.errors import InvalidQuery, NotReadOnly, TableNotFound
from headrace.serving.statements import StatementChecker, served_names

KNOWN = {"refined.orders": "refined.orders", "orders": "refined.orders", "raw.log": "raw.log"}


@pytest.fixture(scope="module")
def checker() -> Iterator[StatementChecker]:
    with duckdb.connect(":memory:") as connection:
        yield StatementChecker(connection.cursor)


@pytest.mark.parametrize(
    ("sql", "names"),
    [
        ("SELECT 1", set()),
        ("VALUES (1)", set()),
        ("FROM orders", {"refined.orders"}),
        ("SELECT * FROM ORDERS", {"refined.orders"}),
        ("TABLE Refined.Orders", {"refined.orders"}),
        ("DESCRIBE refined.orders", {"refined.orders"}),
        ("SUMMARIZE orders", {"refined.orders"}),
        ("SHOW TABLES", set()),
        ("SHOW ALL TABLES", set()),
        ("SELECT * FROM information_schema.tables", set()),
        ("WITH o AS (FROM raw.log) SELECT * FROM o", {"raw.log"}),
        ("WITH o AS (SELECT 1), p AS (FROM o) FROM p UNION ALL FROM O", set()),
        (
            "WITH o AS (SELECT 1) SELECT (SELECT max(x) FROM o) FROM (FROM o) ORDER BY (FROM o)",
            set(),
        ),
        ("WITH o AS (WITH p AS (SELECT 1) FROM p) FROM o", set()),
        ("WITH orders AS (FROM orders) FROM orders", {"refined.orders"}),
        ("WITH orders AS (SELECT 1) FROM orders", set()),
        ("WITH RECURSIVE t(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM t) FROM t", set()),
        ("SELECT (SELECT max(id) FROM raw.log) FROM range(3)", {"raw.log"}),
        ("SELECT * FROM orders WHERE id IN (FROM raw.log)", {"refined.orders", "raw.log"}),
        ("SELECT * FROM orders JOIN raw.log USING (id)", {"refined.orders", "raw.log"}),
        ("SELECT * FROM orders UNION ALL FROM raw.log", {"refined.orders", "raw.log"}),
        ("PIVOT orders ON item IN ('a', 'b') USING count(*)", {"refined.orders"}),
        ("SELECT unnest([1, 2]); -- and no more", set()),
    ],
)
def test_reading_is_allowed_and_its_tables_are_known(
    checker: StatementChecker, sql: str, names: set[str]
) -> None:
    assert served_names(checker.references(sql), KNOWN) == names


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 1; SELECT 2",
        "SELECT 1; DROP TABLE orders",
        "",
        "-- nothing",
        "INSERT INTO orders VALUES (1)",
        "UPDATE orders SET id = 1",
        "DELETE FROM orders",
        "CREATE TABLE t (i INT)",
        "CREATE TABLE t AS SELECT 1",
        "CREATE MACRO f() AS 1",
        "DROP VIEW refined.orders",
        "ALTER TABLE orders ADD COLUMN x INT",
        "COPY orders TO '/tmp/stolen.csv'",
        "COPY orders FROM '/etc/passwd'",
        "EXPORT DATABASE '/tmp/stolen'",
        "IMPORT DATABASE '/tmp/mine'",
        "ATTACH '/tmp/other.db' AS other",
        "ATTACH ':memory:' AS other",
        "DETACH memory",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET threads = 64",
        "SET VARIABLE x = 1",
        "RESET memory_limit",
        "USE store",
        "PRAGMA database_list",
        "PRAGMA enable_profiling",
        "CALL pragma_version()",
        "BEGIN TRANSACTION",
        "COMMIT",
        "CHECKPOINT",
        "VACUUM",
        "PREPARE p AS SELECT 1",
        "EXECUTE p",
        "EXPLAIN ANALYZE SELECT 1",
        "PIVOT orders ON item",
        "MERGE INTO orders USING orders AS o ON true WHEN MATCHED THEN DELETE",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM read_parquet('lake/raw/*.parquet')",
        "SELECT * FROM READ_BLOB('/etc/passwd')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM sniff_csv('/etc/passwd')",
        "SELECT * FROM query('SELECT 1')",
        "SELECT * FROM query_table('refined.orders')",
        "SELECT * FROM json_execute_serialized_sql('{}')",
        "SELECT * FROM arrow_scan(1, 2, 3)",
        "SELECT * FROM pandas_scan(1)",
        "SELECT * FROM python_map_function(1)",
        "SELECT * FROM seq_scan('t')",
        "SELECT * FROM duckdb_settings()",
        "SELECT * FROM duckdb_secrets()",
        "SELECT (SELECT content FROM read_text('/etc/passwd'))",
        "WITH x AS (FROM read_text('/etc/passwd')) FROM x",
        "SELECT 1 WHERE EXISTS (FROM read_text('/etc/passwd'))",
        "SELECT * FROM range(3) AS r, LATERAL (FROM read_text('/etc/passwd')) AS p",
        "DESCRIBE SELECT * FROM read_csv('/etc/passwd')",
        "SUMMARIZE FROM read_csv('/etc/passwd')",
    ],
)
def test_all_other_statements_are_refused(checker: StatementChecker, sql: str) -> None:
    with pytest.raises(NotReadOnly):
        checker.references(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "FROM nothing",
        "FROM staging.orders",
        "FROM store.t1",
        "FROM store.published",
        "FROM memory.store.published",
        "FROM main.orders",
        "FROM '/etc/passwd'",
        "FROM 'lake/raw/log/part.parquet'",
        'FROM "files of refined.orders"',
        "FROM pg_catalog.pg_class",
        "FROM duckdb_tables",
        "FROM sqlite_master",
        "DESCRIBE staging.orders",
        "WITH x AS (SELECT 1) FROM x, y",
        "FROM duckdb_tables, (WITH duckdb_tables AS (SELECT 1) SELECT 1)",
        "FROM (WITH pg_class AS (SELECT 1) SELECT 1), pg_class",
        "WITH duckdb_tables AS (FROM duckdb_tables) FROM duckdb_tables",
        "WITH x AS (FROM duckdb_tables), duckdb_tables AS (SELECT 1) FROM x",
        "WITH x AS (WITH pg_class AS (SELECT 1) FROM pg_class) FROM pg_class",
        "WITH RECURSIVE pg_class AS (FROM pg_class UNION ALL FROM pg_class) FROM pg_class",
        "SELECT 1 UNION ALL (WITH pg_class AS (SELECT 1) SELECT 1) UNION ALL FROM pg_class",
    ],
)
def test_tables_that_are_not_served_are_not_there(checker: StatementChecker, sql: str) -> None:
    with pytest.raises(TableNotFound):
        served_names(checker.references(sql), KNOWN)


def test_a_near_name_is_suggested(checker: StatementChecker) -> None:
    with pytest.raises(TableNotFound, match=r"did you mean refined\.orders"):
        served_names(checker.references("FROM refined.order"), KNOWN)


def test_a_syntax_error_has_its_position(checker: StatementChecker) -> None:
    with pytest.raises(InvalidQuery, match="syntax error") as caught:
        checker.references("SELECT 1\nFORM orders x y")
    assert caught.value.details["line"] == 2


def test_deep_nesting_is_an_error_and_not_a_crash(checker: StatementChecker) -> None:
    with pytest.raises(HttpError):
        checker.references("SELECT " + "(" * 20_000 + "1" + ")" * 20_000)
    with pytest.raises(HttpError):
        checker.references("SELECT " + "1+" * 50_000 + "1")
    with pytest.raises(InvalidQuery, match="nested too deeply"):
        checker.references("SELECT * FROM " + "(SELECT * FROM " * 2_000 + "range(1)" + ")" * 2_000)
