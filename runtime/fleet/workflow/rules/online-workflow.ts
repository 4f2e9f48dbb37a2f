/** A workflow that runs on the server against a machine: its name, its configuration, what its log keeps. */
import { stringify } from 'smol-toml'

/** From the time (ISO 8601): a machine never begins two runs in a millisecond. */
export const renderRunId = (iso: string): string => iso.replace(/[^0-9TZ]/g, '')

const RUN_ID = /^\d{8}T\d{9}Z$/

export const isRunId = (text: string): boolean => RUN_ID.test(text)

/** A host name or an address, never an option of a program. */
export const isTargetHost = (text: string): boolean =>
  text.length <= 253 && (/^[a-z0-9][\w.:-]*$/i.test(text) || /^::[0-9a-f.:]*$/i.test(text))

interface Transport {
  readonly host: string
  readonly port: number
  readonly key: string
}

/** cijoe's configuration. Table `ssh` becomes the arguments of its SSH library's `connect`. */
export const renderTransport = ({ host, port, key }: Transport): string =>
  `${stringify({
    cijoe: {
      workflow: { fail_fast: true },
      transport: { ssh: { hostname: host, username: 'root', port, key_filename: key } },
    },
  })}\n`

export const listOldRuns = (names: readonly string[], most: number): readonly string[] =>
  names.filter(isRunId).toSorted().slice(0, -most)

/** The variables that a workflow gets: none that may hold a secret of ours. */
export const chooseVariables = (
  env: Readonly<Record<string, string | undefined>>,
): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) =>
      value === undefined || name.startsWith('FLASHER_') ? [] : [[name, value]],
    ),
  )

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
