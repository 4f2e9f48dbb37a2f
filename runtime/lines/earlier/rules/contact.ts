/** Earlier line: what becomes of a record when its machine contacts the server ("Transitions"). */
import type { Mac } from '../../../core/machine/mac.ts'
import { createMachine, type Machine } from './machine.ts'
import type { BootRuling } from './boot.ts'

/** A MAC that asks for its script for the first time; what it shall do, a person says in front of it. */
export const discover = (mac: Mac, now: string): Machine => ({
  ...createMachine(mac, 'tui', now),
  discovered_at: now,
})

/** The script was answered. The very same record where nothing changes. */
export function noteOffer(machine: Machine, { rule }: BootRuling, now: string): Machine {
  const seen =
    machine.discovered_at === null ? { ...machine, discovered_at: now, updated_at: now } : machine
  return rule === 'flash' ? { ...seen, offered_at: now, updated_at: now } : seen
}

/**
 * `POST /pxe/{mac}/done`. The policy stays, so that constant reflashing survives reboots; what was
 * handed out for this flash is void.
 */
export const noteDone = (machine: Machine, now: string): Machine => ({
  ...machine,
  last_flashed_at: now,
  updated_at: now,
  armed_at: now,
  offered_at: null,
  failure: null,
})

/** `POST /pxe/{mac}/status` with `failed`. What was flashed before stays flashed. */
export const noteFailure = (machine: Machine, reason: string | null, now: string): Machine => ({
  ...machine,
  updated_at: now,
  failure: { at: now, reason },
})
