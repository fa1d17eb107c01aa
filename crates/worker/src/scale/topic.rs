//! The topic of announcements and partials: announcements in partition 0, partials in the others.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Message as _, Offset, TopicPartitionList};
use tracing::warn;

use super::ScaleParams;
use super::announcement::WindowAnnouncement;
use super::deleting::DeletingThread;
use super::partition_absorber::PartitionPartial;
use super::replays::{FRESH, ReplayFilter, is_fresh};
use super::wire::{
    AnnouncementHead, ScaleKeys, ScaleMessage, is_piece, random_id, split_into_pieces,
};
use bernstream_kafka::broker::{REQUEST_TIMEOUT, close_client};
use bernstream_kafka::check::topic_setting;
use bernstream_kafka::lost_client::LostClientWatch;
use bernstream_kafka::producer::{Producer, ProducerRecord};
use bernstream_kafka::topic;
use bernstream_kafka::topic::TopicMetadata;
use bernstream_kafka::{Broker, ClusterError, ErrorContext};
use bernstream_synopsis::Positions;
use bernstream_synopsis::clock::{Timestamp, format_duration};

/// Number of partitions of a topic that is created here: partition 0, and those over which partials are spread.
const PARTITIONS: i32 = 9;
/// What a window needs is needed for minutes.
/// What is sent is compressed before it is encrypted: a batch that unfolds, which the client would do without a bound, is from elsewhere.
const TOPIC_SETTINGS: [(&str, &str); 3] = [
    ("cleanup.policy", "delete"),
    ("retention.ms", "3600000"),
    ("compression.type", "uncompressed"),
];
/// The settings of a client that reads the topic.
const SETTINGS_OF_CLIENT: [(&str, &str); 5] = [
    ("group.id", "bernstream"),
    ("enable.auto.commit", "false"),
    // Where something was deleted before it was read, nobody needs it.
    ("auto.offset.reset", "earliest"),
    ("isolation.level", "read_uncommitted"),
    ("fetch.wait.max.ms", "100"),
];
/// The greatest length of a message of the topic.
pub const LARGEST: u64 = 600_000;
/// Number of messages that wait to be sent.
const QUEUE_LENGTH: usize = 64;
/// The pause before a message is sent again.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The side that reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TopicSide {
    /// Reads partials, and passes over announcements: what was read of a window can be deleted when that is accepted.
    Worker,
    /// Reads announcements.
    Absorber,
}

/// A sealed message that waits to be sent.
struct OutgoingMessage {
    partition: i32,
    payload: Vec<u8>,
}

/// The topic, from the end that it has when it is opened.
pub struct ScaleTopic {
    keys: ScaleKeys,
    side: TopicSide,
    broker: Broker,
    name: String,
    consumer: BaseConsumer<ErrorContext>,
    watch: LostClientWatch,
    outgoing: SyncSender<OutgoingMessage>,
    deleting: DeletingThread,
    /// Number of partitions that can be used: those that it had when this was opened, of an absorber no more than its workers read.
    partitions: i32,
    /// Announcements that were read.
    replays: ReplayFilter,
    is_stale_told: bool,
}

impl ScaleTopic {
    /// For a worker, which reads partials. Creates the topic if there is none, with as many replicas as topic `like`.
    ///
    /// # Errors
    ///
    /// If it cannot be created, or if the cluster does not answer or refuses.
    pub fn of_worker(
        params: &ScaleParams,
        broker: &Broker,
        like: &str,
        keys: ScaleKeys,
    ) -> Result<Self, ClusterError> {
        ScaleTopic::open(params, broker, like, keys, TopicSide::Worker)
    }

    /// For an absorber, which reads announcements.
    ///
    /// # Errors
    ///
    /// As for [`ScaleTopic::of_worker`].
    pub fn of_absorber(
        params: &ScaleParams,
        broker: &Broker,
        like: &str,
        keys: ScaleKeys,
    ) -> Result<Self, ClusterError> {
        ScaleTopic::open(params, broker, like, keys, TopicSide::Absorber)
    }

    fn open(
        params: &ScaleParams,
        broker: &Broker,
        like: &str,
        keys: ScaleKeys,
        side: TopicSide,
    ) -> Result<Self, ClusterError> {
        let name = &params.topic;
        check_or_create(broker, name, like)?;
        let consumer = broker
            .consumer(&SETTINGS_OF_CLIENT)
            .map_err(|error| broker.error_about(name, &error))?;
        let all = topic::partitions(broker, &consumer, name)?;
        let partitions = i32::try_from(all.len()).unwrap_or(i32::MAX);
        let mut read = all;
        read.retain(|number| side == TopicSide::Worker || *number == 0);
        begin_at_ends(&consumer, name, read).map_err(|error| broker.error_about(name, &error))?;
        let outgoing = start_sending(params, broker);
        let deleting = DeletingThread::start(broker, name);
        Ok(ScaleTopic {
            keys,
            side,
            broker: broker.clone(),
            name: name.clone(),
            consumer,
            watch: LostClientWatch::start(),
            outgoing,
            deleting,
            partitions,
            replays: ReplayFilter::default(),
            is_stale_told: false,
        })
    }

    /// Replaces a client that has lost the brokers.
    fn replace_if_lost(&mut self) {
        if !self
            .watch
            .check_lost(&self.broker, &self.consumer, &self.name)
        {
            return;
        }
        if let Ok(new) = self.consumer_from_here() {
            close_client(std::mem::replace(&mut self.consumer, new));
            self.watch = LostClientWatch::start();
        }
    }

    /// A client that begins behind everything that was read, or where this one began where nothing was.
    fn consumer_from_here(&self) -> Result<BaseConsumer<ErrorContext>, KafkaError> {
        let read = self.read_to();
        // A list that another client has given would take that one's partitions along.
        let mut list = TopicPartitionList::new();
        for begun in self.consumer.assignment()?.elements() {
            let number = begun.partition();
            let at = read
                .0
                .get(&number)
                .map_or(begun.offset(), |at| Offset::Offset(*at));
            list.add_partition_offset(&self.name, number, at)?;
        }
        let new = self.broker.consumer(&SETTINGS_OF_CLIENT)?;
        new.assign(&list)?;
        Ok(new)
    }

    /// The next message that can be opened: for a worker a piece of a partial, for an absorber an announcement that is to be answered.
    /// Others are passed over until `until`, one at least, so that no flood of them keeps the caller from the rest, and that a flood of what
    /// costs nothing to pass over is over soon. `None` if there is none then, or if nothing comes for as long as `timeout`.
    pub fn next_message(&mut self, timeout: Duration, until: Instant) -> Option<ScaleMessage> {
        let mut timeout = timeout;
        loop {
            let Some(polled) = self.consumer.poll(timeout) else {
                self.replace_if_lost();
                return None;
            };
            match polled {
                Ok(message) => {
                    self.watch.note_message();
                    let payload = message.payload().unwrap_or_default();
                    let opened = match self.side {
                        TopicSide::Worker => is_piece(payload)
                            .then(|| self.keys.open_message(payload))
                            .flatten(),
                        TopicSide::Absorber => new_announcement(
                            &self.keys,
                            &mut self.replays,
                            &mut self.is_stale_told,
                            payload,
                        ),
                    };
                    if let Some(ScaleMessage::Announcement { read, .. }) = &opened {
                        // Partitions that were added since a worker has started are not read by it.
                        self.partitions = self.partitions.min((*read).max(1));
                    }
                    if opened.is_some() {
                        return opened;
                    }
                }
                // Whatever it is, nobody waits for this topic longer than the deadline.
                Err(_) => timeout = Duration::ZERO,
            }
            if Instant::now() >= until {
                return None;
            }
        }
    }

    /// The next time that workers repeat their announcements, [`ScaleTopic::next_message`] returns them again.
    pub fn answer_again(&mut self) {
        self.replays.answer_again();
    }

    /// Behind everything that was read.
    pub fn read_to(&self) -> Positions {
        let Ok(positions) = self.consumer.position() else {
            return Positions::default();
        };
        let mut read = Positions::default();
        for element in positions.elements() {
            if let Offset::Offset(offset) = element.offset() {
                read.0.insert(element.partition(), offset);
            }
        }
        read
    }

    /// Has everything before these positions deleted, soon: all of it belongs to windows that are accepted.
    pub fn delete_before(&self, positions: Positions) {
        if !positions.0.is_empty() {
            self.deleting.delete_before(positions);
        }
    }

    /// Announces a window, or announces it again, unless too much waits to be sent: it is announced again anyway.
    pub fn send_announcement(&self, id: &str, announcement: &WindowAnnouncement) {
        let head = AnnouncementHead {
            id: id.to_owned(),
            sent: Timestamp::now(),
        };
        let message = ScaleMessage::Announcement {
            head,
            read: self.partitions,
            announcement: announcement.clone(),
        };
        if let Some(sealed) = self.keys.seal_message(&message) {
            let _ = self.outgoing.try_send(OutgoingMessage {
                partition: 0,
                payload: sealed,
            });
        }
    }

    /// Sends a partial as `absorber`; waits while too much waits to be sent, and calls `beat` meanwhile.
    pub fn send_partial(&self, partial: &PartitionPartial, absorber: &str, beat: &dyn Fn()) {
        let partition = if self.partitions == 1 {
            0
        } else {
            1 + partial.partition.rem_euclid(self.partitions - 1)
        };
        let Some(pieces) = split_into_pieces(partial) else {
            // How long it is shows how much was recorded: the worker says only that nobody sent it.
            return;
        };
        for mut piece in pieces {
            piece.absorber = absorber.to_owned();
            let Some(sealed) = self.keys.seal_message(&ScaleMessage::Piece(piece)) else {
                return;
            };
            beat();
            // The thread ends with this side only.
            let _ = self.outgoing.send(OutgoingMessage {
                partition,
                payload: sealed,
            });
        }
    }

    /// A new id for an announcement; `None` without randomness.
    pub fn new_id() -> Option<String> {
        random_id()
    }
}

/// Warns of settings under which the topic does not work well; creates it if there is none, with as many replicas as topic `like`.
fn check_or_create(broker: &Broker, name: &str, like: &str) -> Result<(), ClusterError> {
    match topic::describe_topic(broker, name) {
        Ok(topic) => {
            if let Some(most) = message_limit_below(&topic) {
                warn!(
                    "topic '{name}' takes no message above {most} bytes (max.message.bytes), so larger partials are lost and the worker \
                     reads what they are of: raise it to {LARGEST} or more"
                );
            }
            if takes_compressed(&topic) {
                warn!(
                    "topic '{name}' takes compressed batches, which can unfold into more than the memory of this process: set \
                     compression.type=uncompressed"
                );
            }
        }
        Err(ClusterError::NoTopic { .. }) => {
            let replicas = topic::replica_count(broker, like)?;
            let created = topic::create_topic(broker, name, PARTITIONS, replicas, &TOPIC_SETTINGS);
            // Another process may have been faster.
            if let Err(error) = created
                && topic::describe_topic(broker, name).is_err()
            {
                return Err(error);
            }
        }
        Err(_) => {}
    }
    Ok(())
}

/// Lets a client read these partitions from their present ends.
fn begin_at_ends(
    consumer: &BaseConsumer<ErrorContext>,
    name: &str,
    partitions: impl IntoIterator<Item = i32>,
) -> Result<(), KafkaError> {
    let mut list = TopicPartitionList::new();
    for number in partitions {
        let (_, end) = consumer.fetch_watermarks(name, number, REQUEST_TIMEOUT)?;
        list.add_partition_offset(name, number, Offset::Offset(end))?;
    }
    consumer.assign(&list)
}

/// An announcement that is to be answered. One that comes again is dropped before it is opened.
fn new_announcement(
    keys: &ScaleKeys,
    replays: &mut ReplayFilter,
    is_stale_told: &mut bool,
    payload: &[u8],
) -> Option<ScaleMessage> {
    let head = AnnouncementHead::from_sealed(payload)?;
    let now = Timestamp::now();
    if !replays.could_be_new(&head, now) {
        let is_stale = !*is_stale_told && !is_fresh(&head, now);
        if is_stale && keys.open_message(payload).is_some() {
            *is_stale_told = true;
            warn!(
                "an announcement that was sent at {} is not answered, because that is {} or more from this machine's time: set the clocks \
                 of worker and absorber; if they are right, somebody writes old messages to scale.topic again, or this process was stopped",
                head.sent,
                format_duration(FRESH)
            );
        }
        return None;
    }
    keys.open_message(payload)
        .filter(|_| replays.take_announcement(&head, now))
}

/// A thread that sends messages in order, so that nobody waits for brokers that are down.
fn start_sending(params: &ScaleParams, broker: &Broker) -> SyncSender<OutgoingMessage> {
    let (sender, queue) = sync_channel::<OutgoingMessage>(QUEUE_LENGTH);
    let broker = broker.clone();
    let topic = params.topic.clone();
    let is_for_operators = params.is_for_operators;
    let log = tracing::dispatcher::get_default(tracing::Dispatch::clone);
    thread::spawn(move || {
        tracing::dispatcher::with_default(&log, || {
            let mut producer = Producer::sending_once(broker, topic.clone());
            for OutgoingMessage { partition, payload } in queue {
                let record = ProducerRecord {
                    partition: Some(partition),
                    payload: &payload,
                    ..ProducerRecord::default()
                };
                let Err(error) = producer.send(record) else {
                    continue;
                };
                if is_for_operators || !shows_records(&payload, &error) {
                    warn!(
                        "a message could not be sent to topic '{topic}' and is left out: {error}"
                    );
                }
                thread::sleep(RETRY_PAUSE);
            }
        });
    });
    sender
}

/// Returns whether it shows how much was recorded that this message was not sent: where a partial is too long for the topic.
fn shows_records(payload: &[u8], error: &KafkaError) -> bool {
    let too_long = [
        RDKafkaErrorCode::MessageSizeTooLarge,
        RDKafkaErrorCode::MessageBatchTooLarge,
    ];
    is_piece(payload)
        && error
            .rdkafka_error_code()
            .is_some_and(|code| too_long.contains(&code))
}

/// Returns whether a topic takes batches that unfold: what sends a small one can then fill the memory of whoever reads.
pub fn takes_compressed(topic: &TopicMetadata) -> bool {
    !matches!(
        topic_setting(topic, "compression.type"),
        "uncompressed" | ""
    )
}

/// The most bytes of a message that a topic takes, where a piece of a partial can be longer.
pub fn message_limit_below(topic: &TopicMetadata) -> Option<u64> {
    topic_setting(topic, "max.message.bytes")
        .parse()
        .ok()
        .filter(|most| *most < LARGEST)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use rdkafka::mocking::MockCluster;

    use super::*;
    use bernstream_ledger::sealing::KeyFileSecret;

    #[test]
    fn what_comes_before_a_client_is_replaced_is_read_by_the_next() {
        let cluster = MockCluster::new(1).unwrap();
        cluster.create_topic("scale", 2, 1).unwrap();
        let broker = Broker::mock_cluster(cluster.bootstrap_servers());
        let params = ScaleParams {
            topic: "scale".to_owned(),
            key_file: PathBuf::new(),
            group: String::new(),
            deadline: Duration::ZERO,
            most: 0,
            is_for_operators: false,
        };
        let keys = ScaleKeys::new(&KeyFileSecret::new([1; 32]));
        let mut topic = ScaleTopic::of_worker(&params, &broker, "scale", keys.clone()).unwrap();
        let partial = PartitionPartial {
            name: String::new(),
            partition: 0,
            bytes: Vec::new(),
        };
        let piece = keys
            .seal_message(&ScaleMessage::Piece(
                split_into_pieces(&partial).unwrap().remove(0),
            ))
            .unwrap();
        let mut producer = Producer::new(broker, params.topic);
        let mut send = || {
            producer
                .send(ProducerRecord {
                    partition: Some(1),
                    payload: &piece,
                    ..ProducerRecord::default()
                })
                .unwrap()
        };
        send();
        // The first two are lost before anything comes from them.
        for _ in 0..2 {
            topic.consumer = topic.consumer_from_here().unwrap();
        }
        let until = Instant::now() + REQUEST_TIMEOUT;
        assert!(topic.next_message(REQUEST_TIMEOUT, until).is_some());
        send();
        topic.consumer = topic.consumer_from_here().unwrap();
        assert!(topic.next_message(REQUEST_TIMEOUT, until).is_some());
        assert_eq!(
            topic.read_to(),
            Positions([(1, 2)].into()),
            "nothing is read again"
        );
    }

    #[test]
    fn that_a_partial_is_too_long_is_told_to_operators_only() {
        let too_long = KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge);
        let refused = KafkaError::MessageProduction(RDKafkaErrorCode::TopicAuthorizationFailed);
        let keys = ScaleKeys::new(&KeyFileSecret::new([1; 32]));
        let partial = PartitionPartial {
            name: String::new(),
            partition: 0,
            bytes: Vec::new(),
        };
        let piece = keys
            .seal_message(&ScaleMessage::Piece(
                split_into_pieces(&partial).unwrap().remove(0),
            ))
            .unwrap();
        assert!(shows_records(&piece, &too_long) && !shows_records(&piece, &refused));
        // How long an announcement is follows from the number of partitions.
        assert!(!shows_records(&[1], &too_long));
    }
}
