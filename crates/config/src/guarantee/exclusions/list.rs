//! The list itself. An entry is added here and nowhere else: `tests/it/not_protected.rs` says how README and the page are written anew.

use crate::guarantee::exclusions::conditions;
use crate::settings::WorkerSettings;

/// One thing that the guarantee does not protect.
#[derive(Clone, Copy, Debug)]
pub struct Exclusion {
    /// Its heading in `docs/concepts/not-protected.md`, which other pages link to.
    pub title: &'static str,
    /// The configurations that it applies to, in words.
    pub applies_to: &'static str,
    /// Returns whether it applies.
    pub applies: fn(&WorkerSettings) -> bool,
    /// The clause that `check` and synopses print. `{name}` stands for a value of the configuration.
    pub clause: &'static str,
    /// The text of the page, in Markdown.
    pub details: &'static str,
    /// The sentence of README, in Markdown, where it is one of the main limits.
    pub main_limit: Option<&'static str>,
}

/// Everything that the guarantee does not protect. What concerns most readers comes first.
pub const ALL: &[Exclusion] = &[
    Exclusion {
        title: "Whoever can read more than the output",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "records, ledger, keys and the worker's memory, core dumps too: whoever can read these is trusted",
        details: "The input topic, the ledger, its witness topic, the process and its host are trusted. A ledger has exact counts (how far \
            the input was read for each window), which `ledger export` leaves out. The ledger of a running sum also holds noise that \
            the next window needs: together with what was published, it reveals exact sums over recent windows. The ledger keeps no \
            more of it than that step needs, deletes it with its release, and overwrites what it deletes; a file system or a backup \
            may keep it all the same, so protect the volume as you protect the records. A core dump has records, keys and noise: \
            forbid them where the worker runs (`LimitCORE=0`).\n\n\
            The keys of a [ledger log](../how-to/ledger-log.md) and of [absorbers](../how-to/operate.md#split-reading-over-machines) \
            decrypt exact counts, noise that later windows reuse, and what windows keep of records. Guard a key like the input. Whoever \
            has the key of the absorbers can also make the worker publish values that no record supports, publish late, or use \
            `scale.most_megabytes` of its memory, and some thirty times that where it goes on to the windows of users. Anyone who may \
            write to the topic of a [shared budget](shared-budgets.md) is trusted too.",
        main_limit: Some("The input, the worker, its ledger and its host are trusted."),
    },
    Exclusion {
        title: "A ledger lost or copied with its witness",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "a ledger that is lost or copied together with its witness: nothing then knows what was spent",
        details: "A witness shows that a ledger is missing or an older copy, and the worker stops. If the disk or the machine of a ledger \
            is copied as a whole, with its witness and a folder of synopses, the copies publish windows in several versions, and nothing \
            in a file can tell them apart. `output.files.witness` detects copies of folders and restored backups, even if they are \
            restored over the existing files; without it, those are not detected either.",
        main_limit: Some(
            "Keep the ledger and its *witness*, a small file or topic by which the worker notices an old copy of the ledger and stops, \
             on different disks: if both are lost, nothing remembers what was spent.",
        ),
    },
    Exclusion {
        title: "Other pipelines of the same people",
        applies_to: "without a shared budget",
        applies: conditions::has_no_shared_budget,
        clause: "what other pipelines reveal of the same people: nothing adds it up",
        details: "What two ledgers reveal adds up, and no ledger tracks the sum, unless pipelines that read one input \
            [share one budget](shared-budgets.md). Keep a list of pipelines by data subject.",
        main_limit: Some(
            "Epsilons of pipelines over the same people add up, unless they read one Kafka topic and \
             [share one total](docs/concepts/shared-budgets.md).",
        ),
    },
    Exclusion {
        title: "Pipelines without a share",
        applies_to: "with `privacy.budget`",
        applies: conditions::shares_a_budget,
        clause: "what pipelines of the input reveal that hold no share in the budget topic {budget}: nothing counts them",
        details: "Only pipelines that name the same budget topic are counted.",
        main_limit: None,
    },
    Exclusion {
        title: "People with several records",
        applies_to: "where the unit is a record",
        applies: conditions::protects_records,
        clause: "a person with several records: what each of them may reveal adds up",
        details: "With 10 records a person is protected by 10 times the epsilon, which at 1 is next to nothing. Where people have many \
            records, [protect users](privacy-unit.md).",
        main_limit: Some(
            "A record is not a person: a person with 10 records is protected by 10 times epsilon only, which at 1 is next to nothing. \
             Where people have many records, protect users.",
        ),
    },
    Exclusion {
        title: "Several periods of a user",
        applies_to: "where the unit is a user in a period",
        applies: conditions::renews_for_users,
        clause: "what the records of several periods of {per} reveal together: each period has its own total",
        details: "Each period has its own total, and what several of them reveal adds up. With `per = \"ever\"` there is one total.",
        main_limit: None,
    },
    Exclusion {
        title: "What replace_one leaves open",
        applies_to: "with `replace_one`",
        applies: conditions::hides_values_only,
        clause: "whether a record is there, its time and its key: its values are protected",
        details: "Under `replace_one` neighbours differ in the values of one record. Everybody may learn that it is there, when, and with \
            which key.",
        main_limit: None,
    },
    Exclusion {
        title: "Records that wait for others in a producer",
        applies_to: "with Kafka",
        applies: conditions::reads_a_topic,
        clause: "records that a producer keeps until others come: by the clock, each must reach the topic from {ahead} before its event time to \
            {producer_delay} after it",
        details: "The proof assumes that one record more or less leaves every other record in its window. A producer that sends a message \
            every N rows breaks that: up to N - 1 rows wait in its buffer for the next one, and if it does not come they arrive after \
            the cutoff, and are missing from their window. One record then changes the result by as much as N do, and the noise is for \
            one.\n\n\
            So **flush by the clock**: send what is there every second or so, however little it is, and wait for no count. Declare as \
            `input.kafka.producer_delay` within what time of its event time a record is on the topic, by the clock of the brokers, whatever \
            other records there are: with the time that a batch is filled (`linger.ms`), the time to try again, and what the clock of the \
            event may differ from theirs. A `grace` that is not longer is refused: each record that keeps to the delay is then in its \
            window. Without `producer_delay` the condition is `grace` itself, the least that the proof needs. Records that are known \
            before they happen, such as announcements, are dropped if they come more than `windows.ahead` early, so they come later than \
            that. A record that comes at another time, because a device had no network or a plan was made long before, must come at a \
            moment that no other record decides. The program cannot see whether producers keep to this.\n\n\
            With `trust_producer_time` producers stamp the messages, and windows close by the worker's clock: the condition is the same for \
            the time at which a record is on the topic and for its stamp. Under `--backfill-until` it is enough that a record of the past \
            is sent before that moment, and that no other record decides whether it is.",
        main_limit: Some(
            "Producers must send by the clock, not by a count: a record that waits in a buffer for the next one can miss its window, and \
             the noise does not cover that.",
        ),
    },
    Exclusion {
        title: "Records that wait for others before they are in a file",
        applies_to: "with files",
        applies: conditions::reads_files,
        clause: "a record that another one delays: all must be in the files when these are read, not only full batches",
        details: "A program that writes a file every N rows keeps up to N - 1 of them: one record more or less then decides whether the \
            others are in the input. Let it write by the clock, and start the worker when everything up to `windows.end` is there.",
        main_limit: None,
    },
    Exclusion {
        title: "Copies of a record",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "copies of one row that a producer wrote twice: use idempotent producers",
        details: "A row that is in the input twice is two records. Let producers be idempotent (`enable.idempotence`), and do not copy \
            files within the input. In CSV and JSON lines each line is a record: a field with a line break in it would be several, so \
            write none, above all not from text that people type.",
        main_limit: None,
    },
    Exclusion {
        title: "Types that depend on rows",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "columns whose type depends on rows: producers must declare types, not infer them",
        details: "A program that infers the type of a column from its rows lets one row change how the others are written: one row \
            without a user makes integers floats in pandas, which rounds ids beyond 2^53, and what was rounded before it was sent nobody \
            can mend. The noise covers one record, not all that are written differently because of it. Declare the schema where records \
            are written.",
        main_limit: None,
    },
    Exclusion {
        title: "Fields that change their meaning",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "a field that changes its meaning and keeps its name, above all the time and the user",
        details: "A record is charged to the block of its event time and its user. If producers begin to write something else into these \
            fields, such as the time of arrival, one record, or one user, is charged in two blocks and spends two totals. To change what a \
            field means, begin another ledger before producers do (`ledger init --replace`): it takes no record that was sent before. That \
            a schema gives the names to other fields is noticed, and refused.",
        main_limit: None,
    },
    Exclusion {
        title: "When a synopsis appears",
        applies_to: "always",
        applies: conditions::always_applies,
        clause: "exact publication times when the worker is late, and that it has stopped",
        details: "Synopses are due at times that the configuration fixes. When they are really published can depend on the records if the \
            worker is late, and whether it has stopped is open to all. A busy worker is slower, which anyone who opens a page that it \
            serves can cause.\n\n\
            A producer who may write to the input can make the worker stop or run out of memory: the compressed size of a fetch is bounded \
            (16 MB, 1 MB a partition), and a zstd batch may decompress to 100 MB, but gzip, lz4 and snappy, and many batches in one fetch, \
            decompress without a bound. Give the worker a memory limit, and keep the topic's `max.message.bytes` small. A batch that a \
            broker's disk has corrupted stops reading where its decompression or its Arrow stream fails; Kafka's own checksum is not \
            checked, because librdkafka 2.12 aborts the process when it is wrong, so a flipped bit among uncompressed numbers goes \
            unnoticed. No privacy depends on it: a record may be anything.",
        main_limit: Some(
            "Synopses appear at times that are fixed in advance. Where a worker is late or has stopped, when they appear can depend on \
             the records, and is not hidden.",
        ),
    },
    Exclusion {
        title: "Load and open transactions",
        applies_to: "with Kafka",
        applies: conditions::reads_a_topic,
        clause: "how busy reading is when a synopsis is due, and open transactions of producers: both can delay it",
        details: "A burst of records at the moment of publication can move it by milliseconds, the more the fewer processors the worker \
            has. A reader that has got no record for ten seconds asks whether its brokers are there; where they are slow or away that takes \
            up to twenty seconds, so that when a late window closes, and when the log tells of the outage, can depend on when the last record came. \
            A window also waits for every transaction that was open on the input at its cutoff, whether it is committed or aborted \
            later: one that a producer leaves open delays publication until the brokers abort it (`transaction.timeout.ms`), and the log does \
            not say why.",
        main_limit: None,
    },
    Exclusion {
        title: "How long computing takes",
        applies_to: "where a function is solved for, or keys are found",
        applies: conditions::solves_for_function,
        clause: "how long a window takes to compute, which depends on its records: it shows where a synopsis falls due meanwhile",
        details: "The running time of solvers depends on the records, and so does the search for [keys that nobody \
            listed](../how-to/found-keys.md): a draw for each different key. It shows if a synopsis, or its report in metrics and log, falls due \
            meanwhile; `check` says when that can happen. Windows of files are all due at once, so the computing time shows in the \
            times of all their synopses.",
        main_limit: None,
    },
    Exclusion {
        title: "Sizes and times on other topics",
        applies_to: "with Kafka",
        applies: conditions::uses_brokers,
        clause: "sizes and times of messages on topics other than the output, such as the witness",
        details: "Anyone who can read the witness, or exports the ledger while its worker runs, sees when each window was paid for, which \
            is before it is due, and the time that solvers need depends on the records. On the ledger log the times of messages show how \
            long draws took, and their sizes, to an eighth of a power of two, how many keys a draw found, also one that lost a race and \
            was never published. On the topic of absorbers (`scale.topic`) sizes and times show how much was recorded, and when. Let only the \
            workers read these topics.",
        main_limit: None,
    },
    Exclusion {
        title: "Clocks and replicas of brokers",
        applies_to: "with Kafka, unless producers are trusted",
        applies: conditions::relies_on_brokers_clocks,
        clause: "brokers whose clocks and replicas differ by more than the assumed {clock_slack}",
        details: "A broker may stamp a record before a cutoff and show it after the window has closed: the brokers' clocks and the lag of \
            their replicas are assumed to differ by less than `clock_slack`, together. Records that show later are not counted, nor are \
            those that a new leader of a partition accepts while the worker, for longer than `clock_slack`, reaches only the old one. \
            That loses records but no privacy, with one exception: a broker's clock is further ahead than that while a worker catches up \
            on time that it was away. One record can then move the end of its window for the records behind it.",
        main_limit: None,
    },
    Exclusion {
        title: "Brokers that lose power together",
        applies_to: "with `brokers_lose_power = \"separately\"`",
        applies: conditions::does_not_flush,
        clause: "all brokers losing power at once: claims that are on no disk yet are lost, and windows can be published again with other noise",
        details: "Brokers acknowledge a claim before it is on their disks, unless the topics of witness, ledger log and shared budget have \
            `flush.messages=1`. Where all of them lose power without it, the newest claims are gone, and a worker without the ledger \
            that knows them can draw windows again that were published. With `brokers_lose_power = \"separately\"` these topics need \
            no such setting: you say that a loss of power never takes all brokers, as on independent supplies.",
        main_limit: None,
    },
    Exclusion {
        title: "Producers that are trusted",
        applies_to: "with `trust_producer_time`",
        applies: conditions::trusts_producers,
        clause: "against producers: their clocks decide which window a record belongs to",
        details: "Their clocks, and not the brokers', decide which records are in time.",
        main_limit: None,
    },
    Exclusion {
        title: "Messages that are skipped",
        applies_to: "with `on_bad_message = \"skip\"` or `skip`",
        applies: conditions::skips_messages,
        clause: "messages that cannot be read: they are skipped, and the output can show whether there were any",
        details: "One row can make a message of Arrow unreadable, and all of its records are then missing.",
        main_limit: None,
    },
    Exclusion {
        title: "Input that was lost",
        applies_to: "with `lost`",
        applies: conditions::accepts_loss,
        clause: "input that was deleted before it was read, or that cannot be read: it is missing from its windows",
        details: "Every later synopsis says that it is incomplete.",
        main_limit: None,
    },
    Exclusion {
        title: "Exact metrics and logs",
        applies_to: "with `detail = \"operator\"`",
        applies: conditions::shows_operators,
        clause: "metrics and log of the worker: they show exact counts, lags and offsets to whoever can read them",
        details: "Show them to nobody who may not see the records.",
        main_limit: None,
    },
    Exclusion {
        title: "Schemas that follow from rows",
        applies_to: "with `registry`",
        applies: conditions::asks_a_registry,
        clause: "schemas that producers register by what they are about to send: the metric, the log and the alert on the newest one show \
            that it was registered",
        details: "Every minute the worker compares the newest schema of a registry with the pinned ones, and a metric, the log and an alert say \
            whether it is one of them. What people register before anything is sent is public. A producer that infers a schema from rows and \
            registers it by itself makes it depend on records: set `auto.register.schemas=false` there.",
        main_limit: None,
    },
    Exclusion {
        title: "Records unlike the prior",
        applies_to: "with [random differential privacy](random.md)",
        applies: conditions::is_random,
        clause: "records that the prior does not describe, except by clipping and the noise",
        details: "Records unlike the prior are protected by a much larger epsilon only, which `check` states.",
        main_limit: None,
    },
    Exclusion {
        title: "Bad luck with the prior",
        applies_to: "with random differential privacy",
        applies: conditions::is_random,
        clause: "each record that is, with a probability of up to gamma = {gamma} in each window",
        details: "The guarantee holds with probability `1 - gamma` over the records of a window, not for each of them.",
        main_limit: None,
    },
    Exclusion {
        title: "Windows of another size",
        applies_to: "with random differential privacy",
        applies: conditions::is_random,
        clause: "windows and keys with another number of records than {records}, except by clipping and the noise: fewer records can \
            change a value far more",
        details: "The sensitivity was estimated for one number of records.",
        main_limit: None,
    },
];
