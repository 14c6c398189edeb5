"""JAAS texts, as Kafka's properties contain them."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.jaas import JaasEntry, jaas_text, parse_jaas, sole_entry

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_an_entry_has_a_module_and_options() -> None:
    entry = sole_entry(f'{PLAIN} required username="admin" password=\'a b\' user_ada="s;=/";')
    assert entry.module == PLAIN
    assert entry.options == {"username": "admin", "password": "a b", "user_ada": "s;=/"}


def test_options_may_be_without_quotes_and_on_lines_of_their_own() -> None:
    entry = sole_entry(f"{PLAIN} REQUIRED\n  serviceName=kafka\n  useKeyTab=true ;\n")
    assert entry.options == {"serviceName": "kafka", "useKeyTab": "true"}


def test_comments_are_ignored() -> None:
    text = f'// users\n{PLAIN} /* the\nplain one */ required a="//" // b="c"\n;'
    assert sole_entry(text).options == {"a": "//"}


@pytest.mark.parametrize(
    ("text", "value"),
    [(r'"a\"b"', 'a"b'), (r'"\\"', "\\"), (r'"\n\t\q"', "\n\tq"), (r'"\101\7x\400"', "A\7x 0")],
)
def test_a_backslash_escapes_as_in_java(text: str, value: str) -> None:
    assert sole_entry(f"{PLAIN} required a={text};").options == {"a": value}


def test_a_text_may_have_several_entries() -> None:
    entries = parse_jaas('One required a="1"; Two optional;')
    assert [(one.module, dict(one.options)) for one in entries] == [
        ("One", {"a": "1"}),
        ("Two", {}),
    ]
    with pytest.raises(InvalidConfig, match="2 entries instead of one"):
        sole_entry("One required; Two optional;")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  // nothing",
        PLAIN,
        f"{PLAIN} required",
        f"{PLAIN} sometimes;",
        f"{PLAIN};",
        "= required;",
        f'{PLAIN} required user_ada="secret"',
        f"{PLAIN} required user_ada secret;",
        f"{PLAIN} required user_ada=;",
        f'{PLAIN} required user_ada="secret;',
        f'{PLAIN} required ="secret";',
        f'{PLAIN} required user_ada="secret" user_bob;',
    ],
)
def test_an_invalid_text_is_rejected_without_repeating_a_value(text: str) -> None:
    with pytest.raises(InvalidConfig) as refused:
        parse_jaas(text)
    assert "secret" not in str(refused.value)


def test_values_are_not_shown() -> None:
    assert "secret" not in repr(parse_jaas(f'{PLAIN} required user_ada="secret";'))


def test_a_written_entry_is_read_back() -> None:
    value = 'a "quoted" \\ value\nin two lines'
    assert sole_entry(jaas_text(PLAIN, password=value)) == JaasEntry(PLAIN, {"password": value})
