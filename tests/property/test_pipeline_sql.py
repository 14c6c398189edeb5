"""Any SQL of a pipeline has its names found, or is rejected with a line."""

from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from headrace.pipelines.declaring.registry import Registry
from headrace.pipelines.declaring.sql_files import declare_file
from headrace.pipelines.queries.sql_references import references, replaced
from headrace.serdes.sql_tokens import SqlSyntaxError, tokens

WORDS = st.sampled_from(
    [
        *(
            "SELECT",
            "FROM",
            "JOIN",
            "STREAM",
            "(",
            ")",
            ",",
            ".",
            ";",
            "a.b",
            "c",
            "*",
            "WITH",
            "AS",
        ),
        *("WATERMARK", "DELAY OF INTERVAL 1 MINUTE", "WHERE", "TABLE", "|>", "TABLESAMPLE", "'x'"),
        *("CREATE", "STREAMING TABLE", "FLOW", "SINK", "CONSTRAINT", "EXPECT", "KEYS", "AUTO CDC"),
        *("INTO", "INSERT", "BY NAME", "MERGE", "SUM", "VIEW", "REFRESH EVERY", "5", "MINUTES"),
    ]
)
SQL = st.one_of(st.text(max_size=80), st.lists(WORDS, max_size=30).map(" ".join))
BLANKS = st.sampled_from([" ", "\n", " -- FROM no.no\n", " /* JOIN no.no */ ", "\t"])
NAMES = st.sampled_from(["raw.a", "staging.b", "`trusted`.`c`", "view"])
ALIASES = st.sampled_from(["", "x", "AS y"])


@given(SQL)
def test_tokens_are_the_text_in_its_order(sql: str) -> None:
    try:
        found = tokens(sql)
    except SqlSyntaxError as error:
        found = []
        line = error.line
    else:
        line = 1
    assert 1 <= line <= sql.count("\n") + 1
    assert all(sql[token.start : token.end] == token.text for token in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(token.line == sql.count("\n", 0, token.start) + 1 for token in found)


@given(SQL)
def test_any_text_has_its_names_replaced_on_its_own_lines(sql: str) -> None:
    try:
        found = references(sql)
    except SqlSyntaxError:
        return
    text = replaced(sql, found, lambda one: "v")
    assert text.count("\n") >= sql.count("\n") - sum(one.name.count("\n") for one in found)


@given(st.lists(st.tuples(NAMES, ALIASES, st.booleans()), min_size=1, max_size=5), st.data())
def test_every_relation_of_a_from_clause_is_found(
    relations: list[tuple[str, str, bool]], data: st.DataObject
) -> None:
    parts = [
        f"STREAM({name}) {alias}" if is_stream else f"{name} {alias}"
        for name, alias, is_stream in relations
    ]
    sql = "SELECT raw.x, 'FROM no.no' FROM " + ", ".join(parts) + " WHERE raw.y > 1"
    sql = "".join(data.draw(BLANKS) if letter == " " else letter for letter in sql)
    assert [(one.name, one.is_stream) for one in references(sql)] == [
        (name.replace("`", ""), is_stream) for name, _, is_stream in relations
    ]


@given(SQL)
def test_any_file_is_declared_or_reports_the_line_of_its_error(sql: str) -> None:
    registry = Registry(Path("/folder"))
    declare_file(sql, "a.sql", registry)
    lines = sql.count("\n") + 1
    for problem in registry.problems:
        assert problem.location is not None
        assert 1 <= problem.location.line <= lines
