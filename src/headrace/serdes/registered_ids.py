"""Which schema ids a registry has given out, by subject: what its topic says, replayed.

A broker reads it to refuse payloads of schemas that nobody registered, so only what that takes is
kept here. The registry's own rule holds: an id that has a schema is given to no other, so a record
that says so is passed over.
"""

from typing import NamedTuple

from headrace.serdes.fingerprints import fingerprint, guid
from headrace.serdes.schema_records import (
    ClearSubjectKey,
    ClearSubjectValue,
    DeleteSubjectKey,
    DeleteSubjectValue,
    SchemaKey,
    SchemaValue,
    UnknownRecord,
    decoder_of,
)
from headrace.serdes.subject_names import SubjectMatch, context_of
from headrace.serdes.wire_format import SchemaId

_decode = decoder_of(
    {
        SchemaKey: SchemaValue,
        DeleteSubjectKey: DeleteSubjectValue,
        ClearSubjectKey: ClearSubjectValue,
    }
)


class _Version(NamedTuple):
    """A version of a subject; one that is deleted keeps its id from other schemas."""

    ids: tuple[SchemaId, ...]
    holder: tuple[str, int]
    """The id and the context that it counts in."""
    is_live: bool


class _Text(NamedTuple):
    """The schema that an id stands for, and how many versions have it."""

    digest: bytes
    versions: int


class RegisteredIds:
    """The versions of every subject. Threads may look while the owner replays."""

    def __init__(self) -> None:
        self.skipped = 0
        """Records that say nothing of ids, cannot be read, or take the id of another schema."""
        self._subjects: dict[SchemaId, frozenset[str]] = {}
        self._versions: dict[str, dict[int, _Version]] = {}
        self._uses: dict[tuple[SchemaId, str], int] = {}
        self._texts: dict[tuple[str, int], _Text] = {}

    def subjects_of(self, id_: SchemaId) -> frozenset[str]:
        """The subjects under which a schema is registered and not deleted; none if unknown."""
        return self._subjects.get(id_, frozenset())

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Take in one record of the topic."""
        try:
            change = _decode(key, value)
        except UnknownRecord:
            self.skipped += 1
            return
        match change:
            case SchemaKey() as found, SchemaValue() as told:
                self._store(found, told)
            case SchemaKey() as found, None:
                self._forget(found.subject, found.version)
            case _, DeleteSubjectValue() as told:
                self._mark_deleted(told)
            case _, ClearSubjectValue() as told:
                self._clear(told.subject)

    def _store(self, key: SchemaKey, value: SchemaValue) -> None:
        holder, digest = (context_of(key.subject), value.id), fingerprint(value.schema)
        known = self._texts.get(holder)
        if known is not None and known.digest != digest:
            self.skipped += 1
            return
        self._forget(key.subject, key.version)
        ids: tuple[SchemaId, ...] = value.id, guid(value.fingerprint())
        known = self._texts.get(holder, _Text(digest, 0))
        self._texts[holder] = _Text(digest, known.versions + 1)
        version = _Version(ids, holder, not value.deleted)
        self._versions.setdefault(key.subject, {})[key.version] = version
        if version.is_live:
            self._show(ids, key.subject)

    def _forget(self, subject: str, number: int) -> None:
        versions = self._versions.get(subject, {})
        version = versions.pop(number, None)
        if version is None:
            return
        if not versions:
            del self._versions[subject]
        digest, others = self._texts.pop(version.holder)
        if others > 1:
            self._texts[version.holder] = _Text(digest, others - 1)
        if version.is_live:
            self._hide(version.ids, subject)

    def _mark_deleted(self, upto: DeleteSubjectValue) -> None:
        versions = self._versions.get(upto.subject, {})
        for number, version in versions.items():
            if number <= upto.version and version.is_live:
                versions[number] = version._replace(is_live=False)
                self._hide(version.ids, upto.subject)

    def _clear(self, subject: str | None) -> None:
        match = SubjectMatch(subject)
        for name in [name for name in self._versions if match.covers(name)]:
            for number, version in list(self._versions[name].items()):
                if not version.is_live:
                    self._forget(name, number)

    def _show(self, ids: tuple[SchemaId, ...], subject: str) -> None:
        for id_ in ids:
            self._uses[id_, subject] = self._uses.get((id_, subject), 0) + 1
            self._subjects[id_] = self.subjects_of(id_) | {subject}

    def _hide(self, ids: tuple[SchemaId, ...], subject: str) -> None:
        """Two versions of a subject may share an id, as a schema that was changed and came back."""
        for id_ in ids:
            uses = self._uses.pop((id_, subject)) - 1
            if uses:
                self._uses[id_, subject] = uses
                continue
            left = self.subjects_of(id_) - {subject}
            if left:
                self._subjects[id_] = left
            else:
                del self._subjects[id_]
