//! Number of blocks of one grid that a window of another can meet.

use std::time::Duration;

use bernstream_synopsis::clock::saturating_micros;

/// The most blocks of `block` that a window of `window` can meet, both on grids with one origin.
///
/// A window starts `r = m * gcd` after a border, `r < block`, and meets `ceil((r + window) / block)` blocks.
pub fn most_blocks(window: Duration, block: Duration) -> u64 {
    let window = saturating_micros(window).unsigned_abs();
    let block = saturating_micros(block).unsigned_abs().max(1);
    let step = gcd(window, block);
    (block - step).saturating_add(window).div_ceil(block)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bernstream_synopsis::clock::Timestamp;
    use bernstream_synopsis::grid::SpanGrid;

    #[test]
    fn the_most_blocks_of_a_window_is_what_the_grid_says() {
        for (window, block) in [
            (7, 3),
            (3, 7),
            (6, 3),
            (3, 6),
            (5, 4),
            (4, 5),
            (1, 9),
            (9, 1),
            (12, 8),
        ] {
            let [w, b] = [window, block].map(Duration::from_micros);
            let [windows, blocks] =
                [w, b].map(|length| SpanGrid::new(Timestamp::from_micros(2), length).unwrap());
            let mut span = windows.span_of(Timestamp::from_micros(-100));
            let mut most = 0;
            for _ in 0..100 {
                most = most.max(blocks.spans_meeting(span).count());
                span = windows.span_after(span);
            }
            assert_eq!(
                usize::try_from(most_blocks(w, b)).unwrap(),
                most,
                "{window} {block}"
            );
        }
    }
}
