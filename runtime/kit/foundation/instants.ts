/** Converts ISO times to milliseconds since the epoch. */

/** The newest times that were read: each contact asks about the same few again. */
const known = new Map<string, number>()
const MAX_KNOWN = 4096

/**
 * Returns the milliseconds since 1970 of an ISO 8601 time.
 *
 * @throws {RangeError} The text is no time.
 */
export function epochOf(iso: string): number {
  const found = known.get(iso)
  if (found !== undefined) return found
  const epoch = Temporal.Instant.from(iso).epochMilliseconds
  if (known.size >= MAX_KNOWN) known.clear()
  known.set(iso, epoch)
  return epoch
}
