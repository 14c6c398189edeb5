-- What is no JSON of the source's schema goes to quarantine with its bytes.
CREATE STREAMING TABLE staging.personal AS SELECT * FROM STREAM(sources.personal);
CREATE STREAMING TABLE staging.cards AS SELECT * FROM STREAM(sources.cards);
CREATE STREAMING TABLE staging.payments AS SELECT * FROM STREAM(sources.payments);
