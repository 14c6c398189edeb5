"""Random requests by the registry's OpenAPI document cause no server error."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case
from schemathesis.checks import not_a_server_error

from headrace.registry.routes.application import application
from tests.processes.nodes import Node
from tests.processes.registries import USER, RegistryProcess, RegistryWithoutKafka

EXAMPLES = 25


@pytest.fixture(scope="module")
def fuzzed(
    shared_node: Node, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RegistryProcess]:
    """A registry with a few schemas in it."""
    folder = tmp_path_factory.mktemp("fuzz")
    own = {"kafkastore.topic": "_schemas-fuzz", "schema.registry.group.id": "fuzz"}
    registry = RegistryProcess(shared_node.address, folder / "registry.log", own)
    registry.wait_until_ready()
    for subject in ("0", "a", ":.x:a"):
        assert registry.register(subject, USER).status_code == 200
    yield registry
    log = registry.log.read_text()
    registry.end()
    assert "Traceback" not in log, log[-8000:]


@pytest.fixture(scope="module")
def description(fuzzed: RegistryProcess) -> Any:
    return schemathesis.openapi.from_url(f"{fuzzed.url}/openapi.json")


OPERATIONS = [(one.method, one.path) for one in application(RegistryWithoutKafka()).all_operations]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_no_request_is_answered_with_a_server_error(
    description: Any, method: str, path: str
) -> None:
    @given(case=description[path][method].as_strategy())
    @settings(
        max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    def ask(case: Case[Any]) -> None:
        case.call_and_validate(checks=[not_a_server_error], timeout=60)

    ask()


ODD_PATHS = [
    "/subjects//versions",
    "/subjects/%00/versions/1",
    "/subjects/%ff%fe/versions/1",
    "/subjects/%F0%9F%98%80/versions",
    "/subjects/" + "x" * 5_000 + "/versions",
    "/contexts//subjects",
    "/contexts/:::/subjects",
    "/schemas/ids/-1",
    "/schemas/ids/99999999999999999999",
    "/schemas/ids/%31",
    "/schemas?subjectPrefix=:*:&limit=-5&offset=-9",
    "/subjects?subjectPrefix=%ff",
    "/%",
    "//",
]


@pytest.mark.parametrize("path", ODD_PATHS)
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "HEAD", "OPTIONS", "PATCH"])
def test_odd_paths_get_an_answer(fuzzed: RegistryProcess, method: str, path: str) -> None:
    answer = fuzzed.client.request(method, path)
    assert answer.status_code < 500, answer.text
