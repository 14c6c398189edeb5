"""Sessions in which pipelines are planned and run."""

import pytest

from headrace.pipelines.spark_sessions import dry_run_settings

JAVA = "spark.driver.extraJavaOptions"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({}, "-XX:TieredStopAtLevel=1"),
        # Of two that contradict each other a JVM takes the last.
        ({JAVA: "-XX:TieredStopAtLevel=4"}, "-XX:TieredStopAtLevel=1 -XX:TieredStopAtLevel=4"),
    ],
)
def test_a_dry_run_compiles_once_unless_its_user_wants_more(
    given: dict[str, str], options: str
) -> None:
    assert dry_run_settings(given) == {JAVA: options}
