/** Earlier line: what becomes of a record when its machine contacts the server ("Transitions"). */
import type { Mac } from '../../../kit/net/rules/mac.ts'
import { createMachine, type Machine } from './machine.ts'
import type { BootRuling } from './boot.ts'

/**
 * Makes the record of a MAC address that asks for its script for the first time; a person in front of
 * the machine decides what it does.
 */
export const discover = (mac: Mac, now: string): Machine => ({
  ...createMachine(mac, 'tui', now),
  discovered_at: now,
})

/** Notes that the script was answered. Returns the very same record where nothing changes. */
export function rememberOffer(machine: Machine, { rule }: BootRuling, now: string): Machine {
  const seen =
    machine.discovered_at === null ? { ...machine, discovered_at: now, updated_at: now } : machine
  const { image, armed_by } = seen
  if (rule !== 'flash' || image === null) return seen
  return { ...seen, offered_at: now, sent: { image, at: now, armed_by }, updated_at: now }
}

/**
 * Notes a `POST /pxe/{mac}/done`. The policy stays, so that constant reflashing survives reboots; what
 * was handed out for this flash is void. An order that its machine has not asked for yet stays: the
 * flash before it has ended, reported late or again.
 */
export function rememberDone(machine: Machine, now: string): Machine {
  const flashed = { ...machine, last_flashed_at: now, updated_at: now, sent: null }
  if (isUntouched(machine)) return flashed
  return { ...flashed, armed_at: now, offered_at: null, failure: null }
}

/**
 * It has another order than that whose end was heard, or that it was sent off with. The end of an order
 * has the time at which the next one begins: of times that differ, none says which came first.
 */
const isUntouched = ({ offered_at, sent, last_flashed_at, armed_at }: Machine): boolean =>
  offered_at === null &&
  (sent !== null || (last_flashed_at !== null && last_flashed_at !== armed_at))

/** Notes a `POST /pxe/{mac}/status` with `failed`. What was flashed before stays flashed. */
export const rememberFailure = (machine: Machine, reason: string | null, now: string): Machine => ({
  ...machine,
  updated_at: now,
  failure: { at: now, reason },
})
