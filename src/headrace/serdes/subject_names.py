"""Contexts and subjects: `:.staging:orders-value` is `orders-value` in the context `.staging`.

A context has its own ids, subjects and settings. Names without a context are in the default one,
`.`; `:*:` means all contexts, and settings of `:.__GLOBAL:` apply to every context.
"""

from typing import NamedTuple, Self

DEFAULT_CONTEXT = "."
GLOBAL_CONTEXT = ".__GLOBAL"
EVERY_CONTEXT = ":*:"

_PREFIX = ":."
_RESERVED_SUBJECTS = ("__GLOBAL", "__EMPTY")


class QualifiedSubject(NamedTuple):
    """A subject and its context; an empty subject means the context itself."""

    context: str
    subject: str

    @classmethod
    def parse(cls, text: str) -> Self:
        if text.startswith(_PREFIX):
            context, _, subject = text[1:].partition(":")
            return cls(context, subject)
        if text.startswith(EVERY_CONTEXT):
            return cls("*", text.removeprefix(EVERY_CONTEXT))
        return cls(DEFAULT_CONTEXT, text)

    @property
    def context_prefix(self) -> str:
        """The prefix of the context's subjects, empty for the default context."""
        return "" if self.context == DEFAULT_CONTEXT else f":{self.context}:"

    def __str__(self) -> str:
        return self.context_prefix + self.subject


def normalized(subject: str) -> str:
    """Return the canonical spelling of a subject: `:.:orders` is `orders`."""
    return str(QualifiedSubject.parse(subject))


def context_of(subject: str) -> str:
    return QualifiedSubject.parse(subject).context


def qualified_by(parent: str, subject: str) -> QualifiedSubject:
    """Return the subject that a schema of `parent` names, by default in the parent's context."""
    found = QualifiedSubject.parse(subject)
    if found.context != DEFAULT_CONTEXT:
        return found
    return QualifiedSubject(context_of(parent), found.subject)


def normalized_context(text: str) -> str:
    """Return the prefix `:.staging:` for `staging`, `.staging` or `:.staging:`; empty for `.`."""
    name = text.removeprefix(":").removesuffix(":")
    if ":" in name:
        raise ValueError(f"Context name '{name}' cannot contain a colon")
    if not name.startswith("."):
        name = f".{name}"
    return "" if name == DEFAULT_CONTEXT else f":{name}:"


def is_valid_subject(text: str, *, for_settings: bool = False) -> bool:
    """Return whether a schema or setting may be stored under this name."""
    if any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text):
        return False
    found = QualifiedSubject.parse(text)
    if found.subject in _RESERVED_SUBJECTS:
        return False
    return for_settings or found.context != GLOBAL_CONTEXT


def is_default_context(subject: str) -> bool:
    """Return whether the name means the default context itself."""
    return QualifiedSubject.parse(subject) == (DEFAULT_CONTEXT, "")


class SubjectPrefix:
    """The subjects that match a `subjectPrefix`, in one context or with `:*:` in all."""

    def __init__(self, text: str) -> None:
        before, every, rest = text.partition(EVERY_CONTEXT)
        self._is_everywhere = bool(every) and not before
        found = QualifiedSubject.parse(text)
        self._subject = rest if self._is_everywhere else found.subject
        self._context = found.context
        # A context without a closing colon is itself a prefix.
        self._is_open = text.startswith(_PREFIX) and ":" not in text[1:]

    def covers(self, subject: str) -> bool:
        found = QualifiedSubject.parse(subject)
        if self._is_open:
            return found.context.startswith(self._context)
        is_inside = self._is_everywhere or found.context == self._context
        return is_inside and found.subject.startswith(self._subject)


class SubjectMatch:
    """A subject, or all subjects of a context."""

    def __init__(self, text: str | None) -> None:
        self._text = text
        self._found = QualifiedSubject.parse(text) if text is not None else None

    @property
    def is_one(self) -> bool:
        """Return whether it names a single subject."""
        return self._found is not None and bool(self._found.subject)

    def covers(self, subject: str) -> bool:
        if self._found is None or subject == self._text:
            return True
        if self._found.subject:
            return False
        return self._found.context in (GLOBAL_CONTEXT, context_of(subject))
