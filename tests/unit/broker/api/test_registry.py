"""The table of APIs and the facts that handlers state about themselves."""

import inspect
import runpy
import subprocess
import sys
from pathlib import Path
from types import UnionType

import pytest

from headrace.broker.api.registry import APIS, Entry, api, registration_of
from headrace.errors import InvalidRequest
from headrace.protocol.api_keys import ApiKey

ROOT = Path(__file__).resolve().parents[4]
ENTRIES = pytest.mark.parametrize("entry", APIS.values(), ids=lambda entry: entry.key.name)
SERVED_FROM_THE_FRAME = {ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH}


def test_the_generated_table_matches_the_handlers() -> None:
    """Else: `make docs`."""
    tool = runpy.run_path(str(ROOT / "tools" / "api_table.py"))
    assert tool["TABLE"].read_text() == tool["render"]()


@ENTRIES
def test_schemas_cover_every_version_served(entry: Entry) -> None:
    if entry.key in SERVED_FROM_THE_FRAME:
        pytest.skip("reads its frames itself")
    handler = entry.handler()
    for message in (handler.request_type, handler.response_type):
        assert entry.key == message.API_KEY
        assert set(entry.versions) <= set(message.VERSIONS)


@ENTRIES
def test_every_request_can_be_refused_in_every_version(entry: Entry) -> None:
    if entry.key in SERVED_FROM_THE_FRAME:
        pytest.skip("answers its errors itself")
    from headrace.protocol.codec import encode

    handler = entry.handler()
    for version in entry.versions:
        refused = handler.refuse(handler.request_type(), InvalidRequest("no"), version)
        assert isinstance(refused, handler.response_type)
        encode(refused, version)


def test_the_lowest_advertised_version_may_be_below_the_lowest_served() -> None:
    assert APIS[ApiKey.PRODUCE].advertised == (0, 13)
    assert APIS[ApiKey.FETCH].advertised == (4, 18)


def test_a_response_without_a_code_at_the_top_needs_its_own_refusal() -> None:
    """Every handler of such a response has one; this is what happens to one without."""
    from headrace.protocol.schemas.create_topics import CreateTopicsRequest, CreateTopicsResponse

    @api(ApiKey.CREATE_TOPICS, versions=range(2, 8))
    def handler(request: CreateTopicsRequest) -> CreateTopicsResponse:
        return CreateTopicsResponse()

    assert registration_of(handler).refuse is None
    assert "error_code" not in CreateTopicsResponse.__struct_fields__


@ENTRIES
def test_annotations_are_types_and_not_text(entry: Entry) -> None:
    """Dispatch takes the request and response types from the signature."""
    if entry.key in SERVED_FROM_THE_FRAME:
        pytest.skip("reads its frames itself")
    annotations = inspect.get_annotations(entry.function())
    returned = annotations["return"]
    first = returned.__args__[0] if isinstance(returned, UnionType) else returned
    assert isinstance(annotations["request"], type)
    assert isinstance(first, type)


def test_the_table_imports_no_handler_and_no_schema() -> None:
    script = (
        "import sys; import headrace.broker.api.registry; "
        "print([m for m in sys.modules if m.startswith('headrace.protocol.schemas') "
        "or m.startswith('headrace.broker.api.') and not m.endswith(('registry', 'table'))])"
    )
    run = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    assert run.stdout.strip() == "[]"
