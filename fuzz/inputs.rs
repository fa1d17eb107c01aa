//! Everything that reads bytes from outside, a function each: of any bytes, none may panic, and what they accept must agree with
//! itself. The fuzz targets and `tests/properties/fuzz.rs` both call these.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bernstream_config::WorkerSettings;
use bernstream_kafka::source::record::avro::{RecordSchema, RegistrySchemas};
use bernstream_kafka::source::record::{
    BatchBuilder, DeclaredTypes, IdType, MessageType, RecordForm, RecordReader, TimeFormat,
};
use bernstream_ledger::witness::WitnessClaim;
use bernstream_release::source::decode::ArrowDecoder;
use bernstream_release::source::{Batch, Columns, TextColumn};
use bernstream_server::feed::{Feed, FeedOrigin, follow_origin};
use bernstream_server::serve::dashboard::serve;
use bernstream_server::serve::listen;
use bernstream_synopsis::Synopsis;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::query::{Query, example};

/// The columns of keys and users.
fn texts_of(batch: &Batch) -> impl Iterator<Item = &TextColumn> {
    let keys = batch.keys.iter().flat_map(|keys| keys.parts());
    keys.chain(&batch.units)
}

/// A Kafka message: an Arrow IPC stream.
pub fn message(bytes: &[u8]) {
    let columns = Columns {
        time: "t".to_owned(),
        key: vec!["k".to_owned()],
        unit: Some("u".to_owned()),
        values: vec!["x".to_owned()],
        ..Columns::default()
    };
    let mut decoder = ArrowDecoder::new(columns);
    let Ok(batch) = decoder.decode_message(bytes, 0, 0, None) else {
        return;
    };
    let again = decoder
        .decode_message(bytes, 0, 0, None)
        .expect("it can be read once more");
    assert!(
        again.times == batch.times && again.values == batch.values,
        "with a schema that is known it reads as another"
    );
    let rows = batch.times.len();
    assert!(
        batch.values.iter().all(|column| column.len() == rows),
        "columns of different lengths"
    );
    for text in texts_of(&batch) {
        assert_eq!(text.len(), rows, "texts for other rows");
        let _: usize = (0..rows)
            .filter_map(|row| text.get(row))
            .map(<[u8]>::len)
            .sum();
    }
}

/// A record of a topic of records: a row, or nothing. The first byte chooses its form.
pub fn record(bytes: &[u8]) {
    static FORMS: OnceLock<[RecordForm; 3]> = OnceLock::new();
    let Some((first, bytes)) = bytes.split_first() else {
        return;
    };
    let forms = FORMS.get_or_init(|| {
        let schema = RecordSchema::parse(include_str!("rides.avsc")).expect("a schema");
        let kind = MessageType::parse(include_bytes!("rides.binpb").to_vec(), "rides.Event")
            .expect("a message type");
        [
            RecordForm::Json,
            RecordForm::Avro(Arc::new(RegistrySchemas([(7, schema)].into()))),
            RecordForm::Protobuf(Arc::new(kind)),
        ]
    });
    let form = &forms[usize::from(*first) % forms.len()];
    let columns = Columns {
        time: "at".to_owned(),
        key: vec!["ride.city".to_owned()],
        unit: Some("rider".to_owned()),
        values: vec!["ride.km".to_owned(), "ride.price".to_owned()],
        ..Columns::default()
    };
    let declared = DeclaredTypes {
        time: TimeFormat::Milliseconds,
        key: [Some(IdType::Text), None, None],
        unit: Some(IdType::Integer),
    };
    let mut reader = RecordReader::new(form, &columns, &declared).expect("all is declared");
    let mut gather = BatchBuilder::new(&columns);
    // The record before must be gone, and what is read twice must be the same.
    for offset in 0..2 {
        gather.push_row(0, offset, None, reader.read(bytes).ok());
    }
    let batch = gather.take_batch().expect("two rows");
    assert_eq!(batch.times.len(), 2, "a row a record");
    assert_eq!(batch.times.value(0), batch.times.value(1), "another time");
    let bits = |values: &arrow_array::Float64Array, row| values.value(row).to_bits();
    assert!(
        batch
            .values
            .iter()
            .all(|values| bits(values, 0) == bits(values, 1)),
        "other values"
    );
    for text in texts_of(&batch) {
        assert_eq!(text.get(0), text.get(1), "other texts");
    }
}

/// A synopsis, from a topic or a file.
pub fn synopsis(bytes: &[u8]) {
    let Ok(synopsis) = Synopsis::decode_message(bytes) else {
        return;
    };
    let about = synopsis.description();
    let middle: Vec<f64> = about
        .domain
        .iter()
        .map(|axis| (axis.min + axis.max) / 2.0)
        .collect();
    let _ = synopsis.evaluate(&middle);
    let _ = synopsis.half_width(&middle);
    let json = synopsis
        .to_json()
        .expect("an opened synopsis can be written as JSON");
    assert_eq!(
        Synopsis::from_json(&json).expect("and read again").values(),
        synopsis.values()
    );
}

/// A record of the witness topic.
pub fn claim(bytes: &[u8]) {
    let Some(claim) = WitnessClaim::decode(bytes) else {
        return;
    };
    assert_eq!(WitnessClaim::decode(claim.encode().as_bytes()), Some(claim));
}

/// A configuration file.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match WorkerSettings::parse(text, "bernstream.toml") {
        Ok(settings) => {
            let _ = settings.digest();
        }
        Err(faults) => assert!(!faults.to_string().is_empty(), "refused without a reason"),
    }
}

/// A query of a synopsis, as the command line and the API take it.
pub fn expression(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let synopsis = example();
    if let Ok(query) = Query::expression(text, &synopsis) {
        let _ = synopsis.answer(&query);
    }
}

/// The parameters of a request to the dashboard. The first byte chooses what is asked for.
pub fn parameters(bytes: &[u8]) {
    static ADDRESS: OnceLock<SocketAddr> = OnceLock::new();
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let paths = ["synopses", "synopses/latest", "curve", "history", "query"];
    let mut request =
        format!("GET /api/v1/{}?", paths[usize::from(*first) % paths.len()]).into_bytes();
    // A space or a line break would end the parameters.
    request.extend(
        rest.iter()
            .map(|byte| if byte.is_ascii_graphic() { *byte } else { b'+' }),
    );
    request.extend(b" HTTP/1.0\r\nHost: localhost\r\n\r\n");

    let mut stream =
        TcpStream::connect(ADDRESS.get_or_init(dashboard)).expect("the dashboard listens");
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .expect("a time limit");
    // A request that is too long is refused before all of it is sent.
    let _ = stream.write_all(&request);
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let status = answer.strip_prefix(b"HTTP/1.").and_then(|rest| rest.get(2));
    assert!(
        matches!(status, Some(b'2' | b'4')),
        "answered with {}",
        String::from_utf8_lossy(&answer)
    );
}

/// A dashboard of one synopsis, for as long as the program runs.
fn dashboard() -> SocketAddr {
    let folder = tempfile::tempdir().expect("a folder").keep();
    std::fs::write(
        folder.join("one.arrows"),
        example().encode().expect("a message").bytes,
    )
    .expect("a file");
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)), "the address").expect("a port");
    let address = listener.local_addr().expect("its address");
    let origin = FeedOrigin::Folder(folder);
    let feed = Arc::new(Feed::new(&origin, Timestamp::from_micros(0)));
    std::mem::forget(follow_origin(origin, feed.clone()).expect("a thread"));
    while feed.synopses().is_empty() {
        std::thread::sleep(Duration::from_millis(1));
    }
    std::thread::spawn(move || {
        tokio::runtime::Runtime::new()
            .expect("a runtime")
            .block_on(serve(listener, Arc::default(), feed))
            .expect("it serves");
    });
    address
}
