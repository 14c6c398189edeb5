"""What must be on a machine for Spark to run there: Java, PySpark, and the executors' packages."""

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from headrace.spark.java import JavaMissing, find_java

PACKAGES = (
    "pyspark",
    "pyarrow",
    "numba",
    "pandas",
    "confluent-kafka",
    "msgspec",
    "cramjam",
    "fastcrc",
    "deltalake",
    "duckdb",
    "fastavro",
    "protobuf",
)
"""What the workers' Python must have; headrace itself is shipped to them."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    is_fine: bool
    text: str


def examine() -> list[Finding]:
    """Look at this machine's Java and at this Python's packages."""
    return [_java(), *(_package(name) for name in PACKAGES)]


def _java() -> Finding:
    try:
        java = find_java()
    except JavaMissing as error:
        return Finding(False, str(error))
    return Finding(True, f"Java {java.version} at {java.path}")


def _package(name: str) -> Finding:
    try:
        return Finding(True, f"{name} {version(name)}")
    except PackageNotFoundError:
        return Finding(False, f"{name} is missing: pip install '/path/to/headrace[spark]'")
