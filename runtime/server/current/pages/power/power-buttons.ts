/** Which requests a machine's page offers for its power: what its way can do and its state leaves to be done. */
import type { Bmc } from '../../../../fleet/power/rules/bmc.ts'
import type { PowerAction, PowerState } from '../../../../fleet/power/rules/power.ts'

export const POWER_CHOICES = {
  on: { action: 'on', boot: null },
  network: { action: 'on', boot: 'network' },
  'network-restart': { action: 'restart', boot: 'network' },
  restart: { action: 'restart', boot: null },
  off: { action: 'off', boot: null },
  read: { action: 'read', boot: null },
} as const satisfies Readonly<
  Record<string, { readonly action: PowerAction; readonly boot: 'network' | null }>
>
export type PowerChoice = keyof typeof POWER_CHOICES

export const CHOICE_NAMES = [
  'on',
  'network',
  'network-restart',
  'restart',
  'off',
  'read',
] as const satisfies readonly PowerChoice[]

export const parseChoice = (text: string | null): PowerChoice | null =>
  CHOICE_NAMES.find((name) => name === text) ?? null

/** It ends what runs on the machine. */
export const isCut = (choice: PowerChoice): boolean =>
  POWER_CHOICES[choice].action === 'off' || POWER_CHOICES[choice].action === 'restart'

/** In the order of the buttons. */
export function listPowerChoices(bmc: Bmc, state: PowerState): readonly PowerChoice[] {
  const { canOn, canOff, canRead } = abilitiesOf(bmc)
  const isOffered: Readonly<Record<PowerChoice, boolean>> = {
    on: canOn && state !== 'on',
    // If it may be on, only a restart surely boots it.
    network: canOn && (state === 'off' || !canOff),
    'network-restart': canOn && canOff && state !== 'off',
    restart: canOn && canOff && state !== 'off',
    off: canOff && state !== 'off',
    read: canRead,
  }
  return CHOICE_NAMES.filter((name) => isOffered[name])
}

/** Whatever its state; null: nothing does. */
export function chooseBoot(bmc: Bmc): 'network' | 'network-restart' | null {
  const { canOn, canOff } = abilitiesOf(bmc)
  if (!canOn) return null
  return canOff ? 'network-restart' : 'network'
}

function abilitiesOf(bmc: Bmc) {
  if (bmc.way === 'wake-on-lan') return { canOn: true, canOff: false, canRead: false }
  if (bmc.way !== 'hook') return { canOn: true, canOff: true, canRead: true }
  return { canOn: bmc.on !== null, canOff: bmc.off !== null, canRead: bmc.state !== null }
}
