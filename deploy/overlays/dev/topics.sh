#!/bin/sh
# Creates the worker's topics if they are missing, once the broker answers.
set -eu
topic() {
    /opt/kafka/bin/kafka-topics.sh --bootstrap-server kafka:9092 --create --if-not-exists --partitions 1 --replication-factor 1 "$@"
}
until topic --topic waiting-times --config message.timestamp.type=LogAppendTime; do sleep 2; done
topic --topic waiting-times-synopses --config retention.ms=-1
topic --topic waiting-times-witness --config cleanup.policy=delete --config retention.ms=-1 --config retention.bytes=-1 \
    --config unclean.leader.election.enable=false --config message.timestamp.type=LogAppendTime --config min.insync.replicas=1 --config flush.messages=1
topic --topic waiting-times-clock --config message.timestamp.type=LogAppendTime --config cleanup.policy=delete --config retention.ms=3600000
