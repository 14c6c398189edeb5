"""The interface of version 2: topics, produce, and consumers with a name."""
