//! What is settled about a window before its records are looked at, and what comes of it.

use super::plan::Plan;
use bernstream_noise::Noisy;
use bernstream_noise::accountant::Charged;
use bernstream_release::Dequantized;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{Charge, Description, Entry};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Everything about a window that no record decides.
#[derive(Clone, Debug)]
pub struct Terms {
    pub publish_at: Timestamp,
    /// Where it will stand in the ledger.
    pub entry: Entry,
    pub quoted: Quoted,
}

/// What a window costs.
#[derive(Clone, Debug)]
pub struct Quoted {
    /// What each release covers.
    pub spans: Vec<Span>,
    /// What each release costs; `None` for one that is over.
    pub prices: Vec<Option<Price>>,
    /// What each block pays for all of them.
    pub charged: Vec<Charged>,
}

/// What leaves of one release and key, and what stays for the next window.
#[derive(Clone, Debug)]
pub struct Released {
    /// Which release of the plan, and which of its variants was chosen.
    pub release: usize,
    pub variant: usize,
    pub description: Description,
    /// The noisy values in natural units, and in grid units.
    pub values: Dequantized,
    pub noisy: Noisy,
    /// The slot and the bytes of the next state of its noise series, if it has one.
    pub state: Option<(String, Vec<u8>)>,
}

impl Plan {
    /// What `window` costs, where no release covers a window before `first`, and the first of the ledger is `began`: windows
    /// are numbered from there, whatever was changed since. `None` if a block cannot pay, or if every release is over.
    pub fn quoted(
        &self,
        window: Span,
        (first, began): (Timestamp, Timestamp),
        spent: impl Fn(Span) -> Price,
    ) -> Option<Quoted> {
        let spans: Vec<Span> = self.releases.iter().map(|release| self.span_of(release, window, first)).collect();
        let prices = self.prices(window, &spans, began);
        let charged = self.quote(&spans, &prices, spent)?;
        Some(Quoted { spans, prices, charged })
    }
}

impl Terms {
    /// Completes a description with what differs from window to window; `paid` are the panes that were charged for it.
    pub(super) fn describe(&self, description: Description, plan: &Plan, key: Option<&str>, paid: Span) -> Description {
        let is_ours = |block: Span| plan.blocks.spans_meeting(paid).any(|met| met == block);
        let charged = self.quoted.charged.iter().filter(|charged| is_ours(charged.block));
        let blocks = charged.map(|charged| Charge {
            start: charged.block.start,
            end: charged.block.end,
            spent: charged.spent,
            total: plan.total,
        });
        Description {
            key: key.map(str::to_owned),
            published: self.publish_at,
            privacy: description::Privacy { blocks: blocks.collect(), ..description.privacy },
            ledger: self.entry.clone(),
            ..description
        }
    }
}
