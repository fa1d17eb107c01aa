//! The share of a pipeline whose total is a part of its input's: how a ledger comes to one, and keeps to it.

use tracing::{info, warn};

use crate::cli::open_error::OpenError;
use bernstream_config::{SharedBudget, WorkerSettings};
use bernstream_kafka as kafka;
use bernstream_kafka::ledger::budget::guard::{GuardedWitness, current_share};
use bernstream_kafka::ledger::budget::topic::{BudgetTopic, OrderedTopicParams};
use bernstream_kafka::topic;
use bernstream_kafka::topic::NO_ID;
use bernstream_ledger::budget::entry::BudgetTerms;
use bernstream_ledger::budget::error::BudgetError;
use bernstream_ledger::budget::fold::ActiveShare;
use bernstream_ledger::budget::join::{WantedShare, next_step};
use bernstream_ledger::witness::Witness;
use bernstream_ledger::{BudgetHolding, Ledger};
use bernstream_synopsis::clock::Timestamp;

/// A pipeline that is to have a new ledger.
pub struct ShareRequest<'b> {
    /// The id of its witness.
    pub owner: &'b str,
    /// True if its witness has accepted anything.
    pub was_claimed: bool,
    /// The start of its first window.
    pub first: Timestamp,
    /// True if it may begin later.
    pub may_wait: bool,
}

/// Creates the budget topic. Returns false if it is there already.
///
/// # Errors
///
/// If it cannot be created, or is there and not set up as it must be.
pub fn create_budget_topic(params: &OrderedTopicParams) -> Result<bool, OpenError> {
    match topic::describe_topic(&params.broker, &params.topic) {
        Err(kafka::ClusterError::NoTopic { .. }) => {
            BudgetTopic::create(params, params.new_replicas())?;
            Ok(true)
        }
        _ => Ok(BudgetTopic::open(params).map(|_| false)?),
    }
}

/// Refuses a share that does not fit, before anything is created. Who has no witness yet has the owner "" and holds nothing.
///
/// # Errors
///
/// Those of [`begin_share`].
pub fn foresee_share(
    settings: &WorkerSettings,
    input: &str,
    beginner: &ShareRequest<'_>,
) -> Result<(), OpenError> {
    let Some(mut budget) = open_budget(settings, input)? else {
        return Ok(());
    };
    let wanted = budget.asked_share(settings, beginner);
    Ok(next_step(budget.topic.read_shares()?, &wanted, None).map(drop)?)
}

/// A share that a new ledger begins with.
pub struct BegunShare {
    /// Its place in the budget topic; `None` if the pipeline shares with nobody.
    pub holding: Option<BudgetHolding>,
    /// The first window of the ledger: the asked one, or a later one.
    pub first: Timestamp,
}

/// Takes the share that a new ledger begins with, if its total is one. The entry was read back when this returns, so that the ledger may be
/// created.
///
/// # Errors
///
/// If the share does not fit, or the budget topic is missing, of another budget, or cannot be reached.
pub fn begin_share(
    settings: &WorkerSettings,
    input: &str,
    beginner: &ShareRequest<'_>,
) -> Result<BegunShare, OpenError> {
    let Some(mut budget) = open_budget(settings, input)? else {
        return Ok(BegunShare {
            holding: None,
            first: beginner.first,
        });
    };
    let wanted = budget.asked_share(settings, beginner);
    let (holder, begins) = budget.topic.join(&wanted)?;
    if begins > wanted.from {
        info!(
            "the budget topic {} has a share of {} only from {begins} on",
            wanted.topic, wanted.share
        );
    }
    let first = settings
        .windows
        .grid
        .first_from(beginner.first.max(begins))
        .start;
    Ok(BegunShare {
        holding: Some(BudgetHolding {
            topic: budget.topic.id().to_owned(),
            generation: holder.generation,
        }),
        first,
    })
}

/// The witness of `ledger`, which takes its claims only while its share holds; the same witness if it shares with nobody.
///
/// # Errors
///
/// If the budget topic is not the one that the ledger has its share in, or does not know that, or cannot be reached.
pub fn guard_witness(
    settings: &WorkerSettings,
    ledger: &Ledger,
    witness: Box<dyn Witness + Send>,
) -> Result<Box<dyn Witness + Send>, OpenError> {
    let Some(HeldShare { topic, share }) = held_share(settings, ledger)? else {
        return Ok(witness);
    };
    if let Some(until) = share.until.or(ledger.until()) {
        warn!(
            "the share of this ledger in the budget topic {} ends: no block from {until} on is released",
            topic.name()
        );
    }
    Ok(Box::new(GuardedWitness::new(
        witness,
        topic,
        share.entry.holder,
    )))
}

/// The share of a ledger, and the topic that says so.
pub struct HeldShare {
    pub topic: BudgetTopic,
    pub share: ActiveShare,
}

/// The share of `ledger`; `None` if it shares with nobody.
///
/// # Errors
///
/// Those of [`guard_witness`].
pub fn held_share(
    settings: &WorkerSettings,
    ledger: &Ledger,
) -> Result<Option<HeldShare>, OpenError> {
    let genesis = ledger.genesis();
    let (Some(holding), Some(holder)) = (&genesis.budget, genesis.holder()) else {
        return Ok(None);
    };
    // With other settings it was refused before.
    let Some(OpenBudget {
        budget,
        shared,
        mut topic,
    }) = open_budget(settings, &genesis.input)?
    else {
        return Ok(None);
    };
    let name = budget.topic.clone();
    if topic.id() != holding.topic {
        let id = holding.topic.clone();
        return Err(BudgetError::Elsewhere { name, id }.into());
    }
    let share = current_share(&mut topic, &holder)?;
    if let Some(what) = shared.difference(&share.entry.of) {
        return Err(BudgetError::OtherBudget { name, what }.into());
    }
    if share.entry.share != budget.share
        || settings.blocks.span_of(genesis.first).start < share.entry.from
    {
        return Err(BudgetError::Unheld { name }.into());
    }
    Ok(Some(HeldShare { topic, share }))
}

/// The budget of some settings, and its topic, of which nothing is read yet.
pub struct OpenBudget<'s> {
    pub budget: &'s SharedBudget,
    /// Settings that its pipelines must say alike.
    pub shared: BudgetTerms,
    pub topic: BudgetTopic,
}

impl OpenBudget<'_> {
    /// The share that a pipeline asks for, from the block of its first window on.
    fn asked_share(&self, settings: &WorkerSettings, beginner: &ShareRequest<'_>) -> WantedShare {
        WantedShare {
            topic: self.budget.topic.clone(),
            owner: beginner.owner.to_owned(),
            pipeline: settings.pipeline.clone(),
            share: self.budget.share,
            of: self.shared.clone(),
            from: settings.blocks.span_of(beginner.first).start,
            may_wait: beginner.may_wait,
            was_claimed: beginner.was_claimed,
        }
    }
}

/// Opens the budget of `settings`, whose input topic has the id `input`; `None` if the pipeline shares with nobody.
///
/// # Errors
///
/// If the topic is missing, is not set up as it must be, or cannot be reached.
pub fn open_budget<'s>(
    settings: &'s WorkerSettings,
    input: &str,
) -> Result<Option<OpenBudget<'s>>, OpenError> {
    let (Some(budget), Some(params)) = (&settings.privacy.budget, settings.budget_topic()) else {
        return Ok(None);
    };
    let Some(shared) = settings.shared_budget_terms(input.to_owned()) else {
        return Ok(None);
    };
    let topic = BudgetTopic::open(&params)?;
    // Without ids all witnesses are one owner, and their pipelines would share one entry.
    if [topic.id(), input].contains(&NO_ID) {
        return Err(BudgetError::NoIds {
            name: budget.topic.clone(),
        }
        .into());
    }
    Ok(Some(OpenBudget {
        budget,
        shared,
        topic,
    }))
}
