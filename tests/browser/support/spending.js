// What `GET /api/v1/spending` answers for given synopses, with amounts of up to six decimals. `real.test.js` compares it with the
// program's own answer.

const MILLION = 1_000_000;
/** Of a price with a delta its epsilon: nothing that is tested here depends on the delta. */
const units = (amount) => Math.round(Number(amount.epsilon ?? amount) * MILLION);
const price = (count) => String(Number((count / MILLION).toFixed(6)));
const time = (text) => new Date(text).getTime();
const text = (at) => new Date(at).toISOString().replace(".000Z", "Z");

/** Synopses that were paid for in epsilon, in any order. */
export function spendingOf(synopses) {
  const charges = new Map(synopses.map((one) => [JSON.stringify([one.pipeline, one.ledger.id, String(one.ledger.sequence).padStart(12, "0"), one.release]), one]));
  const [releases, days, blocks] = [new Map(), new Map(), new Map()];
  const kept = (map, key, made) => map.get(JSON.stringify(key)) ?? map.set(JSON.stringify(key), made).get(JSON.stringify(key));
  for (const [, one] of [...charges].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const { pipeline, release, ledger: { id: ledger, sequence }, privacy } = one;
    const window = one.panes?.newest ?? one.window;
    const cost = units(privacy.price);
    const add = (own) => { own.windows += 1; own.charged += cost; return own; };
    add(kept(releases, [pipeline, ledger, release], { pipeline, ledger, release, windows: 0, charged: 0, span: { ...window } })).span.end = window.end;
    const day = `${window.start.slice(0, 10)}T00:00:00Z`;
    add(kept(days, [pipeline, ledger, day, release], { pipeline, ledger, day, release, windows: 0, charged: 0 }));
    for (const { start, end, spent, total } of privacy.blocks) {
      const block = kept(blocks, [pipeline, ledger, start, end], { pipeline, ledger, block: { start, end }, row: -1, cost: 0, releases: new Map() });
      Object.assign(block, { cost: block.row === sequence ? block.cost + cost : cost, row: sequence, newest: { ...window }, spent: units(spent), total: units(total) });
      Object.assign(add(kept(block.releases, release, { release, windows: 0, charged: 0 })), { row: sequence, cost });
    }
  }
  const plain = (own) => ({ ...own, charged: price(own.charged) });
  const ofBlock = ({ pipeline, ledger, block, row, cost, newest, spent, total, releases: own }) => {
    const left = Math.max(0, total - spent);
    const count = cost > 0 ? Math.floor(left / cost) : 0;
    const until = time(newest.end) + count * (time(newest.end) - time(newest.start));
    return {
      pipeline, ledger, block, spent: price(spent), total: price(total), left: price(left), newest, price: price(cost), windows_left: count,
      ...(until < time(block.end) ? { lasts_until: text(until) } : {}),
      releases: [...own.values()].map(({ row: last, cost: newestCost, ...rest }) => ({ ...plain(rest), price: price(last === row ? newestCost : 0) })),
    };
  };
  const sorted = (map, made) => [...map].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, own]) => made(own));
  return { releases: sorted(releases, plain), days: sorted(days, plain), blocks: sorted(blocks, ofBlock) };
}
