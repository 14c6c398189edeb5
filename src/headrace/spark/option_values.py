"""Values of options by their case-insensitive names; an error names the option."""

from collections.abc import Mapping

from headrace.errors import HeadraceError


class OptionValues:
    """Parses single options; invalid ones raise the given error."""

    def __init__(self, options: Mapping[str, str], error: type[HeadraceError]) -> None:
        self._given = {name.lower(): value for name, value in options.items()}
        self._error = error

    def text(self, name: str) -> str | None:
        value = self._given.get(name.lower())
        return None if value is None else value.strip()

    def words(self, name: str) -> tuple[str, ...]:
        """Return the words between commas."""
        return tuple(word for word in map(str.strip, (self.text(name) or "").split(",")) if word)

    def flag(self, name: str, *, default: bool = False) -> bool:
        text = self.text(name)
        if text is None:
            return default
        if text.lower() not in ("true", "false"):
            raise self._error(f"{name} is {text!r}; it must be true or false")
        return text.lower() == "true"

    def number(self, name: str, least: int) -> int | None:
        """Return a whole number that is not below the least one."""
        text = self.text(name)
        if text is None:
            return None
        if not text.isdigit() or int(text) < least:
            raise self._error(f"{name} is {text!r}; it must be a whole number from {least} on")
        return int(text)
