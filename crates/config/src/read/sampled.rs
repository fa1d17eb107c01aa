//! `[release.sampled]`: a sensitivity that was sampled on a public prior, and the digest that binds it to its configuration.
//!
//! The prior is part of the configuration, so that a ledger is bound to it, and so that the digest of a result covers it
//! without a second file.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::read::draft::ReleaseDraft;
use crate::settings::{NoiseKind, PrivacySettings, PrivacyUnit};
use crate::text::{Checked, Document, Field, Reported, Spanned, values};
use crate::{canonical, file};
use bernstream_functions::sampled::{
    ClippedTarget, NeighbouringWindows, SampledChange, SampledTarget,
};
use bernstream_functions::sampler::{RecordPrior, SamplingPlan};
use bernstream_ledger::Digest;
use bernstream_noise::Mechanism;
use bernstream_synopsis::description;
use bernstream_synopsis::description::{PriorColumn, PrivacyDefinition, RandomPrivacy};
use bernstream_synopsis::{Adjacency, Sensitivity};

/// The largest epsilon of pure differential privacy that is accepted; it is also the largest total.
const MOST_AT_WORST: f64 = 1000.0;

/// The input of the sampler. All of it comes from the configuration, none of it from records.
#[derive(Clone, Debug)]
pub struct SamplerInput {
    pub neighbours: NeighbouringWindows,
    pub plan: SamplingPlan,
    /// The size of one grid unit, and what it is a size of.
    pub unit: f64,
    pub quantity: String,
    /// In natural units.
    range: [f64; 2],
    prior: Vec<PriorColumn>,
    /// Canonical JSON of everything that a result depends on.
    question: Value,
}

impl SamplerInput {
    /// The table `[release.sampled.result]` to add to the configuration.
    pub fn result_table(&self, change: SampledChange) -> String {
        let SamplingPlan {
            samples,
            order,
            rho,
            gamma,
        } = self.plan;
        let SampledChange { sup, sum } = change;
        format!(
            "# Sampled by `bernstream sample`, with seed {seed}: random differential privacy, gamma = {gamma}. In grid units; a \
             pair\n# changes all values together by {all:.4e} and one of them by {one:.4e} {quantity}.\n\
             [release.sampled.result]\nsensitivity = {sum}\nlargest = {sup}\nsamples = {samples}\norder = {order}\n\
             rho = {rho:?}\ndigest = \"{digest}\"\n",
            seed = self.neighbours.seed,
            all = grid_units(sum) * self.unit,
            one = grid_units(sup) * self.unit,
            quantity = self.quantity,
            digest = self.result_digest(change),
        )
    }

    /// SHA-256 of the question and the answer, so that an edit of either is detected.
    fn result_digest(&self, change: SampledChange) -> String {
        let SamplingPlan {
            gamma,
            samples,
            order,
            rho,
        } = self.plan;
        let plan = json!({ "gamma": gamma, "samples": samples, "order": order, "rho": rho });
        let answer = json!({ "sensitivity": change.sum, "largest": change.sup });
        let all = json!({ "question": self.question, "plan": plan, "answer": answer }).to_string();
        Digest::of_bytes(all.as_bytes()).to_string()
    }
}

pub fn composition_fault(document: &mut Document<'_>, place: Range<usize>) -> Reported {
    let what = "a sampled sensitivity is random differential privacy, which does not compose with that of other releases";
    document.fault(
        place,
        what,
        "give it a configuration and a ledger of its own",
    )
}

/// Replaces the proved sensitivity by a sampled one, and the definition by random differential privacy `[RA17]`.
pub fn apply_sampled_sensitivity(
    document: &mut Document<'_>,
    drafts: &mut [ReleaseDraft],
    privacy: &mut PrivacySettings,
) -> Checked<()> {
    let several = drafts.len() > 1;
    let Some(draft) = drafts.iter_mut().find(|draft| draft.sampled.is_some()) else {
        return Ok(());
    };
    let Some(mut table) = draft.sampled.take() else {
        return Ok(());
    };
    if several {
        return Err(composition_fault(document, table.span()));
    }
    if let Some(windows) = &draft.windows
        && !matches!(windows.get_ref(), file::WrittenWindowKind::Tumbling)
    {
        let what = "reads several windows, and the sensitivity was sampled for the records of one";
        return Err(document.fault(windows.span(), what, r#"use "tumbling""#));
    }
    let table_place = table.span();
    let written = table.get_mut().result.take();
    let study = sampled_study(document, table, draft, privacy)?;
    let Some(written) = written else {
        let hint = "run `bernstream sample` with this file, and add the table that it prints";
        return Err(document.fault(table_place, "has no result", hint));
    };
    let place = written.span();
    let change = sampled_change(document, &study, written)?;
    let SamplerInput {
        neighbours,
        plan,
        range,
        prior,
        ..
    } = study;
    let scale = match Mechanism::laplace(Sensitivity(change.sum), draft.payment.get_ref().epsilon())
    {
        Ok(mechanism) => mechanism.scale().units(),
        Err(error) => return Err(document.fault(draft.payment.span(), error.to_string(), "")),
    };
    #[expect(
        clippy::cast_precision_loss,
        reason = "rounded up to a tenth, far above the error"
    )]
    let epsilon_at_worst =
        (neighbours.target.worst_change(privacy.adjacency) as f64 / grid_units(scale) * 10.0)
            .floor()
            / 10.0
            + 0.1;
    if epsilon_at_worst > MOST_AT_WORST {
        let what = format!(
            "for records that the prior does not resemble there is next to no noise left: epsilon = {epsilon_at_worst:.0} in plain \
             privacy, at most {MOST_AT_WORST:.0} is allowed"
        );
        return Err(document.fault(
            place,
            what,
            "narrow the range that values are clipped to, or widen the prior",
        ));
    }
    privacy.definition = PrivacyDefinition::Random(RandomPrivacy {
        gamma: plan.gamma,
        records: neighbours.records,
        prior,
        samples: plan.samples,
        order: plan.order,
        rho: plan.rho,
        seed: neighbours.seed,
        range,
        epsilon_at_worst,
    });
    let function = draft.function.get_mut();
    function.target = Arc::new(SampledTarget {
        clipped: neighbours.target,
        change,
        adjacency: privacy.adjacency,
    });
    Ok(())
}

/// The change that was sampled, as written; a fault if it is not the result of `study`.
fn sampled_change(
    document: &mut Document<'_>,
    study: &SamplerInput,
    written: Spanned<file::SampledResult>,
) -> Checked<SampledChange> {
    let place = written.span();
    let written = written.into_inner();
    let sum = document.required(&place, "sensitivity", written.sensitivity, values::count);
    let sup = document.required(&place, "largest", written.largest, values::count);
    let samples = document.required(&place, "samples", written.samples, Ok);
    let order = document.required(&place, "order", written.order, Ok);
    let rho = document.required(&place, "rho", written.rho, Ok);
    let digest = document.required(&place, "digest", written.digest, Ok)?;
    let change = SampledChange {
        sup: sup?.into_inner(),
        sum: sum?.into_inner(),
    };
    let plan = SamplingPlan {
        samples: samples?.into_inner(),
        order: order?.into_inner(),
        rho: rho?.into_inner(),
        ..study.plan
    };
    if plan != study.plan || *digest.get_ref() != study.result_digest(change) {
        let what = "is not the result of this configuration: one of the two was edited after it was sampled";
        let hint = "run `bernstream sample` again, and replace the table by what it prints";
        return Err(document.fault(digest.span(), what, hint));
    }
    Ok(change)
}

/// The question that is sampled; the result in the table is not looked at.
pub fn sampled_study(
    document: &mut Document<'_>,
    table: Spanned<file::SampledTable>,
    draft: &ReleaseDraft,
    privacy: &PrivacySettings,
) -> Checked<SamplerInput> {
    let place = table.span();
    let written = table.into_inner();
    let gamma = document.required(&place, "gamma", written.gamma, |gamma| {
        if gamma > 0.0 && gamma < 1.0 {
            Ok(gamma)
        } else {
            Err("must lie between 0 and 1".to_owned())
        }
    });
    let samples = document.optional(written.samples, values::count);
    let seed = document.required(&place, "seed", written.seed, Ok);
    let records = window_records(document, &place, written.records, privacy);
    let range = clipping_range(document, &place, written.range, draft);
    let prior = read_prior(document, &place, written.prior, draft);
    can_be_sampled(document, place, draft, privacy)?;
    let gamma = gamma?;
    let plan = match samples? {
        Some(samples) => SamplingPlan::new(samples.into_inner(), *gamma.get_ref()),
        None => SamplingPlan::for_gamma(*gamma.get_ref()),
    };
    let plan = plan.map_err(|error| document.fault(gamma.span(), error.to_string(), ""))?;
    let seed = seed?.into_inner();
    let records = records?;
    let range = range?;
    let prior = prior?;
    let function = draft.function.get_ref();
    #[expect(
        clippy::cast_possible_truncation,
        reason = "saturates, and is then refused"
    )]
    let in_grid_units = range
        .get_ref()
        .map(|end| ((end - function.scaling.offset()) / function.grid_unit()).round() as i128);
    let target = ClippedTarget::new(function.target.clone(), in_grid_units)
        .map_err(|error| document.fault(range.span(), error.to_string(), ""))?;
    let shape = function.target.shape();
    // Another number where the same question has another answer. The first did not let values become invalid.
    let sampler = match privacy.adjacency {
        Adjacency::AddRemove => 1,
        Adjacency::ReplaceOne => 2,
    };
    let question = json!({
        "sampler": sampler,
        "function": function.about,
        "basis": shape.basis,
        "degree": shape.degree,
        "grid": function.target.unit(),
        "domain": canonical::domain_bounds(&draft.columns, &draft.axes),
        "label": canonical::label_text(&draft.columns, draft.label.as_ref()),
        "unit": "record",
        "adjacency": privacy.adjacency,
        "records": records,
        "prior": prior.columns,
        "range": range.get_ref(),
        "seed": seed,
    });
    Ok(SamplerInput {
        neighbours: NeighbouringWindows {
            target,
            prior: prior.distribution,
            records,
            adjacency: privacy.adjacency,
            seed,
        },
        plan,
        unit: function.grid_unit(),
        quantity: function.quantity.clone(),
        range: range.into_inner(),
        prior: prior.columns,
        question,
    })
}

/// Checks that the release and its privacy are of a kind for which a sensitivity can be sampled.
fn can_be_sampled(
    document: &mut Document<'_>,
    place: Range<usize>,
    draft: &ReleaseDraft,
    privacy: &PrivacySettings,
) -> Checked<()> {
    if privacy.unit != PrivacyUnit::Record {
        let what = "a sampled sensitivity protects single records, not all records of a user";
        return Err(document.fault(
            place,
            what,
            "use privacy.unit = \"record\", or leave out [release.sampled]",
        ));
    }
    if privacy.definition != PrivacyDefinition::PureEpsilon {
        let what = format!(
            "a sampled sensitivity needs a pure budget, and [privacy] has {}",
            privacy.definition
        );
        return Err(document.fault(
            place,
            what,
            "give [privacy] `epsilon` alone, or leave out [release.sampled]",
        ));
    }
    if let Some(choice) = draft.choice_place() {
        let what =
            "a private choice needs a proved sensitivity, [release.sampled] has a sampled one";
        return Err(document.fault(choice, what, "remove one of the two"));
    }
    if draft.noise != NoiseKind::Laplace {
        let what = "a sampled sensitivity is in the 1-norm: it needs Laplace noise";
        return Err(document.fault(
            place,
            what,
            "remove `noise`, or leave out [release.sampled]",
        ));
    }
    Ok(())
}

/// The public number of records of a window; under `replace_one` it is known already.
fn window_records(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<u32>,
    privacy: &PrivacySettings,
) -> Checked<u32> {
    let known = privacy.records_per_window;
    let Some(records) = document.optional(written, values::count)? else {
        let Some(known) = known else {
            return Err(document.missing(place.clone(), "records"));
        };
        return u32::try_from(known)
            .map_err(|_| document.fault(place.clone(), "windows are too large to be sampled", ""));
    };
    if let Some(known) = known
        && u64::from(*records.get_ref()) > known
    {
        let what = format!("is more than replace_one.records_per_window, {known}");
        return Err(document.fault(
            records.span(),
            what,
            "give the number of a window and key, or leave it out for one key",
        ));
    }
    Ok(records.into_inner())
}

/// The range that values are clipped to, in natural units. The bounds of a label and of a probability are public; densities,
/// scores and sums have no natural bounds.
fn clipping_range(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<Vec<Spanned<f64>>>,
    draft: &ReleaseDraft,
) -> Checked<Spanned<[f64; 2]>> {
    let own = match &draft.function.get_ref().about {
        description::TargetDescription::Regression(regression) => {
            Some([regression.min, regression.max])
        }
        description::TargetDescription::Probability(_) => Some([0.0, 1.0]),
        _ => None,
    };
    if let Some(own) = own
        && written.is_none()
    {
        return Ok(Spanned::new(place.clone(), own));
    }
    document.required(place, "range", written, |ends| {
        if let [lo, hi] = &ends[..] {
            let lo = *lo.get_ref();
            let hi = *hi.get_ref();
            if lo < hi && (hi - lo).is_finite() {
                return Ok([lo, hi]);
            }
        }
        Err("must be two numbers, the first below the second".to_owned())
    })
}

/// The prior distribution, as it is described and as it is drawn from.
struct ReadPrior {
    columns: Vec<PriorColumn>,
    distribution: RecordPrior,
}

/// The prior distribution of every column, in the order of the columns.
fn read_prior(
    document: &mut Document<'_>,
    place: &Range<usize>,
    written: Field<Vec<Spanned<file::PriorColumnTable>>>,
    draft: &ReleaseDraft,
) -> Checked<ReadPrior> {
    let list = document.required(place, "prior", written, Ok)?;
    let list_place = list.span();
    let mut laws: Vec<PriorColumn> = Vec::new();
    for entry in list.into_inner() {
        let place = entry.span();
        let entry = entry.into_inner();
        let law = document.required(&place, "law", entry.law, |law| Ok(law.0));
        let column = document.required(&place, "column", entry.column, |column| {
            if laws.iter().any(|known| known.column == column) {
                return Err("already has a law".to_owned());
            }
            if !draft.columns.contains(&column) {
                let columns = draft.columns.join(", ");
                return Err(format!("the function reads {columns}, not this column"));
            }
            Ok(column)
        })?;
        laws.push(PriorColumn {
            column: column.into_inner(),
            law: law?.into_inner(),
        });
    }
    let mut columns = Vec::new();
    for column in &draft.columns {
        let Some(law) = laws.iter().find(|known| known.column == *column) else {
            let what = format!("has no law for {column}");
            return Err(document.fault(list_place, what, "add one"));
        };
        columns.push(law.clone());
    }
    let mut laws = columns.iter().map(|known| known.law.clone());
    let axes = draft.axes.iter().cloned().zip(laws.by_ref()).collect();
    let label = draft.label.clone().zip(laws.next());
    let distribution = RecordPrior::new(axes, label)
        .map_err(|error| document.fault(list_place, error.to_string(), ""))?;
    Ok(ReadPrior {
        columns,
        distribution,
    })
}

/// A number of grid units, for display.
#[expect(clippy::cast_precision_loss, reason = "a figure to show")]
fn grid_units(units: u64) -> f64 {
    units as f64
}
