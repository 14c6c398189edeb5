"""Kafka's broker properties that Headrace knows and does not honour, and why not.

Imported only when a properties file holds such a name, or a misspelt one.
"""

_NAMES = """
add.partitions.to.txn.retry.backoff.max.ms add.partitions.to.txn.retry.backoff.ms
alter.config.policy.class.name alter.log.dirs.replication.quota.window.num
alter.log.dirs.replication.quota.window.size.seconds authorizer.class.name
auto.leader.rebalance.enable background.threads broker.heartbeat.interval.ms
broker.session.timeout.ms client.quota.callback.class config.providers
connection.failed.authentication.delay.ms connections.max.reauth.ms controlled.shutdown.enable
controller.performance.always.log.threshold.ms controller.performance.sample.period.ms
controller.quorum.append.linger.ms controller.quorum.auto.join.enable
controller.quorum.election.backoff.max.ms controller.quorum.election.timeout.ms
controller.quorum.fetch.max.bytes controller.quorum.fetch.snapshot.max.bytes
controller.quorum.fetch.timeout.ms controller.quorum.request.timeout.ms
controller.quorum.retry.backoff.ms controller.quota.window.num
controller.quota.window.size.seconds controller.socket.timeout.ms cordoned.log.dirs
create.topic.policy.class.name delegation.token.expiry.check.interval.ms
delegation.token.expiry.time.ms delegation.token.max.lifetime.ms delegation.token.secret.key
delete.records.purgatory.purge.interval.requests early.start.listeners
fetch.purgatory.purge.interval.requests follower.fetch.last.tiered.offset.enable
group.coordinator.append.linger.ms group.coordinator.background.threads
group.coordinator.cached.buffer.max.bytes group.coordinator.rebalance.protocols
group.coordinator.threads
group.share.assignors group.share.initialize.retry.interval.ms group.share.max.share.sessions
group.share.max.size group.share.persister.class.name initial.broker.registration.timeout.ms
internal.metadata.delete.delay.millis internal.metadata.log.segment.bytes
internal.metadata.max.batch.size.in.bytes kafka.metrics.polling.interval.secs
kafka.metrics.reporters leader.imbalance.check.interval.seconds log.cleaner.io.buffer.size
log.cleaner.threads log.dir.failure.timeout.ms log.flush.start.offset.checkpoint.interval.ms
max.connection.creation.rate max.connections.per.ip.overrides metadata.max.idle.interval.ms
metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
num.io.threads num.network.threads num.recovery.threads.per.data.dir
num.replica.alter.log.dirs.threads num.replica.fetchers offsets.commit.timeout.ms
offsets.load.buffer.size offsets.topic.compression.codec principal.builder.class
producer.purgatory.purge.interval.requests queued.max.request.bytes queued.max.requests
quota.window.num quota.window.size.seconds remote.fetch.max.wait.ms
remote.list.offsets.request.timeout.ms remote.log.index.file.cache.total.size.bytes
remote.log.index.file.cache.ttl.ms remote.log.manager.copier.thread.pool.size
remote.log.manager.copy.max.bytes.per.second remote.log.manager.copy.quota.window.num
remote.log.manager.copy.quota.window.size.seconds remote.log.manager.expiration.thread.pool.size
remote.log.manager.fetch.max.bytes.per.second remote.log.manager.fetch.quota.window.num
remote.log.manager.fetch.quota.window.size.seconds remote.log.manager.follower.thread.pool.size
remote.log.manager.task.interval.ms remote.log.manager.task.retry.backoff.max.ms
remote.log.manager.task.retry.backoff.ms remote.log.manager.task.retry.jitter
remote.log.manager.thread.pool.size remote.log.metadata.custom.metadata.max.bytes
remote.log.metadata.manager.class.name remote.log.metadata.manager.class.path
remote.log.metadata.manager.impl.prefix remote.log.metadata.manager.listener.name
remote.log.reader.max.pending.tasks remote.log.reader.threads
remote.log.storage.manager.class.name remote.log.storage.manager.class.path
remote.log.storage.manager.impl.prefix remote.log.storage.system.enable replica.fetch.backoff.ms
replica.fetch.max.bytes replica.fetch.min.bytes replica.fetch.response.max.bytes
replica.fetch.wait.max.ms replica.lag.time.max.ms replica.selector.class
replica.socket.receive.buffer.bytes replica.socket.timeout.ms replication.quota.window.num
replication.quota.window.size.seconds request.timeout.ms sasl.client.callback.handler.class
sasl.enabled.mechanisms sasl.jaas.config sasl.kerberos.kinit.cmd
sasl.kerberos.min.time.before.relogin sasl.kerberos.principal.to.local.rules
sasl.kerberos.service.name sasl.kerberos.ticket.renew.jitter
sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
sasl.login.connect.timeout.ms sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds
sasl.login.refresh.min.period.seconds sasl.login.refresh.window.factor
sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
sasl.mechanism.controller.protocol sasl.mechanism.inter.broker.protocol
sasl.oauthbearer.assertion.algorithm sasl.oauthbearer.assertion.claim.aud
sasl.oauthbearer.assertion.claim.exp.seconds sasl.oauthbearer.assertion.claim.iss
sasl.oauthbearer.assertion.claim.jti.include sasl.oauthbearer.assertion.claim.nbf.seconds
sasl.oauthbearer.assertion.claim.sub sasl.oauthbearer.assertion.file
sasl.oauthbearer.assertion.private.key.file sasl.oauthbearer.assertion.private.key.passphrase
sasl.oauthbearer.assertion.template.file sasl.oauthbearer.client.credentials.client.id
sasl.oauthbearer.client.credentials.client.secret sasl.oauthbearer.clock.skew.seconds
sasl.oauthbearer.expected.audience sasl.oauthbearer.expected.issuer
sasl.oauthbearer.jwks.endpoint.refresh.ms sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms
sasl.oauthbearer.jwks.endpoint.retry.backoff.ms sasl.oauthbearer.jwks.endpoint.url
sasl.oauthbearer.jwt.retriever.class sasl.oauthbearer.jwt.validator.class sasl.oauthbearer.scope
sasl.oauthbearer.scope.claim.name sasl.oauthbearer.sub.claim.name
sasl.oauthbearer.token.endpoint.url sasl.server.callback.handler.class
sasl.server.max.receive.size security.inter.broker.protocol security.providers
server.max.startup.time.ms share.coordinator.append.linger.ms
share.coordinator.cold.partition.snapshot.interval.ms
share.coordinator.snapshot.update.records.per.snapshot
share.coordinator.state.topic.prune.interval.ms transaction.two.phase.commit.enable
share.coordinator.cached.buffer.max.bytes share.coordinator.load.buffer.size
share.coordinator.state.topic.compression.codec share.coordinator.threads
share.coordinator.write.timeout.ms share.fetch.purgatory.purge.interval.requests
socket.connection.setup.timeout.max.ms socket.connection.setup.timeout.ms
socket.listen.backlog.size ssl.allow.dn.changes ssl.allow.san.changes ssl.cipher.suites
ssl.client.auth ssl.enabled.protocols ssl.endpoint.identification.algorithm
ssl.engine.factory.class ssl.key.password ssl.keymanager.algorithm ssl.keystore.certificate.chain
ssl.keystore.key ssl.keystore.location ssl.keystore.password ssl.keystore.type
ssl.principal.mapping.rules ssl.protocol ssl.provider ssl.secure.random.implementation
ssl.trustmanager.algorithm ssl.truststore.certificates ssl.truststore.location
ssl.truststore.password ssl.truststore.type transaction.state.log.load.buffer.size
unclean.leader.election.interval.ms unstable.api.versions.enable unstable.feature.versions.enable
"""

# Read by plug-ins of Kafka that come with it, so no definition lists them.
_PLUGIN_NAMES = "super.users allow.everyone.if.no.acl.found"

# The time of ZooKeeper: Kafka 4 no longer knows these, old files still hold them.
_REMOVED_NAMES = """
advertised.host.name advertised.port broker.id.generation.enable control.plane.listener.name
controlled.shutdown.max.retries controlled.shutdown.retry.backoff.ms group.coordinator.new.enable
host.name inter.broker.protocol.version leader.imbalance.per.broker.percentage
log.message.downconversion.enable log.message.format.version
log.message.timestamp.difference.max.ms offsets.commit.required.acks
password.encoder.cipher.algorithm password.encoder.iterations password.encoder.key.length
password.encoder.keyfactory.algorithm password.encoder.old.secret password.encoder.secret port
reserved.broker.max.id
"""

# The longest prefix that fits decides.
_REASONS = (
    ("listener.name.", "listeners cannot be set up one by one yet"),
    ("authorizer.", "access control is not supported yet, so every client may do everything"),
    ("super.users", "access control is not supported yet, so every client may do everything"),
    ("allow.everyone.", "access control is not supported yet, so every client may do everything"),
    ("sasl.", "authentication is not supported yet"),
    ("ssl.", "TLS is not supported yet"),
    ("security.", "only PLAINTEXT is supported yet"),
    ("principal.", "authentication is not supported yet"),
    ("delegation.token.", "authentication is not supported yet"),
    ("group.coordinator.", "coordinators share the one event loop and write at once"),
    ("group.coordinator.rebalance.", "all kinds of groups that the features allow are served"),
    ("group.share.persister.", "share states are kept in their own topic"),
    ("offsets.commit.timeout.", "a commit is answered when it is written"),
    ("offsets.load.", "the buffer for loading has a fixed size"),
    ("offsets.topic.compression.", "coordinator records are small and stay plain"),
    ("share.coordinator.", "coordinators share the one event loop and write at once"),
    ("share.fetch.", "requests that wait cost nothing until they are woken"),
    ("transaction.state.log.load.", "the buffer for loading has a fixed size"),
    ("remote.", "tiered storage is not supported yet"),
    ("rsm.config.", "tiered storage is not supported yet"),
    ("rlmm.config.", "tiered storage is not supported yet"),
    ("follower.fetch.", "tiered storage is not supported yet"),
    ("replica.", "replication between brokers is not supported yet"),
    ("num.replica.", "replication between brokers is not supported yet"),
    ("controller.quorum.", "a node is its own quorum of one, with nobody to agree with"),
    ("broker.", "a node is its own quorum of one, with nobody to agree with"),
    ("quota.", "quotas are not supported yet"),
    ("client.quota.", "quotas are not supported yet"),
    ("num.network.threads", "one event loop serves all connections"),
    ("num.io.threads", "one event loop serves all connections"),
    ("background.threads", "the number of background threads is fixed"),
    ("socket.listen.backlog.size", "the backlog has a fixed size"),
    ("max.connections.per.ip.overrides", "all addresses have the same limit"),
    ("num.recovery.threads.", "the number of threads that load logs is fixed"),
    ("log.cleaner.threads", "one log is compacted at a time"),
    ("log.cleaner.io.buffer.size", "the cleaner's buffers have a fixed size"),
    ("log.flush.start.offset.", "start offsets are written down with the recovery points"),
    ("queued.max.", "requests are not queued between threads"),
    ("metric.reporters", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("metrics.", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("kafka.metrics.", "metrics are served as Prometheus text on headrace.metrics.port"),
    ("config.providers", "values cannot come from config providers"),
    ("zookeeper.", "Kafka 4 removed it, with ZooKeeper"),
)

_PLUGIN_PREFIXES = (
    "listener.name.", "rsm.config.", "rlmm.config.", "config.providers.", "zookeeper.",
    "metrics.jmx.",
)  # fmt: skip

_SECRET_ENDINGS = (
    ".password", ".secret", ".passphrase", ".secret.key", ".keystore.key", ".jaas.config",
    ".certificate.chain", ".certificates",
)  # fmt: skip


def names() -> list[str]:
    """Every name here, for finding the nearest to a misspelt one."""
    return [*_NAMES.split(), *_PLUGIN_NAMES.split()]


def reason_unsupported(name: str) -> str | None:
    """Why Headrace does not honour a property that Kafka knows; None if Kafka knows it neither."""
    if name in _REMOVED_NAMES.split():
        return "Kafka 4 removed it"
    if name not in names() and not name.startswith(_PLUGIN_PREFIXES):
        return None
    fitting = [row for row in _REASONS if name.startswith(row[0])]
    if not fitting:
        return "Headrace does not support it yet"
    return max(fitting, key=lambda row: len(row[0]))[1]


def is_sensitive(name: str) -> bool:
    """Whether a value must not be shown; what plug-ins read might be anything, so it is too."""
    is_plugins = name not in names() and name not in _REMOVED_NAMES.split()
    return is_plugins or name.endswith(_SECRET_ENDINGS)
