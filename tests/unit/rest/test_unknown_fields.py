"""Fields that nobody knows."""

import msgspec
import pytest

from headrace.rest.unknown_fields import names, refusal_of


class Inner(msgspec.Struct, forbid_unknown_fields=True):
    data: int = 0


class Outer(msgspec.Struct, forbid_unknown_fields=True):
    value: Inner | None = None


def error_of(body: bytes) -> msgspec.ValidationError:
    with pytest.raises(msgspec.ValidationError) as failure:
        msgspec.json.decode(body, type=Outer)
    return failure.value


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"valu":{}}', 'Unrecognized field "valu"'),
        (b'{"value":{"id":1}}', 'Unrecognized field "id" - at `$.value`'),
        (b'{"a`b":1}', 'Unrecognized field "a`b"'),
    ],
)
def test_a_field_that_nobody_knows_is_named_with_its_place(body: bytes, message: str) -> None:
    refusal = refusal_of(error_of(body))
    assert refusal is not None
    assert (refusal.status, str(refusal)) == (400, f"Bad Request: {message}")


def test_what_else_is_wrong_is_not_for_this_refusal() -> None:
    assert refusal_of(error_of(b'{"value":{"data":"x"}}')) is None


def test_only_a_field_at_the_top_is_told_apart_by_its_name() -> None:
    found = [names(error_of(body), "id") for body in (b'{"id":1}', b'{"value":{"id":1}}')]
    assert found == [True, False]
