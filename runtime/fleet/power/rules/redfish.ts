/** What Redfish answers mean: the few fields that are needed of each, everything else ignored. */
import { z } from 'zod'
import { parseJson } from '#kit/foundation/json-reader.ts'
import {
  BOOT_DEVICES,
  passing,
  POWER_PRESSES,
  quote,
  type BootDevice,
  type BootOnce,
  type PowerPress,
  type PowerReading,
  type PowerTrouble,
} from './power.ts'

const text = z.string().max(2000)
/** On the BMC itself: `//host/` or its like with a backslash would be elsewhere. */
const path = text.regex(/^\/(?![/\\])[\x21-\x7e]*$/)
const link = z.object({ '@odata.id': path })
const optionalLink = link.optional().catch(undefined)
const texts = z.array(text).max(200).optional().catch(undefined)

export const RootSchema = z.object({
  Systems: link,
  Links: z.object({ Sessions: optionalLink }).optional().catch(undefined),
  SessionService: optionalLink,
})

export const MembersSchema = z.object({ Members: z.array(link).max(1000) })

const BootSchema = z.object({
  BootSourceOverrideEnabled: text.nullish().catch(null),
  BootSourceOverrideTarget: text.nullish().catch(null),
  BootSourceOverrideMode: text.nullish().catch(null),
  HttpBootUri: text.nullish().catch(null),
  'BootSourceOverrideTarget@Redfish.AllowableValues': texts,
})

export const SystemSchema = z.object({
  '@odata.etag': text.optional().catch(undefined),
  Id: text.optional().catch(undefined),
  Manufacturer: text.nullish().catch(null),
  Model: text.nullish().catch(null),
  PowerState: text.nullish().catch(null),
  Boot: BootSchema.optional().catch(undefined),
  Actions: z
    .object({
      '#ComputerSystem.Reset': z.object({
        target: path,
        'ResetType@Redfish.AllowableValues': texts,
      }),
    })
    .optional()
    .catch(undefined),
  Links: z
    .object({ ManagedBy: z.array(link).max(20).optional().catch(undefined) })
    .optional()
    .catch(undefined),
  VirtualMedia: optionalLink,
  /** AMI's BMCs take changes here and apply them at the next start. */
  '@Redfish.Settings': z.object({ SettingsObject: optionalLink }).optional().catch(undefined),
})
type System = z.infer<typeof SystemSchema>

export const ManagerSchema = z.object({
  VirtualMedia: optionalLink,
  FirmwareVersion: text.nullish().catch(null),
})

export const MediaSchema = z.object({
  MediaTypes: texts,
  Image: text.nullish().catch(null),
  Inserted: z.boolean().nullish().catch(null),
  Actions: z
    .object({
      '#VirtualMedia.InsertMedia': z.object({ target: path }).optional().catch(undefined),
      '#VirtualMedia.EjectMedia': z.object({ target: path }).optional().catch(undefined),
    })
    .optional()
    .catch(undefined),
})
export type Media = z.infer<typeof MediaSchema>

export const TaskSchema = z.object({
  TaskState: text.nullish().catch(null),
  Messages: z
    .array(z.object({ Message: text.optional().catch(undefined) }))
    .max(50)
    .optional()
    .catch(undefined),
})

const FAILED_TASKS: ReadonlySet<string> = new Set(['Exception', 'Killed', 'Cancelled'])

/** Null: it did not fail, or runs. */
export function findTaskFailure({ TaskState, Messages = [] }: z.infer<typeof TaskSchema>) {
  if (!FAILED_TASKS.has(TaskState ?? '')) return null
  const words = Messages.find(({ Message }) => Message !== undefined)?.Message ?? ''
  return `its task ended as ${quote(`${TaskState} ${words}`)}`
}

const MadeSchema = z.object({ '@odata.id': path })

/** Some BMCs name another host, some answer only in the body. Null: no path. */
export function findMade(location: string | undefined, bytes: Buffer, base: URL): string | null {
  const url = location ? URL.parse(location, base) : null
  const named = url === null ? undefined : path.safeParse(`${url.pathname}${url.search}`).data
  return named ?? parseDocument(MadeSchema, bytes)?.['@odata.id'] ?? null
}

const message = z.object({ Message: text.optional().catch(undefined) })
const ErrorSchema = z.object({
  error: z.object({
    code: text.optional().catch(undefined),
    message: text.optional().catch(undefined),
    '@Message.ExtendedInfo': z
      .array(message.extend({ MessageId: text.optional().catch(undefined), MessageArgs: texts }))
      .max(50)
      .optional()
      .catch(undefined),
  }),
})

export const parseDocument = <T>(schema: z.ZodType<T>, bytes: Buffer): T | null =>
  schema.safeParse(parseJson(bytes.toString('utf8'))).data ?? null

const STATES: Readonly<Record<string, PowerReading>> = {
  On: 'on',
  Off: 'off',
  PoweringOn: 'turning-on',
}

export const readPowerState = ({ PowerState: state }: System): PowerReading =>
  STATES[state ?? ''] ?? 'unknown'

const RESETS: Readonly<Record<PowerPress, readonly string[]>> = {
  on: ['On', 'ForceOn'],
  off: ['ForceOff'],
}

/** Null: none offered does it. */
export function chooseReset(system: System, press: PowerPress): string | null {
  const offered =
    system.Actions?.['#ComputerSystem.Reset']['ResetType@Redfish.AllowableValues'] ?? null
  const known = RESETS[press]
  if (offered === null) return known[0] ?? null
  return known.find((type) => offered.includes(type)) ?? null
}

const TARGETS: Readonly<Record<BootDevice, string>> = { network: 'Pxe', http: 'UefiHttp', cd: 'Cd' }

/** The mode goes with the target. */
const renderBootOverride = ({ device, firmware, url }: BootOnce) => ({
  Boot: {
    BootSourceOverrideEnabled: 'Once',
    BootSourceOverrideTarget: TARGETS[device],
    // Only UEFI boots over HTTP.
    BootSourceOverrideMode: firmware === 'uefi' || device === 'http' ? 'UEFI' : 'Legacy',
    HttpBootUri: device === 'http' && url !== null ? url : undefined,
  },
})

/** To try in turn: also without the mode, if the BMC has none, or it is right already. */
export function listBootOverrides({ Boot }: System, boot: BootOnce): readonly object[] {
  const full = renderBootOverride(boot)
  const { BootSourceOverrideMode: wanted, ...rest } = full.Boot
  const bare = { Boot: rest }
  if (Boot !== undefined && !('BootSourceOverrideMode' in Boot)) return [bare]
  return Boot?.BootSourceOverrideMode === wanted ? [full, bare] : [full]
}

/** What reads back differently; null: nothing. */
export function findBootMismatch({ Boot }: System, boot: BootOnce): string | null {
  const wanted = renderBootOverride(boot).Boot
  const {
    BootSourceOverrideTarget: target,
    BootSourceOverrideEnabled: enabled,
    BootSourceOverrideMode: mode,
    HttpBootUri: uri,
  } = { ...NO_BOOT, ...Boot }
  if (target !== wanted.BootSourceOverrideTarget || enabled === 'Disabled') {
    return `the BMC reports the boot device ${quote(`${target} (${enabled})`)}`
  }
  // Some do not report the mode.
  if (typeof mode === 'string' && mode !== wanted.BootSourceOverrideMode) {
    return `the BMC reports the boot mode ${quote(mode)}`
  }
  const expected = wanted.HttpBootUri ?? uri
  return uri !== expected ? `the BMC reports the boot address ${quote(uri ?? 'nothing')}` : null
}

const NO_BOOT = {
  BootSourceOverrideTarget: null,
  BootSourceOverrideEnabled: null,
  BootSourceOverrideMode: null,
  HttpBootUri: null,
}

/** True only if the system lists its boot devices. */
export function lacksBootDevice({ Boot }: System, device: BootDevice): boolean {
  const offered = Boot?.['BootSourceOverrideTarget@Redfish.AllowableValues']
  return offered !== undefined && !offered.includes(TARGETS[device])
}

export const listLacking = (system: System): readonly (PowerPress | BootDevice)[] => [
  ...POWER_PRESSES.filter((press) => chooseReset(system, press) === null),
  ...BOOT_DEVICES.filter((device) => lacksBootDevice(system, device)),
]

/** Distinguishes a lack of sessions from a refused password. */
const NO_ROOM =
  /session ?limit|CreateLimitReached|RAC0218|too many (?:\w+ ){0,2}sessions|maximum (?:number|limit) of (?:\w+ ){0,3}sessions|no (?:more|free) sessions/i

/** Some refuse a repeated or early press; the state that follows counts. */
const NOT_IN_THIS_STATE = /InvalidOperationForSystemState|current power state|ResourceInUse/i

/** Some refuse a password with a 400; then no other form is tried. */
const NO_LOGIN = /UnauthorizedLoginAttempt|invalid (?:user ?name|user|password|credentials?)\b/i

/** Trying again may help, as from 500. */
const PASSING: ReadonlySet<number> = new Set([409, 412, 428, 429])

/** The meaning of the status alone; other statuses need the words. */
const LASTING: Readonly<Record<number, readonly [PowerTrouble['kind'], string]>> = {
  401: ['login', 'Correct user and password, and check that the user may control power.'],
  403: ['login', 'Correct user and password, and check that the user may control power.'],
  404: ['unsupported', 'Update its firmware, or use another type of power control.'],
  405: ['unsupported', 'Update its firmware, or use another type of power control.'],
  501: ['unsupported', 'Update its firmware, or use another type of power control.'],
}

export function judgeRefusal(status: number, bytes: Buffer): PowerTrouble {
  const [words, all] = readError(bytes)
  const seen = `it answered ${status}${words === '' ? '' : `: ${quote(words)}`}`
  if (NO_ROOM.test(all)) return passing('sessions', seen, 'End some of its sessions.')
  const known = NO_LOGIN.test(all) ? LASTING[401] : LASTING[status]
  const [kind, fix] = known ?? ['refused', 'Check the log of its BMC.']
  const mayPass = status >= 500 || PASSING.has(status) || NOT_IN_THIS_STATE.test(all)
  const passes = kind === 'refused' && mayPass
  return { kind, seen, fix, passes }
}

function readError(bytes: Buffer): readonly [shown: string, all: string] {
  const { code, message: words, ...rest } = parseDocument(ErrorSchema, bytes)?.error ?? {}
  const extended = rest['@Message.ExtendedInfo'] ?? []
  const names = extended.slice(0, 1).map(({ MessageArgs = [] }) => MessageArgs.join(' '))
  const said = extended.map(({ Message }) => Message)
  const [shown] = [...said, ...names, words, code].filter(Boolean)
  const ids = extended.map(({ MessageId }) => MessageId)
  return [joinTexts([ids[0], shown]), joinTexts([code, words, ...ids, ...said])]
}

const joinTexts = (parts: readonly (string | undefined)[]) =>
  parts.filter((part) => part !== undefined).join(' ')
