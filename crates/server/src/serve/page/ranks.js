// Quantiles from noisy counts of places and of blocks of them, as clients/FORMAT.md has them under "Quantiles".

/** Whether blocks of places are counted too. */
const hasBlocks = ({ block, places }) => Number.isInteger(block) && block >= 1 && block <= places;

/** Quantiles from noisy counts of places and of blocks of them: clients/FORMAT.md, "Quantiles". */
export class Ranks {
  #grid;
  #unit;
  #noise;

  /** `unit` is the half-width of noise with weights of length 1. */
  constructor(grid, unit) {
    this.#grid = grid;
    this.#unit = unit;
    this.#noise = new Map();
  }

  /** Numbers of values up to each place, by least squares. */
  upTo(counts) {
    const { places, block } = this.#grid;
    const blocks = hasBlocks(this.#grid) ? Math.ceil(places / block) : 0;
    const sums = new Float64Array(places);
    let before = 0;
    const size = blocks ? block : places;
    for (let from = 0, at = 0; from < places; from += size, at++) {
      const to = Math.min(from + size, places);
      let each = 0;
      if (blocks) {
        let sum = 0;
        for (let place = from; place < to; place++) sum += counts[blocks + place];
        each = (counts[at] - sum) / (to - from + 1);
      }
      for (let place = from; place < to; place++) sums[place] = before += counts[blocks + place] + each;
    }
    return sums;
  }

  /** The half-widths of (values up to a place) - part x (all values). */
  halfWidths(part) {
    if (!this.#noise.has(part)) {
      const widths = Float64Array.from({ length: this.#grid.places }, (_, place) => this.#unit * this.#length(place, part));
      this.#noise.set(part, widths);
    }
    return this.#noise.get(part);
  }

  #length(place, part) {
    const { places, block } = this.#grid;
    const upTo = place + 1;
    if (!hasBlocks(this.#grid)) return Math.sqrt(upTo * (1 - part) ** 2 + (places - upTo) * part ** 2);
    let square = 0;
    for (let from = 0; from < places; from += block) {
      const k = Math.min(from + block, places) - from;
      const counted = Math.min(Math.max(upTo - from, 0), k);
      const ofBlock = (counted - part * k) ** 2;
      square += (ofBlock + counted * (k + 1 - counted - part) ** 2 + (k - counted) * (counted + part) ** 2) / (k + 1) ** 2;
    }
    return Math.sqrt(square);
  }

  /** All values, give or take their noise. */
  all(upTo) {
    const value = upTo[upTo.length - 1];
    const halfWidth = this.halfWidths(0)[upTo.length - 1];
    return { value, pointwise: [value - halfWidth, value + halfWidth] };
  }

  /** The place of a quantile, and those of its interval. */
  quantile(upTo, part) {
    const { value: all, pointwise: [least] } = this.all(upTo);
    const last = upTo.length - 1;
    const widths = this.halfWidths(part);
    let lower = upTo.findIndex((sum, place) => sum - part * all >= -widths[place]);
    if (lower < 0) lower = last;
    const below = upTo.findLastIndex((sum, place) => sum - part * all <= widths[place]);
    const upper = Math.max(Math.min(below + 1, last), lower);
    let place = rising(upTo).findIndex((sum) => sum >= part * all);
    if (place < 0) place = last;
    const value = all > 0 ? Math.min(Math.max(place, lower), upper) : null;
    return { value, pointwise: least > 0 ? [lower, upper] : null };
  }
}

/** The nearest sequence, in least squares, that never falls. */
function rising(sums) {
  const means = [];
  const sizes = [];
  for (const sum of sums) {
    means.push(sum);
    sizes.push(1);
    while (means.length > 1 && means.at(-2) > means.at(-1)) {
      const [mean, size] = [means.pop(), sizes.pop()];
      const both = sizes.at(-1) + size;
      means[means.length - 1] = (means.at(-1) * sizes.at(-1) + mean * size) / both;
      sizes[sizes.length - 1] = both;
    }
  }
  return means.flatMap((mean, i) => Array(sizes[i]).fill(mean));
}
