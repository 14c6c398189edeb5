"""Relations in a query, and other names in their place."""

import pytest

from headrace.pipelines.queries.sql_references import references, replaced
from headrace.serdes.sql_tokens import SqlSyntaxError


def names(sql: str) -> list[str]:
    return [one.name for one in references(sql)]


def with_views(sql: str) -> str:
    return replaced(sql, references(sql), lambda one: "v_" + one.name.replace(".", "_"))


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("SELECT * FROM raw.orders", ["raw.orders"]),
        ("select * from RAW.Orders o, `staging`.`x` AS y", ["raw.orders", "staging.x"]),
        ("SELECT * FROM a.b LEFT JOIN c.d ON b.id = d.id", ["a.b", "c.d"]),
        ("SELECT raw.id FROM raw.orders AS raw", ["raw.orders"]),
        ("SELECT * FROM (SELECT * FROM a.b) JOIN (c.d JOIN e.f USING (id))", ["a.b", "c.d", "e.f"]),
        ("SELECT * FROM a.b WHERE id IN (SELECT id FROM c.d)", ["a.b", "c.d"]),
        ("SELECT * FROM a.b UNION ALL TABLE c.d", ["a.b", "c.d"]),
        ("FROM a.b |> WHERE id > 1 |> SELECT id", ["a.b"]),
        ("FROM a.b |> EXTEND b.x + 1 AS y, b.z AS z |> JOIN c.d USING (id)", ["a.b", "c.d"]),
        ("SELECT * FROM a.b, c.d LATERAL VIEW explode(b.x) t AS y", ["a.b", "c.d"]),
        ("SELECT * FROM a.b PIVOT (sum(x) FOR y IN ('p', 'q')), c.d", ["a.b", "c.d"]),
        ("SELECT * EXCEPT (x, y) FROM a.b ORDER BY b.x, b.y LIMIT 3", ["a.b"]),
        ("WITH x AS (SELECT * FROM a.b) SELECT * FROM x", ["a.b"]),
        ("WITH x (n) AS (SELECT 1), y AS (SELECT * FROM x) SELECT * FROM y, recent", ["recent"]),
        ("SELECT * FROM a.b, LATERAL explode(items) AS t", ["a.b"]),
        ("SELECT * FROM range(10), VALUES (1), csv.`/some/file`", []),
        ("SELECT extract(day FROM a.ts), trim(BOTH 'x' FROM a.name) FROM b.c a", ["b.c"]),
        ("SELECT * FROM a.b WHERE a.x IS NOT DISTINCT FROM a.y", ["a.b"]),
        ("SELECT 'FROM c.d' -- FROM e.f\n FROM a.b /* JOIN g.h */", ["a.b"]),
        ("SELECT count(*) FILTER (WHERE a.x > 1) FROM b.c a GROUP BY a.y, a.z", ["b.c"]),
    ],
)
def test_relations_are_found_and_columns_are_not(sql: str, found: list[str]) -> None:
    assert names(sql) == found


@pytest.mark.parametrize(
    ("sql", "is_stream"),
    [
        ("SELECT * FROM STREAM(a.b)", True),
        ("SELECT * FROM STREAM a.b", True),
        ("SELECT * FROM stream ( a.b ) s", True),
        ("SELECT * FROM a.b", False),
        ("SELECT * FROM (a.b)", False),
    ],
)
def test_streams_are_distinguished_from_tables(sql: str, is_stream: bool) -> None:
    (found,) = references(sql)
    assert (found.name, found.is_stream) == ("a.b", is_stream)


def test_a_view_may_be_called_stream() -> None:
    assert names("SELECT * FROM stream WHERE x > 1") == ["stream"]


@pytest.mark.parametrize(
    ("sql", "becomes"),
    [
        ("SELECT orders.id FROM raw.orders", "SELECT orders.id FROM `v_raw_orders` AS `orders`"),
        (
            "SELECT raw.orders.id FROM raw.orders",
            "SELECT orders.id FROM `v_raw_orders` AS `orders`",
        ),
        ("SELECT o.id FROM raw.orders o", "SELECT o.id FROM `v_raw_orders` o"),
        (
            "SELECT * FROM raw.orders TABLESAMPLE (5 PERCENT) REPEATABLE (1) WHERE id > 1",
            "SELECT * FROM `v_raw_orders` TABLESAMPLE (5 PERCENT) REPEATABLE (1) AS `orders`"
            " WHERE id > 1",
        ),
        ("TABLE raw.orders", "TABLE `v_raw_orders`"),
        (
            "SELECT * FROM STREAM(raw.orders) WATERMARK ts DELAY OF INTERVAL 1 MINUTE WHERE id > 1",
            "SELECT * FROM STREAM(`v_raw_orders`) WATERMARK ts DELAY OF INTERVAL 1 MINUTE"
            " AS `orders` WHERE id > 1",
        ),
        (
            "SELECT * FROM STREAM raw.orders WATERMARK ts DELAY OF INTERVAL '2' HOURS AS o",
            "SELECT * FROM STREAM `v_raw_orders` WATERMARK ts DELAY OF INTERVAL '2' HOURS AS o",
        ),
    ],
)
def test_other_names_take_the_place_of_datasets(sql: str, becomes: str) -> None:
    assert with_views(sql) == becomes


def test_inserted_views_keep_the_line_numbers() -> None:
    sql = "SELECT *\nFROM raw.orders -- all\nWHERE id\n> 1"
    assert with_views(sql).count("\n") == sql.count("\n")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id, key, value FROM STREAM(a.b) LATERAL VIEW explode(m) t AS key, value",
        "SELECT p FROM a.b LATERAL VIEW OUTER posexplode(m) t AS p, key, value WHERE p > 1",
        "SELECT /* /* within */ FROM z.z */ * FROM a.b",
        "SELECT 1 FROM a.b WHERE r'\\' = x AND y = 'FROM q.q, r.r'",
        'SELECT 1 FROM a.b WHERE R"\\" = x AND y = "FROM q.q, r.r"',
    ],
)
def test_text_that_only_looks_like_a_relation_is_ignored(sql: str) -> None:
    assert names(sql) == ["a.b"]


def test_relations_before_a_lateral_view_and_in_other_queries_are_found() -> None:
    sql = (
        "SELECT * FROM a.b, c.d LATERAL VIEW explode(m) t AS k, v"
        " UNION ALL SELECT * FROM e.f, (SELECT * FROM g.h LATERAL VIEW explode(m) AS k, v), i.j"
    )
    assert names(sql) == ["a.b", "c.d", "e.f", "g.h", "i.j"]


def test_a_comment_that_only_its_inner_one_closes_has_no_end() -> None:
    with pytest.raises(SqlSyntaxError, match=r"this /\* has no end"):
        references("SELECT 1 /* /* within */ FROM a.b")


def test_tables_of_one_name_are_distinguished_by_their_zones() -> None:
    sql = (
        "SELECT staging.orders.*, trusted.orders.id FROM staging.orders LEFT JOIN trusted.orders"
        " ON staging.orders.id = trusted.orders.id"
    )
    assert replaced(sql, references(sql), lambda one: f"v_{one.name}".replace(".", "_")) == (
        "SELECT `staging__orders`.*, `trusted__orders`.id"
        " FROM `v_staging_orders` AS `staging__orders`"
        " LEFT JOIN `v_trusted_orders` AS `trusted__orders`"
        " ON `staging__orders`.id = `trusted__orders`.id"
    )


def test_tables_of_one_name_in_other_queries_keep_it() -> None:
    sql = "SELECT orders.id FROM a.orders WHERE x IN (SELECT orders.id FROM b.orders)"
    assert replaced(sql, references(sql), lambda one: one.name[0]) == (
        "SELECT orders.id FROM `a` AS `orders` WHERE x IN (SELECT orders.id FROM `b` AS `orders`)"
    )
