"""A running broker for tests, of this project and of its users: no Docker, no JVM.

With the package installed pytest knows the fixtures `headrace_broker` and
`headrace_broker_session`; without pytest, `process.BrokerProcess` does the same by hand.
"""
