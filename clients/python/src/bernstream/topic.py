"""The synopses of a Kafka topic. Needs confluent-kafka."""

from __future__ import annotations

import time as clock
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from .errors import SynopsisError
from .fields import time
from .synopsis import Synopsis


def newest(
    topic: str,
    brokers: str,
    *,
    release: Optional[str] = None,
    key: Optional[str] = None,
    window: Optional[str] = None,
    config: Optional[Mapping[str, Any]] = None,
    patience: float = 10.0,
) -> Synopsis:
    """The synopsis of the newest window that matches; of duplicates, the last one.

    Reads the topic from its beginning to its current end, committed messages only, without a consumer group. ``window`` is
    the start of a window, such as ``2013-01-01T05:00:00Z``; ``config`` has further librdkafka settings, such as for TLS;
    ``patience`` is how many seconds a broker may be silent.
    """
    start = None
    if window is not None and (start := time(window)) is None:
        raise SynopsisError(f"'{window}' is not a time such as 2013-01-01T00:00:00Z")
    best: Optional[Synopsis] = None
    messages = unreadable = 0
    for message in published(topic, brokers, config=config, patience=patience):
        messages += 1
        try:
            found = Synopsis.from_arrow(message)
        except SynopsisError:
            unreadable += 1
            continue
        matches = (
            (release is None or found.release == release)
            and (key is None or found.key == key)
            and (start is None or found.window[0] == start)
        )
        if matches and (best is None or _age(found) >= _age(best)):
            best = found
    if best is None:
        raise SynopsisError(f"no synopsis in '{topic}' matches, of {messages} messages ({unreadable} of them are not synopses)")
    return best


def published(
    topic: str, brokers: str, *, config: Optional[Mapping[str, Any]] = None, patience: float = 10.0
) -> Iterator[bytes]:
    """The messages of a topic from its beginning to its current end, as bytes, committed ones only, without a consumer group.

    ``config`` has further librdkafka settings, such as for TLS; ``patience`` is how many seconds a broker may be silent.
    """
    try:
        from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
    except ImportError as error:
        raise ImportError("reading a topic needs confluent-kafka: pip install confluent-kafka pyarrow") from error
    consumer = Consumer(
        {
            # The exception reports errors, so librdkafka need not log them.
            "log_level": 2,
            **(config or {}),
            "bootstrap.servers": brokers,
            # librdkafka needs a group name even for manual assignment; nothing joins or commits.
            "group.id": "bernstream-python",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=patience).topics[topic].partitions
        if not partitions:
            raise SynopsisError(f"topic '{topic}' does not exist on {brokers}; check its name")
        ends: dict[int, int] = {}
        for number in partitions:
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=patience)
            if low < high:
                ends[number] = high
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ends])
        heard = clock.monotonic()
        while ends:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                heard = clock.monotonic()
                partition, offset = message.partition(), message.offset()
                if partition in ends and offset is not None and offset + 1 >= ends[partition]:
                    del ends[partition]
                yield message.value() or b""
                continue
            # Positions also move past transaction markers, which are never delivered.
            for place in consumer.position([TopicPartition(topic, number) for number in ends]):
                if place.offset >= ends[place.partition]:
                    del ends[place.partition]
            if clock.monotonic() - heard > patience:
                raise SynopsisError(f"{brokers} stopped answering while '{topic}' was read")
    except KafkaException as error:
        raise SynopsisError(f"cannot reach {brokers}; check the address, and that the broker is up: {error}") from error
    finally:
        consumer.close()


def _age(synopsis: Synopsis) -> tuple[Any, int]:
    return synopsis.window[1], int(synopsis.meta["ledger"]["sequence"])
