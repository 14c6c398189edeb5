"""Lookups of a schema in a subject."""

import pytest

from headrace.registry.deciding.candidates import Candidate
from headrace.registry.deciding.deletion import delete_version
from headrace.registry.deciding.lookups import look_up
from headrace.registry.errors import SchemaNotFound, SubjectNotFound
from headrace.serdes.contracts import Metadata, Reference, Rule, RuleSet
from tests.processes.registries import STRING, USER, USER_WITH_NAME, Shelf


@pytest.fixture
def shelf() -> Shelf:
    shelf = Shelf()
    for text in (USER, USER_WITH_NAME):
        shelf.register("user", text)
    return shelf


def version_of(
    shelf: Shelf, text: str, subject: str = "user", *, with_deleted: bool = False, **given: object
) -> int:
    candidate = Candidate(subject=subject, text=text, **given)  # type: ignore[arg-type]
    entry = look_up(shelf.state, candidate, normalize=False, with_deleted=with_deleted)
    return entry.value.version


def test_a_schema_is_found_however_it_is_laid_out(shelf: Shelf) -> None:
    assert version_of(shelf, USER.replace(",", " ,\n")) == 1


def test_another_schema_is_not_found(shelf: Shelf) -> None:
    with pytest.raises(SchemaNotFound):
        version_of(shelf, STRING)


def test_a_missing_subject_is_an_error(shelf: Shelf) -> None:
    with pytest.raises(SubjectNotFound):
        version_of(shelf, USER, "none")


def test_a_deleted_version_is_found_where_asked_for(shelf: Shelf) -> None:
    shelf.apply(delete_version(shelf.state, "user", 1, permanent=False))
    with pytest.raises(SchemaNotFound):
        version_of(shelf, USER)
    assert version_of(shelf, USER, with_deleted=True) == 1


def test_a_lookup_includes_settings_that_a_version_inherits(shelf: Shelf) -> None:
    rules = RuleSet(domain_rules=[Rule(name="r", type="CEL")])
    shelf.register("user", USER_WITH_NAME, rules=rules)
    assert version_of(shelf, USER_WITH_NAME, rules=rules) == 3


def test_a_schema_of_another_contract_is_another(shelf: Shelf) -> None:
    with pytest.raises(SchemaNotFound):
        version_of(shelf, USER, metadata=Metadata(properties={"a": "b"}))


def test_the_version_in_the_metadata_does_not_matter(shelf: Shelf) -> None:
    shelf.register("numbered", USER, version=-1)
    assert version_of(shelf, USER, "numbered") == 1


def test_a_subject_in_a_context_is_found_by_its_bare_name(shelf: Shelf) -> None:
    shelf.register(":.x:only", USER)
    assert version_of(shelf, USER, "only") == 1


EXTRA = USER.replace('"name":"User"', '"name":"User","first":1,"second":{"a":1,"b":2}')
REORDERED = USER.replace('"name":"User"', '"second":{"b":2,"a":1},"first":1,"name":"User"')


def test_the_order_of_properties_makes_no_difference() -> None:
    """Java's schemas are equal then, so Confluent's registry gives them one id."""
    shelf = Shelf()
    id = shelf.register("user", EXTRA).value.id
    assert version_of(shelf, REORDERED) == 1
    assert shelf.register("user", REORDERED).value.id == id
    with pytest.raises(SchemaNotFound):
        version_of(shelf, EXTRA.replace('"first":1', '"first":2'))


def test_a_schema_is_found_with_its_references_put_in_and_normalized() -> None:
    shelf = Shelf()
    shelf.register("user", EXTRA)
    order = '{"type":"record","name":"Order","fields":[{"name":"user","type":%s}]}'
    reference = Reference("User", "user", 1)
    shelf.register("order", order % '"User"', reference)
    candidate = Candidate(subject="order", text=order % REORDERED)
    for normalize in (False, True):
        found = look_up(shelf.state, candidate, normalize=normalize, with_deleted=False)
        assert found.value.subject == "order"
