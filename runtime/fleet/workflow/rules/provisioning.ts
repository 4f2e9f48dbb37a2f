/** Earlier line: what follows a flash, and which files the machine fetches for it. */

/** `cijoe-online` runs from the server, after `done`. */
export const MACHINE_PROVISIONING = ['none', 'cloud-init', 'cijoe', 'cijoe-online'] as const
export type MachineProvisioning = (typeof MACHINE_PROVISIONING)[number]

export const PROVISION_FILES = ['user-data', 'meta-data', 'cijoe-workflow', 'cijoe-config'] as const
export type ProvisionFile = (typeof PROVISION_FILES)[number]

/** What the live system does itself: `cijoe-online` begins after `done`. */
export const CLIENT_PROVISIONING = {
  none: 'none',
  'cloud-init': 'cloud-init',
  cijoe: 'cijoe',
  'cijoe-online': 'none',
} as const satisfies Readonly<Record<MachineProvisioning, string>>

/** The first file is required. */
const FETCHED: Readonly<Record<MachineProvisioning, readonly ProvisionFile[]>> = {
  none: [],
  'cloud-init': ['user-data', 'meta-data'],
  cijoe: ['cijoe-workflow', 'cijoe-config'],
  'cijoe-online': [],
}

export const listFetched = (mode: MachineProvisioning): readonly ProvisionFile[] => FETCHED[mode]

export const isFetched = (mode: MachineProvisioning, file: ProvisionFile): boolean =>
  FETCHED[mode].includes(file)

/** A mode that fetches files needs a token for its boot. */
export const needsFiles = (mode: MachineProvisioning): boolean => FETCHED[mode].length > 0

export const findMissing = (
  mode: MachineProvisioning,
  kept: ReadonlySet<ProvisionFile>,
): ProvisionFile | null => FETCHED[mode].slice(0, 1).find((file) => !kept.has(file)) ?? null

/** Null: not in the closed list. */
export const parseProvisionFile = (name: string): ProvisionFile | null =>
  PROVISION_FILES.find((file) => file === name) ?? null
