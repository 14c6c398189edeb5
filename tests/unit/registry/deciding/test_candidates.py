"""A schema with all that it needs, in the form that is stored."""

import pytest

from headrace.registry.deciding.candidates import (
    Candidate,
    candidate_of,
    canonical,
    dependencies_of,
)
from headrace.registry.deciding.deletion import delete_version
from headrace.registry.errors import InvalidSchemaGiven
from headrace.serdes.contracts import Reference
from headrace.serdes.schemas import Dependency
from tests.processes.registries import USER, Shelf

ADDRESS = '{"type":"record","name":"Address","fields":[]}'
PERSON = '{"type":"record","name":"Person","fields":[{"name":"home","type":"Address"}]}'
ADDRESSES = Reference("Address", "address", 1)


@pytest.fixture
def shelf() -> Shelf:
    """A person that has an address."""
    shelf = Shelf()
    shelf.register("address", ADDRESS)
    shelf.register("person", PERSON, ADDRESSES)
    return shelf


def test_dependencies_come_before_their_referrers(shelf: Shelf) -> None:
    reference = Reference("Person", "person", 1)
    assert dependencies_of(shelf.state, "order", [reference], is_new=True) == [
        Dependency("Address", ADDRESS),
        Dependency("Person", PERSON),
    ]


def test_dependencies_are_listed_once(shelf: Shelf) -> None:
    references = [ADDRESSES, Reference("Person", "person", 1)]
    found = dependencies_of(shelf.state, "order", references, is_new=True)
    assert [one.name for one in found] == ["Address", "Person"]


def test_a_stored_schema_may_refer_to_deleted_schemas(shelf: Shelf) -> None:
    shelf.apply(delete_version(shelf.state, "person", 1, permanent=False))
    shelf.apply(delete_version(shelf.state, "address", 1, permanent=False))
    assert dependencies_of(shelf.state, "person", [ADDRESSES], is_new=False)
    with pytest.raises(InvalidSchemaGiven, match="No schema reference found"):
        dependencies_of(shelf.state, "person", [ADDRESSES], is_new=True)


def test_the_text_loses_its_layout(shelf: Shelf) -> None:
    candidate = Candidate(subject="a", text=USER.replace(",", " ,\n "))
    given, _ = canonical(shelf.state, candidate, is_new=True, normalize=False)
    assert given.text == USER


def test_a_stored_version_is_a_candidate_again(shelf: Shelf) -> None:
    entry = shelf.state.latest("person")
    assert entry is not None
    again = candidate_of(entry.value)
    assert again.stored(entry.value.version, entry.value.id) == entry.value
