//! The looks of a running test at what it has, and how far off it may be then.

/// The looks of one test: each a quarter further than the one before. Whoever stops after any of them, whyever, takes a right program for
/// a wrong one with probability `alarm` at most: look `k` may do so with `alarm / k (k + 1)`, and these add up to `alarm`
/// (union bound).
#[derive(Clone, Copy, Debug)]
pub struct SequentialTest {
    alarm: f64,
    number: u32,
    runs: u64,
}

impl SequentialTest {
    /// With probability `alarm` of a false alarm; the first look after `first` runs.
    pub fn new(alarm: f64, first: u64) -> Self {
        SequentialTest {
            alarm,
            number: 1,
            runs: first,
        }
    }

    /// Number of runs at this look.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// The look after this one.
    pub fn next_look(self) -> Self {
        SequentialTest {
            number: self.number + 1,
            runs: self.runs + self.runs.div_ceil(4),
            ..self
        }
    }

    /// An empirical distribution function of `n` independent draws is nowhere further from the true one: by the inequality of
    /// Dvoretzky, Kiefer and Wolfowitz, `P(further than e) <= 2 exp(-2 n e^2)`, with Massart's constant (The Tight Constant in the
    /// Dvoretzky-Kiefer-Wolfowitz Inequality, Annals of Probability 1990). For a part of `n` cases the same is Hoeffding's.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn confidence_band(&self, n: u64) -> f64 {
        let number = f64::from(self.number);
        ((2.0 * number * (number + 1.0) / self.alarm).ln() / (2.0 * n.max(1) as f64)).sqrt()
    }

    /// The largest part of `n` independent cases that an event of this probability, or a smaller one, has at this look: by Chernoff's
    /// inequality `P(a part q or more) <= exp(-n KL(q, p))`, `KL` the relative entropy of two coins.
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
    pub fn largest_part(&self, n: u64, probability: f64) -> f64 {
        let number = f64::from(self.number);
        let wanted = (number * (number + 1.0) / self.alarm).ln() / n.max(1) as f64;
        let mut inside = probability;
        let mut outside = 1.0;
        for _ in 0..100 {
            let middle = f64::midpoint(inside, outside);
            if relative_entropy(middle, probability) < wanted {
                inside = middle;
            } else {
                outside = middle;
            }
        }
        outside
    }
}

/// `KL(q, p)` of two coins.
fn relative_entropy(q: f64, p: f64) -> f64 {
    entropy_term(q, p) + entropy_term(1.0 - q, 1.0 - p)
}

fn entropy_term(q: f64, p: f64) -> f64 {
    match q > 0.0 {
        true => q * (q / p).ln(),
        false => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_looks_may_get_wrong_adds_up_to_the_alarm() {
        let mut looks = SequentialTest::new(1e-3, 100);
        let mut spent = 0.0;
        let mut before = 0;
        for _ in 0..60 {
            assert!(looks.runs() > before);
            before = looks.runs();
            let n = looks.runs();
            spent += 2.0 * (-2.0 * n as f64 * looks.confidence_band(n).powi(2)).exp();
            looks = looks.next_look();
        }
        assert!(spent < 1e-3 && spent > 0.95e-3, "{spent}");
    }
}
