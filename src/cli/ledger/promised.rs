//! What a ledger has promised, in words.

use bernstream_config::{canonical, guarantee};
use bernstream_ledger::Genesis;
use bernstream_synopsis::price::Price;

/// The privacy definition of the ledger itself, whatever the configuration says now.
pub(super) fn definition_in_words(genesis: &Genesis) -> String {
    match canonical::recorded_definition(&genesis.settings) {
        Some(definition) => definition.to_string(),
        None => "a definition that this program does not know".to_owned(),
    }
}

/// The promise of a total that is not pure.
pub(super) fn total_in_words(total: Price) -> Vec<String> {
    let promise = format!(
        "the guarantee of a block is its total, {total}; what it has spent is a guarantee of its own only if no price was changed \
         because of earlier results"
    );
    match total {
        Price::Pure(_) | Price::Slots(_) => Vec::new(),
        Price::Approximate { .. } => vec![promise],
        Price::Concentrated(rho) => vec![promise, guarantee::implied_sentence(rho)],
    }
}
