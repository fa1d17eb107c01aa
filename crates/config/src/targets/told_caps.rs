//! `[release.counts] caps`: numbers of users by how many keys they have, before `max_keys` drops any.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::targets::context::DeclaredUnits;
use crate::text::{Checked, Document, Field, Spanned};
use bernstream_functions::key_counts::{CountedStatistic, StatisticShare};
use bernstream_synopsis::told_caps::{MOST_TOLD, UnitBin, unit_bins};

/// a table such as { part = 0.05, most = 32 }
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CapsTable {
    /// a number above 0, below 1, such as 0.05: the part of the price that it takes, from all else
    #[schemars(extend("exclusiveMinimum" = 0, "exclusiveMaximum" = 1))]
    pub part: Field<f64>,
    /// a whole number from max_keys to 1024, such as 32: users with more keys are told together
    #[schemars(range(min = 1, max = 1024))]
    pub most: Field<u32>,
}

/// Part of the price that telling caps takes where the file gives none.
const CAPS_PART: f64 = 0.05;
/// Keys of a user up to which they are told apart where the file says nothing, if `max_keys` is at most half as many.
const TOLD_KEYS: u32 = 32;

/// Settings of told caps.
pub struct CapsSettings {
    /// Part of the price.
    part: f64,
    /// Most keys up to which users are told apart.
    most: u32,
}

impl CapsSettings {
    /// Takes its part of the price from all other statistics alike.
    pub fn take_part(&self, shares: &mut Vec<StatisticShare>) {
        for share in &mut *shares {
            share.part *= 1.0 - self.part;
        }
        shares.push(StatisticShare {
            statistic: CountedStatistic::Caps,
            part: self.part,
        });
    }

    /// The bins of users with 1 to `keys` keys.
    pub fn unit_bins(&self, keys: u32, max_keys: u32) -> Vec<UnitBin> {
        unit_bins(self.most, keys, max_keys)
    }
}

pub fn told_caps(
    document: &mut Document<'_>,
    written: &Spanned<CapsTable>,
    declared: &DeclaredUnits<'_>,
    max_keys: u32,
) -> Checked<CapsSettings> {
    let place = written.span();
    if !declared.has_users {
        let what = "has no effect: every record is a unit of its own, in one key";
        return Err(document.fault(place, what, "remove it"));
    }
    if max_keys as usize >= declared.keys.len() {
        let what =
            "has no effect: max_keys is at least the number of all keys, and none is dropped";
        return Err(document.fault(place, what, "remove it"));
    }
    let CapsTable { part, most } = written.get_ref();
    let part = document.optional(part.clone(), caps_part)?;
    let told = document.optional(most.clone(), told_keys)?;
    if max_keys > MOST_TOLD {
        let what = format!("cannot be told: max_keys is above {MOST_TOLD}");
        return Err(document.fault(place, what, "remove it, or make max_keys smaller"));
    }
    if let Some(told) = &told
        && *told.get_ref() < max_keys
    {
        let what = format!("must be at least max_keys, {max_keys}: what is dropped lies above");
        return Err(document.fault(told.span(), what, "such as twice as many"));
    }
    Ok(CapsSettings {
        part: part.map_or(CAPS_PART, Spanned::into_inner),
        most: told.map_or(
            (2 * max_keys).clamp(TOLD_KEYS, MOST_TOLD),
            Spanned::into_inner,
        ),
    })
}

fn caps_part(part: f64) -> Result<f64, String> {
    match part > 0.0 && part < 1.0 {
        true => Ok(part),
        false => Err("must be above 0 and below 1".to_owned()),
    }
}

fn told_keys(most: u32) -> Result<u32, String> {
    match most {
        1..=MOST_TOLD => Ok(most),
        _ => Err(format!("must be from 1 to {MOST_TOLD}")),
    }
}
