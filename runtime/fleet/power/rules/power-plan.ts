/** Decides the steps of a request: what is pressed in which order, and what speaks against it. */
import { accept, refuse, type Result } from '../../../kit/foundation/result.ts'
import { lasting, type BootDevice, type BootOnce } from './power.ts'
import type { PowerAction, PowerPress, PowerState, PowerTrouble } from './power.ts'

/** What a way can do. */
export interface PowerAbilities {
  /** Whether it can tell the state. */
  readonly reads: boolean
  readonly presses: readonly PowerPress[]
  readonly boots: readonly BootDevice[]
  /** Whether the boot device can be read back. */
  readonly confirmsBoot: boolean
}

/** One press, with the boot device that is set before it. */
export interface PowerStep {
  readonly press: PowerPress
  readonly boot: BootOnce | null
}

interface PowerPlan {
  readonly steps: readonly PowerStep[]
  /** Whether a boot device was asked for that this way cannot set at all: the machine's own order decides. */
  readonly isOwnOrder: boolean
}

/** `seen` is the state that was read just before. */
export function planPower(
  action: PowerAction,
  boot: BootOnce | null,
  seen: PowerState,
  abilities: PowerAbilities,
): Result<PowerPlan, PowerTrouble> {
  const isOwnOrder = boot?.device === 'network' && abilities.boots.length === 0
  const wanted = isOwnOrder ? null : boot
  if (wanted !== null && !abilities.boots.includes(wanted.device)) {
    return refuse(
      lasting('unsupported', `this way cannot boot from ${NAMES[wanted.device]}`, OTHER),
    )
  }
  const steps = listSteps(action, wanted, seen)
  if (!steps.ok) return steps
  const missing = steps.value.find(({ press }) => !abilities.presses.includes(press))
  if (missing !== undefined) {
    return refuse(lasting('unsupported', `this way cannot turn it ${missing.press}`, OTHER))
  }
  return accept({ steps: steps.value, isOwnOrder })
}

function listSteps(
  action: PowerAction,
  boot: BootOnce | null,
  seen: PowerState,
): Result<readonly PowerStep[], PowerTrouble> {
  const on = { press: 'on', boot } as const
  const off = { press: 'off', boot: null } as const
  switch (action) {
    case 'read':
      return accept([])
    case 'off':
      return accept(seen === 'off' ? [] : [off])
    case 'on':
      if (seen !== 'on') return accept([on])
      return boot === null ? accept([]) : refuse(lasting('not-now', IS_ON, RESTART))
    case 'restart':
      return accept(seen === 'off' ? [on] : [off, on])
  }
}

const NAMES: Readonly<Record<BootDevice, string>> = {
  network: 'the network',
  http: 'an address over HTTP',
  cd: 'a virtual CD',
}
const OTHER = 'Choose another action, or set up another way to this machine.'
const IS_ON = 'it is on already, and only a restart would boot it'
const RESTART = 'Ask for a restart if what runs on it may end.'
