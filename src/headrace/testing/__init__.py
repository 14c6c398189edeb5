"""A running broker for tests, of this project and of its users: no Docker, no JVM.

Once the package is installed, pytest has the fixtures `headrace_broker` and
`headrace_broker_session`. Without pytest, use `process.BrokerProcess`.
"""
