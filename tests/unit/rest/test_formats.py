"""Media types."""

import pytest
from starlette.requests import Request

from headrace.http.errors import NotAcceptable, UnsupportedMediaType
from headrace.rest.formats import (
    V2_JSON,
    Format,
    answer_type,
    check_control_type,
    produced_format,
    wanted_formats,
)


def request(**headers: str) -> Request:
    raw = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    return Request({"type": "http", "headers": raw})


@pytest.mark.parametrize("format", [one for one in Format if one is not Format.STRING])
def test_a_content_type_names_the_form_of_records(format: Format) -> None:
    given = request(content_type=f"{format.media_type}; charset=utf-8")
    assert produced_format(given) is format


@pytest.mark.parametrize("type", ["application/json", V2_JSON, "", "text/plain"])
def test_other_content_types_name_none(type: str) -> None:
    with pytest.raises(UnsupportedMediaType, match=r"json\.v2\+json"):
        produced_format(request(content_type=type))


@pytest.mark.parametrize(
    ("accept", "format"),
    [
        ("application/vnd.kafka.json.v2+json", Format.JSON),
        ("application/vnd.kafka.avro.v2+json, */*;q=0.1", Format.AVRO),
        ("*/*", None),
        ("", None),
        (V2_JSON, None),
        ("application/json", None),
    ],
)
def test_a_read_may_ask_for_a_form(accept: str, format: Format | None) -> None:
    assert wanted_formats(request(accept=accept)) is format


def test_an_unknown_answer_type_is_not_acceptable() -> None:
    with pytest.raises(NotAcceptable):
        wanted_formats(request(accept="image/png"))
    with pytest.raises(NotAcceptable):
        answer_type(request(accept="image/png"))


@pytest.mark.parametrize(
    ("accept", "type"),
    [
        ("", V2_JSON),
        ("*/*", V2_JSON),
        ("application/json", "application/json"),
        ("application/vnd.kafka.json.v2+json", V2_JSON),
    ],
)
def test_answers_have_the_preferred_type(accept: str, type: str) -> None:
    assert answer_type(request(accept=accept)) == type


def test_control_bodies_are_json() -> None:
    for type in (V2_JSON, "application/json", "application/vnd.kafka.binary.v2+json", ""):
        check_control_type(request(content_type=type))
    with pytest.raises(UnsupportedMediaType):
        check_control_type(request(content_type="text/xml"))
