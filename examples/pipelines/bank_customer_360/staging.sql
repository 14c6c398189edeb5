-- Payloads that do not fit the source's schema go to quarantine with their bytes.
CREATE STREAMING TABLE staging.personal AS SELECT * FROM STREAM(sources.personal);
CREATE STREAMING TABLE staging.cards AS SELECT * FROM STREAM(sources.cards);
CREATE STREAMING TABLE staging.payments AS SELECT * FROM STREAM(sources.payments);
