"""Patterns of topics' names, as the stock connector takes them: it looks for one within a name.

Its patterns are Java's, ours Python's. They agree in nearly all that names of topics need; what
Python does not have, or reads otherwise, is refused, as to read other topics is to lose records.
"""

import re
import warnings

_FLAGS = re.compile(r"\(\?[a-zA-Z]+\)")


def pattern_complaint(pattern: str) -> str | None:
    """What is wrong with a pattern; None if nothing is."""
    if not pattern.strip():
        return "is empty; .* is every topic"
    try:
        with warnings.catch_warnings():
            # Java subtracts sets from each other where Python only warns that it might one day.
            warnings.simplefilter("error", FutureWarning)
            re.compile(pattern)
    except re.error as error:
        return f"is no regular expression: {error} (by Python's rules, not Java's)"
    except FutureWarning as warning:
        return (
            f"has what Java reads otherwise than Python ({warning}); escape it, or list the signs"
        )
    return None


def is_like(pattern: str, topic: str) -> bool:
    """Whether a pattern is found in a topic's name, wherever it is."""
    return re.search(pattern, topic) is not None


def whole(pattern: str) -> str:
    """The pattern that is like whole names only; Python wants flags in front of all else."""
    flags = _FLAGS.match(pattern)
    begin = flags.end() if flags is not None else 0
    return f"{pattern[:begin]}^(?:{pattern[begin:]})$"
