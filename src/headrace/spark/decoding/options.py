"""The options of payload formats."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.spark.decoding.errors import InvalidFormatOption
from headrace.spark.option_values import OptionValues

RECURSION = "recursiveFieldMaxDepth"
RECURSION_MAX = 15

SCHEMA_FILE_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class PayloadOptions:
    """A source's options by case-insensitive names."""

    values: Mapping[str, str]

    def text(self, name: str, default: str = "") -> str:
        return self.values.get(name.lower(), default)

    def flag(self, name: str) -> bool:
        return OptionValues(self.values, InvalidFormatOption).flag(name)

    def required(self, name: str, example: str) -> str:
        value = self.text(name)
        if not value.strip():
            format_ = self.text("format")
            raise InvalidFormatOption(
                f"the payload format {format_} needs the option {name}, such as {example}"
            )
        return value

    def schema_text(self, name: str, begins_with: tuple[str, ...], example: str) -> str:
        """Return a schema's text, or that of the file that the option names.

        Files are read where the query is planned, because workers may not have them.
        """
        value = self.required(name, example)
        if value.lstrip().startswith(begins_with) or "\n" in value:
            return value
        path = Path(value.removeprefix("file://"))
        try:
            if path.stat().st_size > SCHEMA_FILE_BYTES_MAX:
                raise InvalidFormatOption(f"the schema file {path} is larger than 1 MB")
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidFormatOption(
                f"the option {name} is neither a schema nor a file that can be read: {error}"
            ) from error


def recursive_depth(options: PayloadOptions) -> int:
    """Return the nesting of a record in itself, by the option of Spark's Avro reader."""
    text = options.text(RECURSION, "0").strip()
    # For Spark, numbers below 1 forbid it, and -1 is the default.
    if not text.removeprefix("-").isdecimal() or int(text) > RECURSION_MAX:
        raise InvalidFormatOption(
            f"the option {RECURSION} is a number up to {RECURSION_MAX}, not {text!r}"
        )
    return max(int(text), 0)
