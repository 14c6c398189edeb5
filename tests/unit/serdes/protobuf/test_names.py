"""Names in a .proto file are resolved from their scope."""

import pytest

from headrace.serdes.protobuf.names import names_of, resolve
from headrace.serdes.protobuf.parsing import parse

KNOWN = {"a.B", "a.B.C", "a.C", "C", "a.a.D"}


@pytest.mark.parametrize(
    ("name", "scope", "found"),
    [
        ("C", "a.B", "a.B.C"),
        ("C", "a", "a.C"),
        ("C", "x.y", "C"),
        (".C", "a.B", "C"),
        ("B.C", "a.B", "a.B.C"),
        ("a.C", "a", "a.C"),
        ("a.D", "a", "a.a.D"),
        ("int32", "a.B", None),
        (".x", "a", None),
    ],
)
def test_the_innermost_scope_that_has_the_name_wins(
    name: str, scope: str, found: str | None
) -> None:
    assert resolve(name, scope, KNOWN) == found


def test_types_and_extensions_are_known_by_full_name() -> None:
    schema = parse(
        'syntax = "proto2"; package p; message A { message B {} enum E { Z = 0; } '
        "extensions 1 to 9; extend A { optional int32 x = 1; } } extend A { repeated int32 y = 2; }"
    )
    names = names_of([schema.descriptor])
    assert names.types == {"p.A", "p.A.B", "p.A.E"}
    assert names.extensions == {"p.A.x": False, "p.y": True}
