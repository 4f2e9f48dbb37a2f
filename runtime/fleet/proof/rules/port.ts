/** Decides what an open port of a machine says of the system that was flashed. */
import type { Proof } from '../../../engine/inventory/rules/run.ts'

/** What was seen at one port of a machine. */
export interface PortSeen {
  readonly kind: 'closed' | 'open' | 'ssh'
  /** SHA-256 of each host key that its SSH has; empty: it has none, or they could not be read. */
  readonly keys: readonly string[]
}

/** What was seen at the port before the new system could run: of the system before, and of the live system. */
export type PortBefore = NonNullable<Proof['port_before']>

/** How long after its boot a system may take to open its ports, milliseconds. */
const STARTS_MS = 120_000

/** The last network boot of a machine. */
export interface LastBoot {
  readonly isToDisk: boolean
  /** Milliseconds of a clock that nobody sets. */
  readonly at: number
}

/**
 * Whether what answers at a machine's address now is the system on its disk, up and running: only that
 * is a witness of what was there before a flash. Firmware and live systems are none.
 */
export const isOldSystem = (last: LastBoot | undefined, now: number): boolean =>
  last?.isToDisk === true && now - last.at >= STARTS_MS

/** Joins what was seen before the flash and during it; null: one of the two is not known, so nothing can be compared. */
export function joinBefore(old: PortSeen | null, live: PortSeen | null): PortBefore | null {
  if (old === null || live === null) return null
  // An SSH whose keys could not be read may have any.
  if ([old, live].some(({ kind, keys }) => kind === 'ssh' && keys.length === 0)) return null
  return {
    is_closed: old.kind === 'closed' && live.kind === 'closed',
    keys: [...new Set([...old.keys, ...live.keys])],
  }
}

/** How an open port proves the new system: by a host key that was not there before, or by being open; null: not at all. */
export function proveByPort(before: PortBefore | null, seen: PortSeen): 'ssh' | 'port' | null {
  if (before === null) return null
  switch (seen.kind) {
    case 'closed':
      return null
    case 'open':
      return before.is_closed ? 'port' : null
    case 'ssh':
      return seen.keys.length > 0 && !seen.keys.some((key) => before.keys.includes(key))
        ? 'ssh'
        : null
  }
}
