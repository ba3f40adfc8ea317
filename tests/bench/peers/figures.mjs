// Figures of a row of numbers.

/** The smallest value that at least `share` of the values do not exceed (nearest rank); nothing of no values. */
export function percentile(values, share) {
  if (values.length === 0) return undefined;
  const sorted = Float64Array.from(values).sort();
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];
}

/** How many a second `count` in `ms` milliseconds are; nothing of no time. */
export function perSecond(count, ms) {
  return ms > 0 ? (count * 1000) / ms : undefined;
}
