"""Patterns of topic names, which match anywhere in a name, as in the stock connector.

Its patterns are Java's; these are Python's, and agree in nearly all that topic names need. Patterns
that Python does not support or reads differently are rejected, because reading other topics would
lose records.
"""

import re
import warnings

_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")


def pattern_complaint(pattern: str) -> str | None:
    """Check a pattern; return an error or None."""
    if not pattern.strip():
        return "is empty; .* is every topic"
    try:
        with warnings.catch_warnings():
            # Java supports differences of sets, where Python only warns of a future meaning.
            warnings.simplefilter("error", FutureWarning)
            re.compile(pattern)
    except re.error as error:
        return f"is not a valid regular expression: {error} (by Python's rules, not Java's)"
    except FutureWarning as warning:
        return f"is read differently by Java ({warning}); escape the signs, or list them"
    return None


def is_like(pattern: str, topic: str) -> bool:
    """Return whether a pattern matches anywhere in a topic's name."""
    return re.search(pattern, topic) is not None


def whole(pattern: str) -> str:
    """Anchor a pattern to whole names; Python requires flags in front."""
    flags = _FLAGS.match(pattern)
    begin = flags.end() if flags is not None else 0
    return f"{pattern[:begin]}^(?:{pattern[begin:]})$"
