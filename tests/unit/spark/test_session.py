"""What sessions of ours are told."""

import pytest

from headrace.spark.session import SETTINGS, is_secret


@pytest.mark.parametrize(
    "name",
    [
        *("kafka.sasl.password", "kafka.sasl.jaas.config", "kafka.sasl.oauthbearer.token"),
        *("kafka.sasl.oauthbearer.client.secret", "kafka.ssl.key.password", "kafka.ssl.key.pem"),
        *("kafka.ssl.keystore.key", "schema.registry.basic.auth.user.info"),
        *("spark.hadoop.fs.s3a.secret.key", "spark.hadoop.fs.s3a.access.key"),
        *("spark.hadoop.fs.azure.account.key.lake", "spark.ssl.keyStorePassword"),
        *("spark.hadoop.fs.gs.auth.service.account.private.key", "spark.authenticate.secret"),
    ],
)
def test_what_kafka_registries_and_stores_keep_to_themselves_is_secret(name: str) -> None:
    assert is_secret(name)


def test_what_every_session_has_is_no_secret() -> None:
    assert [name for name in SETTINGS if is_secret(name)] == []
