"""What commands assume where nothing is said; the same for those that serve and those that ask."""

BOOTSTRAP_VARIABLE = "HEADRACE_BOOTSTRAP"
"""The environment variable that names brokers where `--bootstrap` does not."""
DEFAULT_BOOTSTRAP = "127.0.0.1:9092"
DEFAULT_DATA = "headrace-data"
DEFAULT_REGISTRY = "127.0.0.1:8081"
DEFAULT_REST = "127.0.0.1:8082"
