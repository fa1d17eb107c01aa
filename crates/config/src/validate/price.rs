//! The rule that the total of a block pays for a window of all releases.

use crate::read::draft::ReleaseDraft;
use crate::settings::PrivacySettings;
use crate::text::Document;
use bernstream_synopsis::price::Price;

/// Checks that the total pays for a window of all releases; the fault is at the release that exceeds it.
pub fn can_pay_once(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    drafts: &[ReleaseDraft],
) {
    // All releases share one slot.
    if let Price::Slots(_) = privacy.spendable_limit() {
        return slots_are_left(document, privacy, drafts);
    }
    let mut before = privacy.total.zero_of_kind();
    for draft in drafts {
        let Some(sum) = can_pay(document, privacy, before, draft) else {
            return;
        };
        before = sum;
    }
}

fn slots_are_left(document: &mut Document<'_>, privacy: &PrivacySettings, drafts: &[ReleaseDraft]) {
    if privacy.spendable_limit().is_zero()
        && let Some(draft) = drafts.first()
    {
        let what = format!(
            "{}, less privacy.reserve, does not cover one window",
            privacy.total
        );
        document.fault(
            draft.payment.span(),
            what,
            "lower privacy.reserve, or raise privacy.windows",
        );
    }
}

fn can_pay(
    document: &mut Document<'_>,
    privacy: &PrivacySettings,
    before: Price,
    release: &ReleaseDraft,
) -> Option<Price> {
    let total = privacy.total;
    let limit = privacy.spendable_limit();
    let own = release.payment.get_ref().charged_price();
    let price = release.choice_prices().fold(own, Price::with_pure);
    let sum = before.checked_add(price);
    if sum.is_none_or(|sum| !sum.is_within(limit)) {
        let keys = match total {
            Price::Pure(_) => "privacy.epsilon",
            Price::Approximate { .. } => "privacy.epsilon and privacy.delta",
            Price::Concentrated(_) => "privacy.rho",
            Price::Slots(_) => "privacy.windows",
        };
        let parts = if price == own {
            String::new()
        } else {
            format!(" ({own}, and the rest for private choices)")
        };
        let others = if before.is_zero() {
            String::new()
        } else {
            format!(" and {before} for the releases before it")
        };
        let kept = if limit == total {
            String::new()
        } else {
            format!(", of which {limit} is not reserved")
        };
        let what = format!(
            "the price of one window, {price}{parts}{others}, is more than {keys}, {total}{kept}"
        );
        document.fault(
            release.payment.span(),
            what,
            "no window could ever be paid for",
        );
        return None;
    }
    sum
}
