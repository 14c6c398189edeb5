"""The names of the options of source and sink; unknown names are rejected.

A misspelt limit or login would have no effect otherwise. Options with the prefix `kafka.` are
client properties: those of librdkafka, and those of Kafka's Java clients, which users of Spark's
stock connector have. Properties that only matter to Java are ignored. Properties that change
records or security, and that librdkafka lacks, are rejected with a reason.
"""

import enum
from collections.abc import Collection, Mapping
from functools import cache

CLIENT_PREFIX = "kafka."

REGISTRY_URL = "schema.registry.url"
REGISTRY_LOGIN = "schema.registry.basic.auth.user.info"
REGISTRY_SUBJECT = "schema.registry.subject"
REGISTRY_OPTIONS = (REGISTRY_URL, REGISTRY_LOGIN, REGISTRY_SUBJECT)

PASSED_OVER = frozenset(
    {
        *("path", "paths", "serialization.format", "queryname", "checkpointlocation"),
        *("asyncprogresstrackingenabled", "asyncprogresstrackingcheckpointintervalms"),
        *("groupidprefix", "kafkaconsumer.polltimeoutms"),
        *("fetchoffset.numretries", "fetchoffset.retryintervalms"),
    }
)
"""Names that Spark adds to the options, and options of the stock connector without a meaning
here, in lower case."""
_NEAR = 0.7


class Side(enum.Enum):
    """The part of the connector that has an option."""

    SOURCE = enum.auto()
    SINK = enum.auto()


_FOR_JAVA = frozenset(
    {
        *("auto.include.jmx.reporter", "exclude.internal.topics", "metadata.max.idle.ms"),
        *("metric.reporters", "metrics.num.samples", "metrics.recording.level"),
        *("metrics.sample.window.ms", "partitioner.adaptive.partitioning.enable"),
        *("partitioner.availability.timeout.ms", "socket.connection.setup.timeout.max.ms"),
        *("key.serializer", "value.serializer", "key.deserializer", "value.deserializer"),
        *("compression.gzip.level", "compression.lz4.level", "compression.zstd.level"),
        *("partitioner.class", "partitioner.ignore.keys", "transaction.two.phase.commit.enable"),
        *("share.acquire.mode",),
    }
)
"""Properties of Java's clients without a meaning here."""

_TRANSLATED = frozenset(
    {
        *("sasl.jaas.config", "ssl.truststore.certificates", "ssl.truststore.location"),
        *("ssl.truststore.password", "ssl.truststore.type", "ssl.keystore.type"),
        *("ssl.keystore.certificate.chain", "ssl.keystore.key"),
    }
)
"""Java's properties that `client.java_security` translates to librdkafka's."""

_JAVAS_SECURITY = frozenset(
    {
        *("sasl.client.callback.handler.class", "sasl.login.callback.handler.class"),
        *("sasl.login.class", "sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms"),
        *("sasl.login.refresh.buffer.seconds", "sasl.login.refresh.min.period.seconds"),
        *("sasl.login.refresh.window.factor", "sasl.login.refresh.window.jitter"),
        *("sasl.login.retry.backoff.max.ms", "sasl.login.retry.backoff.ms"),
        *("sasl.kerberos.ticket.renew.jitter", "sasl.kerberos.ticket.renew.window.factor"),
        *("sasl.oauthbearer.assertion.template.file", "sasl.oauthbearer.clock.skew.seconds"),
        *("sasl.oauthbearer.expected.audience", "sasl.oauthbearer.expected.issuer"),
        *("sasl.oauthbearer.header.urlencode", "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        *("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",),
        *("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "sasl.oauthbearer.jwks.endpoint.url"),
        *("sasl.oauthbearer.jwt.retriever.class", "sasl.oauthbearer.jwt.validator.class"),
        *("sasl.oauthbearer.scope.claim.name", "security.providers", "ssl.enabled.protocols"),
        *("ssl.engine.factory.class", "ssl.keymanager.algorithm", "ssl.protocol", "ssl.provider"),
        *("ssl.secure.random.implementation", "ssl.trustmanager.algorithm"),
    }
)

_REFUSED_BY_BOTH = {
    "interceptor.classes": "the connector does not run Java",
    "config.providers": "the connector does not run Java; give the values themselves",
    **dict.fromkeys(
        _JAVAS_SECURITY,
        "it configures Java's own TLS and SASL; remove it, or use librdkafka's properties"
        " (kafka.ssl.ca.location, kafka.sasl.username, kafka.sasl.oauthbearer.token)",
    ),
}
_LEVEL = "give kafka.compression.level"
_REFUSED: Mapping[Side, Mapping[str, str]] = {
    Side.SOURCE: {
        **_REFUSED_BY_BOTH,
        "auto.offset.reset": "give startingOffsets instead",
        "enable.auto.commit": "give the option group to see progress as a consumer group's",
        "auto.commit.enable": "give the option group to see progress as a consumer group's",
        "key.deserializer": "keys come as bytes",
        "value.deserializer": "values come as bytes, or typed by the option format",
    },
    Side.SINK: {
        **_REFUSED_BY_BOTH,
        "transactional.id": "the sink names its transactions by token.writer and the task",
        "transaction.two.phase.commit.enable": "the sink commits its transactions itself",
        "enable.idempotence": "set the option guarantee",
        "delivery.report.only.error": "the sink needs the delivery report of its token",
        "key.serializer": "keys are written as the column key has them",
        "value.serializer": "values are written as the column value has them, or by value.format",
        "partitioner.class": "give kafka.partitioner one of librdkafka's names, or rows a column"
        " partition",
        "partitioner.ignore.keys": "give kafka.partitioner=random",
        "compression.gzip.level": _LEVEL,
        "compression.lz4.level": _LEVEL,
        "compression.zstd.level": _LEVEL,
    },
}


def given_properties(options: Mapping[str, str]) -> dict[str, str]:
    """Return the client properties among some options, without the prefix."""
    return {
        name.lower().removeprefix(CLIENT_PREFIX): value
        for name, value in options.items()
        if name.lower().startswith(CLIENT_PREFIX)
    }


def option_complaint(name: str, known: Collection[str]) -> str | None:
    """Check the name of an option without the prefix of client properties; return an error."""
    lowered = {one.lower(): one for one in known}
    if name.lower() in lowered:
        return None
    if name.lower() in _properties():
        return (
            f"there is no option {name}; properties of the client are written {CLIENT_PREFIX}{name}"
        )
    near = _nearest(name.lower(), lowered)
    return f"there is no option {name}{f'; did you mean {lowered[near]}?' if near else ''}"


def property_complaint(name: str, side: Side, prefix: str = CLIENT_PREFIX) -> str | None:
    """Check the name of a client property; return an error or None."""
    if reason := _REFUSED[side].get(name):
        return f"{prefix}{name} cannot be set: {reason}"
    if name in _properties():
        return None
    near = _nearest(name, _properties())
    hint = f"did you mean {prefix}{near}?" if near else "no Kafka client has such a property"
    return f"there is no option {prefix}{name}; {hint}"


def is_for_java(name: str) -> bool:
    """Return whether a valid property has no meaning for librdkafka."""
    return name in _FOR_JAVA


@cache
def _properties() -> frozenset[str]:
    """Return the properties of librdkafka and of Kafka's Java consumers and producers."""
    from headrace.client.properties import names

    return frozenset((*names(), *_FOR_JAVA, *_TRANSLATED, *_JAVAS_SECURITY))


def _nearest(name: str, names: Collection[str]) -> str | None:
    from difflib import get_close_matches  # Only needed for errors.

    return next(iter(get_close_matches(name, sorted(names), n=1, cutoff=_NEAR)), None)
