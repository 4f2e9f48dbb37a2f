/** Earlier line: decides the response of `GET /pxe/{mac}` ("boot_policy and the script returned"). */
import { KERNEL_ARGS } from '../../../../appliance/contract.ts'
import {
  decideArch,
  DEFAULT_DRIVE,
  type BootDecision,
  type ToDisk,
} from '../../../fleet/boot/rules/boot-decision.ts'
import { LIVE_SET } from '../../../fleet/boot/rules/live-release.ts'
import { segment } from '../../../fleet/boot/rules/ipxe.ts'
import type { KernelArg } from '../../../fleet/boot/rules/kernel-args.ts'
import { isHeldBack, type Machine } from './machine.ts'
import { CLIENT_PROVISIONING } from '../../../fleet/workflow/rules/provisioning.ts'

type BootRuleName = 'local' | 'no-image' | 'flash' | 'wizard' | 'disarmed' | 'held-back'
/** One of these rules depends on what only the machine's boot loader knows. */
type OfferRule = BootRuleName | 'other-arch'

export interface BootRuling {
  readonly rule: OfferRule
  /** One sentence: why this machine gets this. */
  readonly reason: string
  readonly decision: BootDecision
}

interface BootSurroundings {
  /** Checked address of this server, no trailing slash. */
  readonly base: string
  /** The boot loader's name of its processor; it may say nothing. */
  readonly arch?: string | undefined
  /** The token of a boot that fetches provisioning files; null: it fetches none. */
  readonly token: string | null
}

/** What the machine gets now. Pure: `noteOffer` makes the record that follows from it. */
export function decideBoot(machine: Machine, surroundings: BootSurroundings): BootRuling {
  const wanted = decideRule(machine)
  const isOther = decideArch(surroundings.arch ?? null) === 'other'
  const rule = isOther && LIVE.includes(wanted) ? 'other-arch' : wanted
  return { rule, reason: REASONS[rule], decision: decide(rule, machine, surroundings) }
}

export function decideRule(machine: Machine): BootRuleName {
  const { boot_policy, image, disarmed_at } = machine
  if (isHeldBack(machine)) return 'held-back'
  if (boot_policy === 'tui') return 'wizard'
  if (boot_policy === 'local') return 'local'
  if (image === null) return 'no-image'
  return disarmed_at === null ? 'flash' : 'disarmed'
}

const LIVE: readonly BootRuleName[] = ['flash', 'wizard', 'held-back']

const REASONS: Readonly<Record<OfferRule, string>> = {
  local: 'Its policy is to boot its own disk.',
  'no-image': 'Its policy is to be flashed, but no image is assigned.',
  'other-arch': 'There is no live system for its processor.',
  flash: 'Its policy is to be flashed at every network boot.',
  disarmed:
    'An older state of the server was restored, which arms no machine: it is flashed once an operator orders it again.',
  'held-back':
    'A flash of it began and never reported its end, and an older state of the server was restored since: the disk may be half written.',
  wizard: 'Its policy is to ask the person in front of it.',
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

/** Whether the files are there or not: iPXE goes on to the disk where they are not. */
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

/** How the live systems that this line's releases carried find their root; ours has its own option. */
const liveBootArgs = (base: string): readonly KernelArg[] => [
  ['boot', 'live'],
  ['components', null],
  ['fetch', `${base}/boot/${segment(LIVE_SET.squashfs)}`],
]
