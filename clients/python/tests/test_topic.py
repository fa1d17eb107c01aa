"""The newest synopsis of a topic, on librdkafka's broker within the process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer

import bernstream
from bernstream import SynopsisError

ARROW = Path(__file__).with_name("flights.arrows").read_bytes()


def message(**changes: Any) -> bytes:
    """The synopsis of the file with another key or sequence."""
    import json

    with pa.ipc.open_stream(ARROW) as reader:
        table = reader.read_all()
    document = json.loads(table.schema.metadata[b"bernstream"])
    document["key"] = changes.get("key", document["key"])
    document["ledger"]["sequence"] = changes["sequence"]
    table = table.set_column(2, table.schema.field(2), pa.array([document["key"]], pa.string()))
    table = table.set_column(3, table.schema.field(3), pa.array([changes["sequence"]], pa.uint64()))
    table = table.replace_schema_metadata({"bernstream": json.dumps(document)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@pytest.fixture(scope="module")
def brokers() -> Iterator[str]:
    producer = Producer({"bootstrap.servers": "", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = producer.list_topics(timeout=10).brokers.values()
    for key, sequence in (("JFK", 3), ("JFK", 7), ("LGA", 9)):
        producer.produce("synopses", key=key, value=message(key=key, sequence=sequence))
    producer.produce("synopses", value=b"not one of ours")
    producer.produce("other", value=b"not one of ours")
    assert producer.flush(10) == 0
    yield f"{broker.host}:{broker.port}"


def test_the_newest_is_found(brokers: str) -> None:
    assert bernstream.newest("synopses", brokers).key == "LGA"
    newest = bernstream.newest("synopses", brokers, key="JFK", window="2013-01-01T05:00:00Z", release="departure-delay")
    assert newest.meta["ledger"]["sequence"] == 7 and newest(15.0) == bernstream.Synopsis.from_arrow(ARROW)(15.0)


def test_a_topic_is_a_collection(brokers: str) -> None:
    found = bernstream.open("synopses", brokers)
    assert [(one.key, one.meta["ledger"]["sequence"]) for one in found] == [("JFK", 7), ("LGA", 9)]
    with pytest.raises(SynopsisError, match="no synopsis in 'other'"):
        bernstream.open("other", brokers)


def test_what_is_not_there_is_told(brokers: str) -> None:
    with pytest.raises(SynopsisError, match=r"no synopsis in 'synopses' matches, of 4 messages \(1 of them"):
        bernstream.newest("synopses", brokers, key="EWR")
    with pytest.raises(SynopsisError, match="no synopsis in 'other'"):
        bernstream.newest("other", brokers)
    with pytest.raises(SynopsisError, match="is not a time"):
        bernstream.newest("synopses", brokers, window="yesterday")
    with pytest.raises(SynopsisError, match="check the address"):
        bernstream.newest("synopses", "127.0.0.1:1", patience=1.0, config={"log_level": 0})
