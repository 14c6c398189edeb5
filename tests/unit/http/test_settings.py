"""Settings of products under property names."""

import msgspec
import pytest

from headrace.errors import InvalidConfig
from headrace.http.settings import property_name, property_names, typed


class Limits(msgspec.Struct, rename=property_name):
    client_timeout_ms: int = 1_000
    is_strict: bool = False


def test_properties_are_fields_with_dots() -> None:
    assert property_names(Limits) == {"client.timeout.ms", "is.strict"}


def test_texts_become_values_of_their_type() -> None:
    given = {"client.timeout.ms": "250", "is.strict": "true"}
    assert typed(Limits, given) == Limits(250, is_strict=True)
    assert typed(Limits, {}) == Limits()


def test_an_unknown_property_is_rejected_with_the_nearest_name() -> None:
    with pytest.raises(InvalidConfig, match=r"client\.timeout\.m'.*client\.timeout\.ms"):
        typed(Limits, {"client.timeout.m": "250"})


def test_a_value_of_another_type_is_rejected_with_its_property() -> None:
    with pytest.raises(InvalidConfig, match=r"client\.timeout\.ms"):
        typed(Limits, {"client.timeout.ms": "soon"})
