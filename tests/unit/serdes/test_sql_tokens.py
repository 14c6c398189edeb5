"""Tokens of SQL in both dialects."""

import pytest

from headrace.serdes.sql_tokens import Dialect, SqlSyntaxError, statements, tokens


def test_a_statement_ends_at_a_semicolon_outside_of_texts() -> None:
    sql = "SELECT ';' FROM `a;b` -- ;\n; ; SELECT /* ; */ 2"
    found = [[token.text for token in statement] for statement in statements(sql)]
    assert found == [["SELECT", "';'", "FROM", "`a;b`"], ["SELECT", "2"]]


def test_tokens_have_their_lines() -> None:
    assert [(one.text, one.line) for one in tokens("a\n'b\nc' /* \n */ d")] == [
        ("a", 1),
        ("'b\nc'", 2),
        ("d", 4),
    ]


@pytest.mark.parametrize("sql", ["SELECT 'x", "SELECT 1\n/* no end", "SELECT `x"])
def test_a_text_without_an_end_is_reported_with_its_line(sql: str) -> None:
    with pytest.raises(SqlSyntaxError, match="has no end") as raised:
        tokens(sql)
    assert raised.value.line == sql.count("\n") + 1


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("'it''s'", "it's"),
        (r"'a\tb\'c'", "a\tb'c"),
        (r"r'a\tb'", r"a\tb"),
        ('"two"', "two"),
        ("`a``b`", "a`b"),
    ],
)
def test_spark_escapes_with_backslashes_and_doubled_quotes(sql: str, value: str) -> None:
    (token,) = tokens(sql)
    assert token.value == value


@pytest.mark.parametrize(
    ("sql", "kind", "value"),
    [
        ('"a""b"', "quoted", 'a"b'),
        ("[order]", "quoted", "order"),
        (r"'C:\x'", "text", r"C:\x"),
        ("N'it''s'", "text", "it's"),
        ("1.5e-3", "number", "1.5e-3"),
    ],
)
def test_databases_quote_names_twice_and_have_no_backslashes(
    sql: str, kind: str, value: str
) -> None:
    (token,) = tokens(sql, Dialect.ANSI)
    assert (token.kind, token.value) == (kind, value)


def test_a_character_outside_of_the_dialect_is_reported_with_its_line() -> None:
    with pytest.raises(SqlSyntaxError, match="is not SQL") as raised:
        tokens("a\n\\", Dialect.ANSI)
    assert raised.value.line == 2
