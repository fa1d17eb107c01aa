//! The Kafka source against a real broker.

#[path = "support/kafka.rs"]
mod kafka;

use bernstream::source::topic;

#[test]
fn a_topic_is_described_by_its_id_partitions_and_settings() {
    let Some(servers) = kafka::broker() else { return };
    let broker = kafka::at(&servers);
    let name = kafka::fresh_input(&servers, 3);
    let first = topic::describe(&broker, &name).unwrap();
    assert_eq!(first.partitions, [0, 1, 2]);
    assert_eq!(first.settings["message.timestamp.type"], "LogAppendTime");
    assert_eq!(first.settings["retention.ms"], "-1");
    assert_eq!(first.settings["cleanup.policy"], "delete", "defaults are listed too");
    assert_eq!(first.id.len(), 32);
    assert_ne!(first.id, "0".repeat(32));
    let other = topic::describe(&broker, &kafka::fresh_input(&servers, 3)).unwrap();
    assert_ne!(first.id, other.id);
    assert_eq!(first, topic::describe(&broker, &name).unwrap());
}

#[test]
fn asking_for_a_topic_does_not_create_it() {
    let Some(servers) = kafka::broker() else { return };
    let (broker, name) = (kafka::at(&servers), kafka::fresh_name("never"));
    for _ in 0..2 {
        let error = topic::describe(&broker, &name).unwrap_err();
        assert!(matches!(error, bernstream::source::Error::NoTopic { .. }), "{error}");
    }
    topic::create(&broker, &name, 1, 1, &[]).unwrap();
    let error = topic::create(&broker, &name, 1, 1, &[]).unwrap_err();
    assert!(!error.is_passing() && error.to_string().contains("already exists"), "{error}");
}
