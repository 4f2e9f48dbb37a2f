/** What is asked of machines' power over HTTP, what is answered, and what goes on record. */
import { z } from 'zod'
import {
  renderBmc,
  type Bmc,
  type FoundCredential,
  type PowerEntry,
} from '#fleet/power/rules/bmc.ts'
import {
  BOOT_DEVICES,
  POWER_ACTIONS,
  renderPowerFailure,
  type BootOnce,
  type PowerAction,
  type PowerDone,
  type PowerFailure,
  type PowerSeen,
} from '#fleet/power/rules/power.ts'
import { epochOf } from '#kit/foundation/instants.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { Result } from '#kit/foundation/result.ts'

export const PowerBodySchema = z.strictObject({
  action: z.enum(POWER_ACTIONS),
  boot: z
    .enum(BOOT_DEVICES)
    .nullable()
    .default(null)
    .describe('What the machine boots from once when it is turned on'),
  url: z
    .url({ protocol: /^https?$/ })
    .max(2000)
    .nullable()
    .default(null)
    .describe('What HTTP Boot fetches, or the ISO of the virtual CD'),
  even_while_writing: z
    .boolean()
    .default(false)
    .describe('Cut the power although a disk is being written'),
})
export type PowerBody = z.infer<typeof PowerBodySchema>

export const PowerViewSchema = z.object({
  bmc: z.record(z.string(), z.unknown()),
  user: z.string().nullable(),
  has_password: z.boolean(),
  credential_from: z.enum(['machine', 'label', 'all']).nullable(),
  credential_label: z.string().nullable(),
  certificate: z
    .string()
    .nullable()
    .describe('SHA-256 of the trusted certificate; authority: issued by a known authority'),
  state: z.enum(['on', 'off', 'unknown']),
  seen_at: z.iso.datetime().nullable(),
  age_seconds: z.int().nullable(),
  busy: z.boolean(),
  failure: z.string().nullable().describe('Why the last request failed'),
  shares_outlet_with: z.array(z.string()),
})
export type PowerView = z.infer<typeof PowerViewSchema>

export const PowerDoneSchema = z.object({
  state: z.enum(['on', 'off', 'unknown']),
  confirmed: z.boolean(),
  changed: z.boolean().describe('False: it was so already, and nothing was sent'),
  boot: z.enum(['set', 'sent', 'own']).nullable(),
})

/** URLs of hooks may have secrets in their query. */
function showBmc(bmc: Bmc): Readonly<Record<string, unknown>> {
  if (bmc.way !== 'hook') return bmc
  const urls = (['on', 'off', 'state', 'network'] as const).map((verb) => [
    verb,
    hideQuery(bmc[verb]),
  ])
  return { ...bmc, ...Object.fromEntries(urls) }
}

const hideQuery = (url: string | null): string | null => url?.replace(/\?.*$/s, '?…') ?? null

interface ShownPower {
  readonly entry: PowerEntry
  readonly found: FoundCredential | null
  readonly seen: PowerSeen | null
  readonly isBusy: boolean
  readonly sharing: readonly string[]
}

/** Without secrets; `now` in milliseconds since the epoch. */
export const renderPowerView = (
  { entry: { bmc, learned }, found, seen, isBusy, sharing }: ShownPower,
  now: number,
): PowerView => ({
  bmc: showBmc(bmc),
  ...showCredential(found),
  certificate: learned.certificate,
  ...showSeen(seen, now),
  busy: isBusy,
  shares_outlet_with: [...sharing],
})

function showCredential(found: FoundCredential | null) {
  if (found === null) {
    return { user: null, has_password: false, credential_from: null, credential_label: null }
  }
  const { credential, from, label } = found
  return {
    user: credential.user,
    has_password: credential.password !== '',
    credential_from: from,
    credential_label: label,
  }
}

function showSeen(seen: PowerSeen | null, now: number) {
  const failure = seen === null || seen.failure === null ? null : renderPowerFailure(seen.failure)
  if (seen === null || seen.at === null) {
    return { state: 'unknown', seen_at: null, age_seconds: null, failure } as const
  }
  const age_seconds = Math.max(0, Math.round((now - epochOf(seen.at)) / 1000))
  return { state: seen.state, seen_at: seen.at, age_seconds, failure }
}

interface PowerGuard {
  /** Of this machine and those that lose power with it: the ones being written. */
  readonly writing: readonly string[]
}

/** Null: nothing speaks against it. */
export function refusePower(
  mac: Mac,
  { action, even_while_writing }: PowerBody,
  { writing }: PowerGuard,
): string | null {
  if (action !== 'off' && action !== 'restart') return null
  if (even_while_writing || writing.length === 0) return null
  const [first] = writing
  const who = writing.length === 1 && first === mac ? mac : writing.join(', ')
  return `A disk of ${who} is being written. Send even_while_writing to cut the power anyway.`
}

/** Null: no disk began to be written since the request. */
export const refuseLater = (writing: readonly string[]): string | null =>
  writing.length === 0
    ? null
    : `A disk of ${writing.join(', ')} is now being written. Repeat the request to cut the power anyway.`

/** Once; a BMC with an address for HTTP Boot uses that as the network. */
export function chooseBoot(
  bmc: Bmc,
  { boot, url }: Pick<PowerBody, 'boot' | 'url'>,
): BootOnce | null {
  if (boot === null) return null
  const { firmware } = bmc
  const own = bmc.way === 'redfish' ? bmc.http_boot : null
  if (boot === 'network' && own !== null) return { device: 'http', firmware, url: own }
  return { device: boot, firmware, url }
}

const PAST: Readonly<Record<PowerAction, string>> = {
  on: 'was turned on',
  off: 'was turned off',
  restart: 'was restarted',
  read: 'was read',
}

interface PowerEvent {
  readonly kind: string
  readonly summary: string
  readonly details: Readonly<Record<string, unknown>>
}

/** Null: a mere reading that worked. */
export function renderPowerEvent(
  mac: Mac,
  { action, boot }: Pick<PowerBody, 'action' | 'boot'>,
  { bmc }: PowerEntry,
  done: Result<PowerDone, PowerFailure>,
): PowerEvent | null {
  const details = { action, boot, way: renderBmc(bmc) }
  if (!done.ok) {
    const { kind, asked, seen, fix, state } = done.refusal
    return {
      kind: 'machine.power.failed',
      summary: `${mac}: ${renderPowerFailure(done.refusal)}`,
      details: { ...details, failure: kind, asked, seen, fix, state },
    }
  }
  if (action === 'read') return null
  const doubt = done.value.confirmed ? '' : ', but this cannot be verified'
  return {
    kind: `machine.power.${action}`,
    summary: `${mac} ${PAST[action]}${doubt}`,
    details: { ...details, ...done.value, boot_device: boot },
  }
}
