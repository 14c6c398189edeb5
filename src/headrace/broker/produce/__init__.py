"""The way of a Produce request from its frame to its answer.

`rounds.py` serves requests that equal an earlier one except for their records: small plain batches
are gathered over a round of ready sockets, all others are appended at once. `shapes.py` recognises
these requests. Everything else is decoded by `api/records/produce.py`: `admission.py` asks the
coordinator of its transaction, `request.py` appends its batches, `heavy.py` validates large ones
in a thread, and `answers.py` encodes answers that contain errors.
"""
