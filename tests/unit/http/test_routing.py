"""Paths: literal and variable segments, slashes within them, and methods."""

import pytest

from headrace.http.routing import Router, allowed_methods, path_segments

ROUTES = [
    ("GET", "/"),
    ("GET", "/schemas/types"),
    ("GET", "/schemas/ids/{id}"),
    ("POST", "/subjects/{subject}"),
    ("DELETE", "/subjects/{subject}"),
    ("GET", "/topics/-/configs"),
    ("POST", "/topics/-/configs"),
    ("GET", "/topics/{topic}/configs"),
    ("DELETE", "/topics/{topic}/configs"),
    ("GET", "/topics/{topic}/partitions"),
    ("GET", "/transactions/{id}"),
    ("POST", "/transactions/{id}:terminate"),
]
ROUTER = Router((method, path, path) for method, path in ROUTES)


def found(path: bytes) -> dict[str, tuple[str, dict[str, str]]]:
    return ROUTER.match(path_segments(path))


def test_a_path_has_targets_by_method_with_its_values() -> None:
    target = ("/subjects/{subject}", {"subject": "a"})
    assert found(b"/subjects/a") == {"POST": target, "DELETE": target}


@pytest.mark.parametrize(
    "path", [b"/nothing", b"/schemas", b"/subjects/a/b", b"/subjects%2Fa", b"/topics//configs"]
)
def test_other_paths_have_no_target(path: bytes) -> None:
    assert found(path) == {}


@pytest.mark.parametrize("path", [b"/", b"", b"//"])
def test_the_root_is_a_path(path: bytes) -> None:
    assert found(path)["GET"][0] == "/"


def test_slashes_at_the_end_do_not_count() -> None:
    assert found(b"/schemas/types/")["GET"][0] == "/schemas/types"


def test_a_segment_may_contain_an_escaped_slash() -> None:
    assert found(b"/subjects/a%2Fb%252F")["POST"][1] == {"subject": "a/b%2F"}


def test_a_literal_segment_precedes_a_variable_one() -> None:
    targets = found(b"/topics/-/configs")
    assert targets["GET"] == ("/topics/-/configs", {})
    assert targets["DELETE"] == ("/topics/{topic}/configs", {"topic": "-"})


def test_a_literal_segment_that_leads_nowhere_is_a_value() -> None:
    assert found(b"/topics/-/partitions")["GET"][1] == {"topic": "-"}


def test_a_variable_with_literal_text_precedes_a_bare_one() -> None:
    targets = found(b"/transactions/a:terminate")
    assert targets["POST"] == ("/transactions/{id}:terminate", {"id": "a"})
    assert targets["GET"] == ("/transactions/{id}", {"id": "a:terminate"})


def test_segments_may_be_empty_where_that_is_allowed() -> None:
    router = Router([("GET", "/subjects/{subject}/versions", 1)], allows_empty=True)
    assert router.match(path_segments(b"/subjects//versions")) == {"GET": (1, {"subject": ""})}


def test_two_targets_of_one_method_and_path_are_a_mistake() -> None:
    with pytest.raises(AssertionError, match="described twice"):
        Router([("GET", "/a/{b}", 1), ("GET", "/a/{c}", 2)])


def test_get_allows_head_and_every_path_allows_options() -> None:
    assert allowed_methods(["GET", "POST"]) == "GET, HEAD, OPTIONS, POST"
    assert allowed_methods(["POST"]) == "OPTIONS, POST"
