"""The small HTTP server that the products share: addresses, access, bodies, errors, OpenAPI."""
