"""Topics in responses to clients, and topics that the broker creates itself."""
