//! The terms of a window, which are settled before its records are looked at, and what comes of it.

use super::plan::ReleasePlan;
use bernstream_noise::Noisy;
use bernstream_noise::accountant::ChargedBlock;
use bernstream_release::Dequantized;
use bernstream_synopsis::clock::Timestamp;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{BlockCharge, Description, PaymentRow};
use bernstream_synopsis::grid::Span;
use bernstream_synopsis::price::Price;

/// Everything about a window that no record decides.
#[derive(Clone, Debug)]
pub struct WindowTerms {
    pub publish_at: Timestamp,
    /// Its place in the ledger.
    pub entry: PaymentRow,
    pub quoted: WindowQuote,
}

/// The price of a window, for its releases and for its blocks.
#[derive(Clone, Debug)]
pub struct WindowQuote {
    /// In the order of the plan.
    pub releases: Vec<QuotedRelease>,
    /// The charge of each block for all of them.
    pub charged: Vec<ChargedBlock>,
}

/// The span that one release covers in a window, and its price there.
#[derive(Clone, Copy, Debug)]
pub struct QuotedRelease {
    pub span: Span,
    /// `None` for a release that is over.
    pub price: Option<Price>,
}

/// The beginning of a ledger and of its releases.
#[derive(Clone, Copy, Debug)]
pub struct LedgerBeginning {
    /// Windows are numbered from here, whatever was changed since: the first of the ledger.
    pub first_window: Timestamp,
    /// No release covers a window before this one.
    pub first_covered: Timestamp,
}

/// The synopsis of one release and key, and the state that stays for the next window.
#[derive(Clone, Debug)]
pub struct ReleasedSynopsis {
    /// The places of the release in the plan, and of the variant that was chosen for it.
    pub release: usize,
    pub variant: usize,
    pub description: Description,
    /// The noisy values in natural units, and in grid units.
    pub values: Dequantized,
    pub noisy: Noisy,
    /// The slot and the bytes of the next state of its noise series, if it has one.
    pub state: Option<(String, Vec<u8>)>,
}

impl ReleasePlan {
    /// The price of `window`; `None` if a block cannot pay, or if every release is over.
    pub fn quote_window(
        &self,
        window: Span,
        beginning: LedgerBeginning,
        spent: impl Fn(Span) -> Price,
    ) -> Option<WindowQuote> {
        let releases = self.quote_releases(window, beginning);
        let charged = self.quote_blocks(&releases, spent)?;
        Some(WindowQuote { releases, charged })
    }
}

impl WindowTerms {
    /// Completes a description with what differs from window to window; `paid` are the panes that were charged for it.
    pub(super) fn complete_description(
        &self,
        description: Description,
        plan: &ReleasePlan,
        key: Option<&str>,
        paid: Span,
    ) -> Description {
        let mut blocks = Vec::new();
        for charged in &self.quoted.charged {
            let mut overlapped = plan.blocks.spans_meeting(paid);
            if overlapped.any(|block| block == charged.block) {
                blocks.push(BlockCharge {
                    start: charged.block.start,
                    end: charged.block.end,
                    spent: charged.spent,
                    total: plan.total,
                });
            }
        }
        Description {
            key: key.map(str::to_owned),
            published: self.publish_at,
            privacy: description::PrivacyDescription {
                blocks,
                ..description.privacy
            },
            ledger: self.entry.clone(),
            ..description
        }
    }
}
