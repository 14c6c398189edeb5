"""Which schema ids a registry has given out, by subject: what its topic says, replayed.

The topic is Confluent's `_schemas`: keys and values are JSON, compacted. A broker reads it to
refuse payloads of schemas that nobody registered, so only what that takes is looked at here.
"""

import logging

import msgspec

from headrace.serdes.contracts import Metadata, Reference, RuleSet
from headrace.serdes.fingerprints import fingerprint, guid, stored_fingerprint
from headrace.serdes.wire_format import SchemaId

_log = logging.getLogger(__name__)


class _Key(msgspec.Struct):
    keytype: str
    subject: str | None = None
    version: int = 0


class _Value(msgspec.Struct, rename="camel"):
    id: int = -1
    version: int = 0
    schema: str = ""
    md5: str | None = None
    references: list[Reference] | None = None
    metadata: Metadata | None = None
    rule_set: RuleSet | None = None
    deleted: bool = False

    def guid(self) -> str:
        return guid(
            stored_fingerprint(self.md5)
            or fingerprint(self.schema, self.references or (), self.metadata, self.rule_set)
        )


_read_key = msgspec.json.Decoder(_Key).decode
_read_value = msgspec.json.Decoder(_Value).decode


class RegisteredIds:
    """The live versions of every subject. Threads may look while the owner replays."""

    def __init__(self) -> None:
        self._subjects: dict[SchemaId, frozenset[str]] = {}
        self._versions: dict[str, dict[int, tuple[SchemaId, ...]]] = {}
        self._uses: dict[tuple[SchemaId, str], int] = {}

    def subjects_of(self, id_: SchemaId) -> frozenset[str]:
        """The subjects under which a schema is registered and not deleted; none if unknown."""
        return self._subjects.get(id_, frozenset())

    def replay(self, key: bytes | None, value: bytes | None) -> None:
        """Take in one record of the topic; records of other kinds say nothing of ids."""
        try:
            found = _read_key(key or b"")
            told = None if value is None else _read_value(value)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            _log.warning("a record of the registry's topic is not understood: %s", error)
            return
        subject = found.subject or ""  # A config for all subjects names none.
        if found.keytype == "SCHEMA":
            self._forget(subject, found.version)
            if told is not None and not told.deleted:
                self._learn(subject, found.version, told)
        elif found.keytype == "DELETE_SUBJECT" and told is not None:
            self._forget_through(subject, told.version)

    def _learn(self, subject: str, version: int, value: _Value) -> None:
        ids: tuple[SchemaId, ...] = value.id, value.guid()
        self._versions.setdefault(subject, {})[version] = ids
        for id_ in ids:
            self._uses[id_, subject] = self._uses.get((id_, subject), 0) + 1
            self._subjects[id_] = self.subjects_of(id_) | {subject}

    def _forget(self, subject: str, version: int) -> None:
        """Two versions of a subject may share an id, as a schema that was changed and came back."""
        for id_ in self._versions.get(subject, {}).pop(version, ()):
            uses = self._uses[id_, subject] = self._uses[id_, subject] - 1
            if not uses:
                del self._uses[id_, subject]
                self._subjects[id_] = self.subjects_of(id_) - {subject}

    def _forget_through(self, subject: str, last_version: int) -> None:
        for version in [one for one in self._versions.get(subject, ()) if one <= last_version]:
            self._forget(subject, version)
