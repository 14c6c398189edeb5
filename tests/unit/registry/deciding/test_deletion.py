"""Deletion of versions, subjects and contexts, and the obstacles to it."""

import pytest

from headrace.registry.compatibility.levels import Level
from headrace.registry.deciding.deletion import delete_context, delete_subject, delete_version
from headrace.registry.deciding.scopes import ConfigUpdate, set_mode, update_config
from headrace.registry.errors import (
    ContextNotEmpty,
    NotPermitted,
    ReferenceExists,
    RegistryError,
    SubjectNotFound,
    SubjectNotSoftDeleted,
    SubjectSoftDeleted,
    VersionNotFound,
    VersionNotSoftDeleted,
    VersionSoftDeleted,
)
from headrace.registry.model.records import Mode
from headrace.serdes.contracts import Reference
from tests.processes.registries import USER, USER_WITH_NAME, Shelf

ORDER = '{"type":"record","name":"Order","fields":[{"name":"user","type":"User"}]}'


@pytest.fixture
def shelf() -> Shelf:
    """A subject of two versions."""
    shelf = Shelf()
    for text in (USER, USER_WITH_NAME):
        shelf.register("user", text)
    return shelf


def delete(shelf: Shelf, version: int, *, permanent: bool = False) -> int:
    return shelf.apply(delete_version(shelf.state, "user", version, permanent=permanent))


def test_a_deleted_version_is_still_found_by_id(shelf: Shelf) -> None:
    delete(shelf, 1)
    found = shelf.state.by_id(1)
    assert found is not None
    assert found.value.deleted
    assert shelf.state.version("user", 1) is None


def test_deleting_the_latest_returns_its_number(shelf: Shelf) -> None:
    assert delete(shelf, -1) == 2


def test_a_version_goes_for_good_in_two_steps(shelf: Shelf) -> None:
    delete(shelf, 1)
    delete(shelf, 1, permanent=True)
    assert shelf.state.by_id(1) is None


def test_deleting_a_subject_returns_its_versions(shelf: Shelf) -> None:
    reply = shelf.apply(delete_subject(shelf.state, "user", permanent=False))
    assert (reply, shelf.state.has_subject("user")) == ([1, 2], False)


def test_a_subject_goes_for_good_with_its_settings(shelf: Shelf) -> None:
    shelf.apply(update_config(shelf.state, "user", ConfigUpdate(compatibility=Level.NONE)))
    for permanent in (False, True):
        shelf.apply(delete_subject(shelf.state, "user", permanent=permanent))
    assert shelf.state.config("user") is None
    assert not shelf.state.has_subject("user", with_deleted=True)


def test_the_last_version_takes_the_settings_along(shelf: Shelf) -> None:
    shelf.apply(update_config(shelf.state, "user", ConfigUpdate(compatibility=Level.NONE)))
    for version in (1, 2):
        delete(shelf, version)
        delete(shelf, version, permanent=True)
    assert shelf.state.config("user") is None


@pytest.mark.parametrize(
    ("deleted", "version", "permanent", "refusal"),
    [
        ((), 9, False, VersionNotFound),
        ((1,), 1, False, VersionSoftDeleted),
        ((), 1, True, VersionNotSoftDeleted),
    ],
)
def test_a_version_is_deleted_for_good_only_after_a_soft_delete(
    shelf: Shelf,
    deleted: tuple[int, ...],
    version: int,
    permanent: bool,
    refusal: type[RegistryError],
) -> None:
    for one in deleted:
        delete(shelf, one)
    with pytest.raises(refusal):
        delete(shelf, version, permanent=permanent)


def test_a_subject_is_deleted_for_good_only_after_a_soft_delete(shelf: Shelf) -> None:
    with pytest.raises(SubjectNotSoftDeleted):
        delete_subject(shelf.state, "user", permanent=True)
    with pytest.raises(SubjectNotFound):
        delete_subject(shelf.state, "none", permanent=False)
    shelf.apply(delete_subject(shelf.state, "user", permanent=False))
    with pytest.raises(SubjectSoftDeleted):
        delete_subject(shelf.state, "user", permanent=False)


def test_referenced_versions_cannot_be_deleted(shelf: Shelf) -> None:
    shelf.register("order", ORDER, Reference("User", "user", 1))
    with pytest.raises(ReferenceExists, match="subject=user,version=1"):
        delete(shelf, 1)
    with pytest.raises(ReferenceExists):
        delete_subject(shelf.state, "user", permanent=False)


def test_a_soft_deleted_referrer_allows_only_a_soft_delete(shelf: Shelf) -> None:
    shelf.register("order", ORDER, Reference("User", "user", 1))
    shelf.apply(delete_subject(shelf.state, "order", permanent=False))
    delete(shelf, 1)
    with pytest.raises(ReferenceExists):
        delete(shelf, 1, permanent=True)


def test_a_subject_that_is_read_only_keeps_its_versions(shelf: Shelf) -> None:
    shelf.apply(set_mode(shelf.state, "user", Mode.READONLY))
    with pytest.raises(NotPermitted):
        delete(shelf, 1)
    with pytest.raises(NotPermitted):
        delete_subject(shelf.state, "user", permanent=False)


def test_a_context_goes_when_it_is_empty(shelf: Shelf) -> None:
    shelf.register(":.x:user", USER)
    with pytest.raises(ContextNotEmpty):
        delete_context(shelf.state, ":.x:")
    for permanent in (False, True):
        shelf.apply(delete_subject(shelf.state, ":.x:user", permanent=permanent))
    shelf.apply(delete_context(shelf.state, ":.x:"))
    assert shelf.state.contexts == []
