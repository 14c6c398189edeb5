"""Mails as received from the server, parsed by Python's own library."""

from email import message_from_bytes, policy
from email.utils import parseaddr

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812

from headrace.pipelines import read_stream, table

MAIL = "id STRING, author STRING, text STRING, written_at TIMESTAMP"


def parts(raw: bytes | None) -> tuple[object, ...] | None:
    mail = message_from_bytes(raw or b"", policy=policy.default)
    body, date = mail.get_body(("plain",)), mail["Date"]
    if body is None or date is None or date.datetime is None or mail["Message-ID"] is None:
        return None
    try:
        text = body.get_content()
    except LookupError:  # An unknown charset.
        return None
    name, _, _ = parseaddr(mail["From"])[1].partition("@")
    return mail["Message-ID"].strip(" <>"), name, text, date.datetime


@table(name="staging.mails", comment="One row for each mail; what is none is in quarantine")
def mails() -> DataFrame:
    taken_apart = F.udf(parts, MAIL, useArrow=True)
    found = read_stream("sources.mails").withColumn("mail", taken_apart("value"))
    return found.select(
        "mail.*",
        F.when(F.col("mail").isNull(), "no mail: date, id or text is missing").alias("_error"),
        F.col("value").alias("_payload"),
        *("topic", "partition", "offset"),
    )
