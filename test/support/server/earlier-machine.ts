/** A machine of the earlier line and all that decides about it, in memory: contacts as function calls. */
import type { Mac } from '#kit/net/rules/mac.ts'
import { createMachineLine } from '#server/earlier/machine-line.ts'
import type { Machine } from '#server/earlier/rules/machine.ts'
import { discover } from '#server/earlier/rules/boot.ts'
import type { Contact, Signal } from '#server/routes/transition.ts'
import { MAC } from './machine-fixture.ts'

export const BY = { actor: 'operator', ip: '192.0.2.7', at: '2026-11-22T10:00:00.000Z' } as const
export const BASE = 'http://10.0.0.1:8080'

/** Signs readably; the real key is tested with the server. */
export const KEY = {
  sign: (text: string) => Buffer.from(text).toString('base64url').padEnd(43, '-').slice(0, 43),
  verify: (text: string, signature: string) => KEY.sign(text) === signature,
}

export const contactAt = (now: string, more: Partial<Contact> = {}): Contact => ({
  now,
  baseUrl: BASE,
  ip: '192.0.2.9',
  bearer: null,
  query: {},
  ...more,
})

export function createEarlierFixture(mac: Mac = MAC) {
  const line = createMachineLine({ bootKey: KEY, workflows: '/srv/workflows' })
  let minutes = 0
  const next = () => new Date(Date.parse(BY.at) + (minutes += 1) * 60_000).toISOString()
  const fixture = {
    line,
    machine: discover(mac, BY.at) satisfies Machine,
    /** `PUT /machines/{mac}`; throws when it is refused. */
    put(body: unknown): Machine {
      const made = line.parseUpsert(body, fixture.machine, { mac, by: { ...BY, at: next() } })
      if (!made.ok) throw new Error(JSON.stringify(made.refusal))
      fixture.machine = made.value
      return fixture.machine
    },
    /** `GET /pxe/{mac}`. */
    script(): string {
      const offered = line.decideBoot(fixture.machine, contactAt(next()))
      fixture.machine = offered.machine
      return offered.script
    },
    signal(signal: Signal): void {
      fixture.machine = line.transition(fixture.machine, signal, contactAt(next())).machine
    },
    now: next,
  }
  return fixture
}
