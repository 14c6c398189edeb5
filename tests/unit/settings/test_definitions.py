"""Texts of configs become values, and values the text that Kafka writes."""

import pytest

from headrace.errors import InvalidConfig
from headrace.settings.definitions import (
    ConfigDefinition,
    ConfigType,
    Validator,
    Value,
    at_least,
    between,
    each_of,
    nearest,
    one_of,
)


def config(kind: ConfigType, validator: Validator | None = None) -> ConfigDefinition:
    return ConfigDefinition(
        name="some.config", type=kind, default=None, documentation="", validator=validator
    )


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (ConfigType.BOOLEAN, " True ", True),
        (ConfigType.BOOLEAN, "false", False),
        (ConfigType.INT, " +5 ", 5),
        (ConfigType.INT, "-2147483648", -(1 << 31)),
        (ConfigType.LONG, "9223372036854775807", (1 << 63) - 1),
        (ConfigType.DOUBLE, ".5f", 0.5),
        (ConfigType.DOUBLE, "1e3", 1000.0),
        (ConfigType.LIST, " a , b,,a ", ("a", "b")),
        (ConfigType.LIST, "", ()),
        (ConfigType.STRING, " text ", "text"),
        (ConfigType.PASSWORD, " secret ", "secret"),
        (ConfigType.UNKNOWN, " kept as it is ", " kept as it is "),
    ],
)
def test_text_is_read_by_type(kind: ConfigType, text: str, value: Value) -> None:
    assert config(kind).parse(text) == value


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (ConfigType.BOOLEAN, "yes"),
        (ConfigType.INT, "2147483648"),
        (ConfigType.INT, "1e3"),
        (ConfigType.INT, "0x10"),
        (ConfigType.INT, "1_000"),
        (ConfigType.INT, ""),
        (ConfigType.INT, "٣"),
        (ConfigType.SHORT, "40000"),
        (ConfigType.LONG, "9223372036854775808"),
        (ConfigType.LONG, "9" * 5000),
        (ConfigType.DOUBLE, "1_0"),
        (ConfigType.DOUBLE, "NaN"),
        (ConfigType.DOUBLE, "half"),
    ],
)
def test_text_of_another_type_is_refused_by_name(kind: ConfigType, text: str) -> None:
    with pytest.raises(InvalidConfig, match=r"some\.config must"):
        config(kind).parse(text)


@pytest.mark.parametrize(
    ("definition", "text", "message"),
    [
        (config(ConfigType.INT, at_least(1)), "0", "some.config must be at least 1, not 0"),
        (
            config(ConfigType.INT, between(1, 9, -1)),
            "0",
            "some.config must be between 1 and 9 or -1, not 0",
        ),
        (config(ConfigType.STRING, one_of("a", "b")), "c", "must be one of a, b, not c"),
        (config(ConfigType.LIST, each_of("a", "b")), "a,c", "must be a list of a, b, not a,c"),
    ],
)
def test_an_invalid_value_is_reported_with_its_limit(
    definition: ConfigDefinition, text: str, message: str
) -> None:
    with pytest.raises(InvalidConfig) as caught:
        definition.parse(text)
    assert message in str(caught.value)


def test_a_refused_secret_is_not_shown() -> None:
    secret = config(ConfigType.PASSWORD, one_of("other"))
    with pytest.raises(InvalidConfig) as caught:
        secret.parse("hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (12, "12"),
        ((), ""),
        (("a", "b"), "a,b"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (0.0001, "1.0E-4"),
        (-2.5e-10, "-2.5E-10"),
        (0.0, "0.0"),
        (float("inf"), "Infinity"),
    ],
)
def test_values_are_written_as_java_writes_them(value: Value, text: str | None) -> None:
    assert config(ConfigType.STRING).render(value) == text


def test_a_misspelt_name_finds_the_nearest_name() -> None:
    assert nearest("log.segment.byte", ["log.dirs", "log.segment.bytes"]).endswith(
        "log.segment.bytes?"
    )
    assert nearest("colour", ["log.dirs", "log.segment.bytes"]) == ""
