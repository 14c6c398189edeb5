"""Push: the records of a topic to who listens, by Server-Sent Events, WebSocket or webhook."""
