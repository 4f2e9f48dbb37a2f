/** Earlier line: decides the response of `GET /pxe/{mac}` ("boot_policy and the script returned"). */
import { KERNEL_ARGS } from '#appliance/contract.ts'
import {
  decideArch,
  DEFAULT_DRIVE,
  type BootDecision,
  type ToDisk,
  type KernelArg,
} from '#fleet/boot/rules/boot-decision.ts'
import { LIVE_SET } from '#fleet/boot/rules/release.ts'
import { segment } from '#fleet/boot/rules/ipxe.ts'
import { isHeldBack, type Machine, createMachine } from './machine.ts'
import { CLIENT_PROVISIONING } from '#fleet/workflow/rules/online-workflow.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

type BootRuleName = 'local' | 'no-image' | 'flash' | 'wizard' | 'disarmed' | 'held-back'
type OfferRule = BootRuleName | 'other-arch'

export interface BootRuling {
  readonly rule: OfferRule
  readonly reason: string
  readonly decision: BootDecision
}

interface BootSurroundings {
  /** Checked, no trailing slash. */
  readonly base: string
  /** As the boot loader names it; it may not say. */
  readonly arch?: string | undefined
  /** Null: the boot fetches no provisioning files. */
  readonly token: string | null
}

/** Pure: `rememberOffer` makes the record that follows. */
export function decideBoot(machine: Machine, surroundings: BootSurroundings): BootRuling {
  const wanted = decideRule(machine)
  const isOther = decideArch(surroundings.arch ?? null) === 'other'
  const rule = isOther && LIVE.includes(wanted) ? 'other-arch' : wanted
  return { rule, reason: REASONS[rule], decision: decide(rule, machine, surroundings) }
}

function decideRule(machine: Machine): BootRuleName {
  const { boot_policy, image, disarmed_at } = machine
  if (isHeldBack(machine)) return 'held-back'
  if (boot_policy === 'tui') return 'wizard'
  if (boot_policy === 'local') return 'local'
  if (image === null) return 'no-image'
  return disarmed_at === null ? 'flash' : 'disarmed'
}

const LIVE: readonly BootRuleName[] = ['flash', 'wizard', 'held-back']

const REASONS: Readonly<Record<OfferRule, string>> = {
  local: 'It is set to boot its own disk.',
  'no-image': 'It is set to be flashed, but no image is assigned.',
  'other-arch': 'There is no live system for its processor.',
  flash: 'It is set to be flashed at every network boot.',
  disarmed:
    'Disarmed, as an older state of the server was restored. Save the policy again to flash it.',
  'held-back':
    'A flash never reported its end, and an older state of the server was restored since. The disk may be half written.',
  wizard: 'It is set to ask at the machine.',
}

function decide(rule: OfferRule, machine: Machine, surroundings: BootSurroundings): BootDecision {
  switch (rule) {
    case 'local':
    case 'no-image':
    case 'disarmed':
    case 'other-arch':
      return TO_DISK
    case 'flash':
      return toLiveSystem(surroundings, surroundings.token, flashArgs(machine, surroundings.base))
    case 'wizard':
    case 'held-back':
      return toLiveSystem(surroundings, null, [[KERNEL_ARGS.mode, 'interactive']])
  }
}

const TO_DISK: ToDisk = { kind: 'to-disk', drive: DEFAULT_DRIVE }

/** Does not check the files: without them, iPXE goes on to the disk. */
const toLiveSystem = (
  { base }: BootSurroundings,
  token: string | null,
  args: readonly KernelArg[],
): BootDecision => ({
  kind: 'to-live',
  base,
  sets: { x86_64: LIVE_SET, arm64: null },
  console: 'ttyS0',
  token,
  args: [...args, ...liveBootArgs(base)],
  otherwise: TO_DISK,
})

const flashArgs = ({ image, provisioning_mode }: Machine, base: string): readonly KernelArg[] => [
  [KERNEL_ARGS.imageUrl, `${base}/images/${segment(image ?? '')}`],
  [KERNEL_ARGS.provisioning, CLIENT_PROVISIONING[provisioning_mode]],
]

/** Live systems of this line's releases find their root by other options than ours. */
const liveBootArgs = (base: string): readonly KernelArg[] => [
  ['boot', 'live'],
  ['components', null],
  ['fetch', `${base}/boot/${segment(LIVE_SET.squashfs)}`],
]

// Earlier line: `GET /pxe/{mac}/plan`, for live systems that ask for it.

export const PLAN_MODES = ['exit', 'interactive'] as const

/**
 * Never `flash`: this line names no disk, so such a live system asks a person. Its own live systems
 * read the kernel command line.
 */
export function decidePlan(machine: Machine) {
  const flat = PLANS[decideRule(machine)]
  return { ...flat, plan: flat }
}

const NO_DISK = 'The server names no disk. Choose one.'

const HELD_BACK =
  'A flash of this machine never reported its end, and an older state of the server was restored since. Its disk may be half written.'

const PLANS = {
  local: { mode: 'exit' },
  'no-image': { mode: 'exit' },
  disarmed: { mode: 'exit' },
  'held-back': { mode: 'interactive', reason: HELD_BACK },
  flash: { mode: 'interactive', reason: NO_DISK },
  wizard: { mode: 'interactive' },
} as const satisfies Readonly<
  Record<
    ReturnType<typeof decideRule>,
    { readonly mode: (typeof PLAN_MODES)[number]; readonly reason?: string }
  >
>

// Earlier line: what becomes of a record when its machine contacts the server ("Transitions").

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
