/** Current line: which boot token a machine must present, and what it permits (`[pxe] tokens`). */
import { isFlashMode } from './boot-mode.ts'
import type { BootToken, TokenDefect } from '#fleet/boot/rules/boot-decision.ts'
import { isPending } from '#engine/capture/rules/order.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { SettingsOf } from '#kit/config/rules/setting.ts'
import type { SETTINGS } from '#server/current/settings/rules/settings.ts'
import { type Machine } from './machine.ts'

/** `prefer`: a shown token must be right, but none need be shown. */
export type TokenPolicy = SettingsOf<typeof SETTINGS>['pxe']['tokens']

export interface TokenRules {
  readonly tokens: TokenPolicy
  readonly tokens_hours: number
}

/** Which boot shows the token: one of this cycle, or one whose flash may still be under way. */
export type TokenMatch = 'unproven' | 'current' | 'before'

type BootTokenRefusal = TokenDefect | 'missing' | 'no-machine' | 'other-boot' | 'over'

export type ShownToken = Result<BootToken, TokenDefect> | null

/** Null: boots carry no token. */
export function planToken(
  { cycle }: Machine,
  { tokens, tokens_hours }: TokenRules,
  now: string,
): BootToken | null {
  if (tokens === 'off') return null
  const expiresAt = Temporal.Instant.from(now).add({ hours: tokens_hours }).toString()
  return { cycle: cycle.started_at, expiresAt }
}

export function decideTokenMatch(
  machine: Machine | null,
  shown: ShownToken,
  policy: TokenPolicy,
): Result<TokenMatch, BootTokenRefusal> {
  if (policy === 'off') return accept('unproven')
  if (shown === null) return policy === 'require' ? refuse('missing') : accept('unproven')
  if (!shown.ok) return shown
  if (machine === null) return refuse('no-machine')
  const { cycle } = shown.value
  if (isSameTime(cycle, machine.cycle.started_at)) return accept('current')
  const { before } = machine.cycle
  return before !== null && isSameTime(cycle, before.started_at)
    ? accept('before')
    : refuse('other-boot')
}

/**
 * A machine may always report its own run. A plan needs the present boot's token; a new run or list
 * of disks also that its flash has not ended.
 */
export function decideRequest(
  machine: Machine,
  match: TokenMatch,
  request: 'plan' | 'inventory' | 'begin' | 'report',
  now: string,
): Result<'granted', BootTokenRefusal> {
  if (match === 'unproven' || request === 'report') return accept('granted')
  if (request === 'inventory' && isLateHardware(machine, match, now)) return accept('granted')
  if (match === 'before') return refuse('other-boot')
  return isOver(machine) && request !== 'plan' ? refuse('over') : accept('granted')
}

/**
 * Reading hardware can outlast the flash: a moment after its end, a list is accepted for the
 * hardware alone, unless the machine has booted anew.
 */
export function isLateHardware(machine: Machine, match: TokenMatch, now: string): boolean {
  const { finished_at, before, offers } = machine.cycle
  if (match === 'current') return isOver(machine) && isMomentAgo(finished_at, now)
  return match === 'before' && offers === 0 && isMomentAgo(before?.finished_at ?? null, now)
}

const isOver = ({ boot_mode, cycle, capture }: Machine): boolean =>
  isFlashMode(boot_mode) && cycle.finished_at !== null && !isPending(capture)

/** `lshw` is given 30 seconds, and a server that is busy is asked again. */
const MOMENT_SECONDS = 120

const isMomentAgo = (at: string | null, now: string): boolean =>
  at !== null &&
  Temporal.Instant.from(at).until(Temporal.Instant.from(now)).total('seconds') <= MOMENT_SECONDS

export const TOKEN_REFUSALS: Readonly<Record<BootTokenRefusal, string>> = {
  missing:
    'no boot token. This server requires one ([pxe] tokens = require), and a live system that sends it',
  malformed: 'this is not a boot token',
  foreign: 'the boot token is for another server or machine',
  expired: 'the boot token has expired. Boot the machine from the network again',
  'no-machine': 'the machine was deleted after it booted. Boot it from the network again',
  'other-boot':
    'the boot token is for an earlier boot, and the machine was changed since. Boot it from the network again',
  over: 'the boot token cannot be used again, because the flash of this boot is done',
}

/** However they are spelled. */
export const isSameTime = (a: string, b: string): boolean =>
  a === b || Temporal.Instant.compare(a, b) === 0
