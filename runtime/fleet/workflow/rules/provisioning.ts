/** Earlier line: what follows a flash, and which files the machine fetches for it. */

/** What follows a flash; `cijoe-online` runs from the server, after `done`. */
export const MACHINE_PROVISIONING = ['none', 'cloud-init', 'cijoe', 'cijoe-online'] as const
export type MachineProvisioning = (typeof MACHINE_PROVISIONING)[number]

/** The files that the server keeps for a machine, and the mode that they are for. */
export const PROVISION_FILES = ['user-data', 'meta-data', 'cijoe-workflow', 'cijoe-config'] as const
export type ProvisionFile = (typeof PROVISION_FILES)[number]

/** What the live system does itself: the work of `cijoe-online` begins after `done`. */
export const CLIENT_PROVISIONING = {
  none: 'none',
  'cloud-init': 'cloud-init',
  cijoe: 'cijoe',
  'cijoe-online': 'none',
} as const satisfies Readonly<Record<MachineProvisioning, string>>

/** What the mode fetches; the first one is required. */
const FETCHED: Readonly<Record<MachineProvisioning, readonly ProvisionFile[]>> = {
  none: [],
  'cloud-init': ['user-data', 'meta-data'],
  cijoe: ['cijoe-workflow', 'cijoe-config'],
  'cijoe-online': [],
}

/** Lists the files that a machine fetches in this mode. */
export const listFetched = (mode: MachineProvisioning): readonly ProvisionFile[] => FETCHED[mode]

/** Tells whether a machine fetches this file in this mode. */
export const isFetched = (mode: MachineProvisioning, file: ProvisionFile): boolean =>
  FETCHED[mode].includes(file)

/** Tells whether the mode fetches anything: then its boot carries a token. */
export const needsFiles = (mode: MachineProvisioning): boolean => FETCHED[mode].length > 0

/** Returns the file without which the mode cannot complete; null where it needs none, or has it. */
export const findMissing = (
  mode: MachineProvisioning,
  kept: ReadonlySet<ProvisionFile>,
): ProvisionFile | null => FETCHED[mode].slice(0, 1).find((file) => !kept.has(file)) ?? null

/** Returns the file of this name; null where the closed list has none. */
export const parseProvisionFile = (name: string): ProvisionFile | null =>
  PROVISION_FILES.find((file) => file === name) ?? null
