/** Acts on a BMC of a test at a pace that needs no patience. */
import { createShell } from '#kit/host/shell.ts'
import { parseMac, type Mac } from '#kit/net/rules/mac.ts'
import { createDriver, type PowerSubject } from '#fleet/power/drivers.ts'
import { actOnPower, type PowerRequest, type PowerTimes } from '#fleet/power/power-service.ts'
import { createReach } from '#fleet/power/driver.ts'
import {
  NOTHING_LEARNED,
  type Bmc,
  type Credential,
  type LearnedBmc,
} from '#fleet/power/rules/bmc.ts'
import type { ReachRules } from '#fleet/power/rules/power.ts'

/** Loopback: the emulators of tests listen there. */
export const NETWORK = ['127.0.0.0/8']
export const PXE = { device: 'network', firmware: 'uefi', url: null } as const
export const TIMES: PowerTimes = { limit: 1500, poll: 25, again: 250, rest: 50 }

export interface TestSubject extends PowerSubject {
  readonly rules: Omit<ReachRules, 'own'>
}

export function createSubject(
  bmc: Bmc,
  credential: Credential | null,
  rules: Partial<Omit<ReachRules, 'own'>> = {},
): TestSubject {
  let learned: LearnedBmc = NOTHING_LEARNED
  return {
    mac: macOf('52:54:00:00:00:01'),
    bmc,
    found: credential && { credential, from: 'machine', label: null, addresses: null },
    rules: { networks: NETWORK, ownPorts: [], ...rules },
    learned: () => learned,
    async learn(change) {
      learned = { ...learned, ...change }
    },
  }
}

export function macOf(text: string): Mac {
  const mac = parseMac(text)
  if (!mac.ok) throw new Error(`not a MAC: ${text}`)
  return mac.value
}

/** Acts once, with a driver of its own; the limit of a request is that of the times. */
export const actWith = (subject: TestSubject, request: PowerRequest, times = TIMES) =>
  actOnPower(
    createDriver(subject, {
      shell: createShell({ env: process.env }),
      findAddress: createReach(() => subject.rules),
      timeoutMs: times.limit / 3,
    }),
    request,
    { times, signal: AbortSignal.timeout(20 * times.limit) },
  )
