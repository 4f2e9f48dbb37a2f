/** Earlier line: what becomes of a record when its machine contacts the server ("Transitions"). */
import type { Mac } from '#kit/net/rules/mac.ts'
import { createMachine, type Machine } from './machine.ts'
import type { BootRuling } from './boot.ts'

/** A person in front of the machine decides what it does. */
export const discover = (mac: Mac, now: string): Machine => ({
  ...createMachine(mac, 'tui', now),
  discovered_at: now,
})

/** Returns the same record where nothing changes. */
export function rememberOffer(machine: Machine, { rule }: BootRuling, now: string): Machine {
  const seen =
    machine.discovered_at === null ? { ...machine, discovered_at: now, updated_at: now } : machine
  const { image, armed_by } = seen
  if (rule !== 'flash' || image === null) return seen
  return { ...seen, offered_at: now, sent: { image, at: now, armed_by }, updated_at: now }
}

/**
 * The policy stays, so constant reflashing survives reboots; the tokens of this flash are void. An
 * order that the machine has not asked for yet stays: the report is late or repeated.
 */
export function rememberDone(machine: Machine, now: string): Machine {
  const flashed = { ...machine, last_flashed_at: now, updated_at: now, sent: null }
  if (isUntouched(machine)) return flashed
  return { ...flashed, armed_at: now, offered_at: null, failure: null }
}

/**
 * Its order is another than the one that ended. An order after an end begins at the time of that
 * end; times that differ do not say which came first.
 */
const isUntouched = ({ offered_at, sent, last_flashed_at, armed_at }: Machine): boolean =>
  offered_at === null &&
  (sent !== null || (last_flashed_at !== null && last_flashed_at !== armed_at))

/** `POST /pxe/{mac}/status`, `failed`. The last flash stays flashed. */
export const rememberFailure = (machine: Machine, reason: string | null, now: string): Machine => ({
  ...machine,
  updated_at: now,
  failure: { at: now, reason },
})
