/** Renders a template for one machine: the files of cloud-init's NoCloud, and an Ignition configuration; both as they go over HTTP. */
import { z } from 'zod'
import { FEATURES } from '#appliance/contract.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { type Mac, parseMac, renderHyphens } from '#kit/net/rules/mac.ts'
import {
  type FilledTemplate,
  fillPlaceholders,
  hasSecrets,
  hideSecrets,
  isIgnition,
  listFiles,
  listLabels,
  listTexts,
  type PlaceholderValues,
  type Template,
  type TemplateFile,
  TemplateNameSchema,
  TemplateSchema,
} from './template.ts'

export interface CloudInitSeed {
  readonly 'user-data': string
  readonly 'meta-data': string
  readonly 'network-config': string | null
  readonly 'vendor-data'?: string | undefined
}

/** At least one of the two is there. */
export interface FirstBoot {
  readonly cloudInit: CloudInitSeed | null
  /** JSON. */
  readonly ignition: string | null
  /** Why one of the two is missing; null: both are there. */
  readonly reason: string | null
}

export interface TemplateSubject extends Omit<PlaceholderValues, 'secrets' | 'mac'> {
  readonly mac: Mac
}

interface RenderOptions {
  /** New for each flash: cloud-init runs once per instance. */
  readonly instance: string
  /** `hidden`: dots, for a preview. */
  readonly secrets: 'filled' | 'hidden'
}

/** Refused where the machine lacks a placeholder's value. */
export function renderFirstBoot(
  template: Template,
  subject: TemplateSubject,
  { instance, secrets }: RenderOptions,
): Result<FirstBoot, string> {
  const shown = secrets === 'filled' ? template.secrets : hideSecrets(template).secrets
  const filled = fillTemplate(template, { ...subject, secrets: shown })
  if (!filled.ok) return filled
  const { user_data } = filled.value
  if (user_data === null) {
    const ignition = renderIgnition(filled.value)
    const cloudInit = renderCloudInit(filled.value, renderCloudConfig(filled.value), instance)
    return accept({
      cloudInit,
      ignition: ignition.ok ? ignition.value : null,
      reason: ignition.ok ? null : ignition.refusal,
    })
  }
  if (isIgnition(user_data))
    return accept({ cloudInit: null, ignition: user_data, reason: ONLY_IGNITION })
  const cloudInit = renderCloudInit(filled.value, user_data, instance)
  return accept({ cloudInit, ignition: null, reason: ONLY_CLOUD_INIT })
}

const ONLY_IGNITION = 'its text is for Ignition, which this image does not use'
const ONLY_CLOUD_INIT = 'its text is for cloud-init, and this image uses Ignition'

function fillTemplate(
  template: Template,
  values: Omit<PlaceholderValues, 'mac'> & { readonly mac: Mac },
): Result<FilledTemplate, string> {
  const { packages } = template
  // A host name has no colons.
  const hostname = fillMaybe(template.hostname, { ...values, mac: renderHyphens(values.mac) })
  if (!hostname.ok) return refuse(`hostname: ${hostname.refusal}`)
  if (hostname.value !== null && !isHostname(hostname.value)) {
    return refuse(`hostname: "${printable(hostname.value)}" is not a valid host name`)
  }
  const commands = fillAll(template.commands, values)
  if (!commands.ok) return refuse(`commands: ${commands.refusal}`)
  const hashes = fillAll(
    template.users.map(({ password_hash = '' }) => password_hash),
    values,
  )
  if (!hashes.ok) return refuse(`users: ${hashes.refusal}`)
  const files = listFiles(template)
  const texts = fillAll(
    files.map(({ text }) => text),
    values,
  )
  if (!texts.ok) return refuse(`files: ${texts.refusal}`)
  const network = fillMaybe(template.network, values)
  if (!network.ok) return refuse(`network: ${network.refusal}`)
  const user_data = fillMaybe(template.user_data, values)
  if (!user_data.ok) return refuse(`user_data: ${user_data.refusal}`)
  return accept({
    users: template.users.map((user, at) => ({
      ...user,
      password_hash: hashes.value[at] || undefined,
    })),
    packages,
    files: files.map((file, at) => ({ ...file, text: texts.value[at] ?? '' })),
    commands: commands.value,
    hostname: hostname.value,
    network: network.value,
    user_data: user_data.value,
  })
}

function fillAll(texts: readonly string[], values: PlaceholderValues): Result<string[], string> {
  const all: string[] = []
  for (const text of texts) {
    const filled = fillPlaceholders(text, values)
    if (!filled.ok) return filled
    all.push(filled.value)
  }
  return accept(all)
}

function fillMaybe(text: string | null, values: PlaceholderValues): Result<string | null, string> {
  return text === null ? accept(null) : fillPlaceholders(text, values)
}

const isHostname = (text: string): boolean =>
  text.length <= 253 &&
  /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$/i.test(text)

/** JSON is YAML: no value can end its string. */
const renderCloudInit = (
  { hostname, network }: FilledTemplate,
  userData: string,
  instance: string,
): CloudInitSeed => ({
  'user-data': userData.endsWith('\n') ? userData : `${userData}\n`,
  'meta-data': `instance-id: ${JSON.stringify(instance)}\n${
    hostname === null ? '' : `local-hostname: ${JSON.stringify(hostname)}\n`
  }`,
  'network-config': network === null || network.endsWith('\n') ? network : `${network}\n`,
})

function renderCloudConfig(filled: FilledTemplate): string {
  const { hostname, users, packages, commands } = filled
  const files = listFiles(filled)
  const config = {
    // The machine finds itself by its name, without a name server.
    ...(hostname === null ? {} : { hostname, manage_etc_hosts: 'localhost' }),
    ...(users.length === 0 ? {} : { users: users.map(renderUser) }),
    ...(packages.length === 0 ? {} : { package_update: true, packages }),
    ...(files.length === 0 ? {} : { write_files: files.map(renderFile) }),
    ...(commands.length === 0 ? {} : { runcmd: commands }),
  }
  return `#cloud-config\n${JSON.stringify(config, null, 2)}\n`
}

const renderFile = ({ path, mode, text }: TemplateFile) => ({
  path,
  permissions: mode,
  content: text,
})

const renderUser = ({ name, ssh_keys, sudo, password_hash }: Template['users'][number]) => ({
  name,
  lock_passwd: password_hash === undefined,
  ...(password_hash === undefined ? {} : { passwd: password_hash }),
  shell: '/bin/bash',
  ...(ssh_keys.length === 0 ? {} : { ssh_authorized_keys: ssh_keys }),
  ...(sudo ? { sudo: 'ALL=(ALL) NOPASSWD:ALL' } : {}),
})

/** For Fedora CoreOS 32, Flatcar 3139, and newer. */
const VERSION = '3.3.0'
const SCRIPT = '/etc/flasher/first-boot.sh'
const STAMP = '/var/lib/flasher-first-boot'

/** Refused in words: what Ignition cannot do would silently be missing. */
function renderIgnition(filled: FilledTemplate): Result<string, string> {
  const { hostname, users, packages, commands, network } = filled
  if (packages.length > 0) return refuse('it installs packages, which Ignition cannot')
  if (network !== null)
    return refuse('its network configuration is for cloud-init, not for Ignition')
  const own = [
    ...(hostname === null ? [] : [renderIgnitionFile('/etc/hostname', 0o644, `${hostname}\n`)]),
    ...users.flatMap(({ name, sudo }) =>
      sudo
        ? [renderIgnitionFile(`/etc/sudoers.d/${name}`, 0o440, `${name} ALL=(ALL) NOPASSWD:ALL\n`)]
        : [],
    ),
    ...(commands.length === 0 ? [] : [renderIgnitionFile(SCRIPT, 0o700, renderScript(commands))]),
  ]
  const given = listFiles(filled)
  const twice = given.find(({ path }) => own.some((file) => file.path === path))
  // Ignition refuses a path that occurs twice, and the machine then never boots.
  if (twice !== undefined)
    return refuse(`its file ${twice.path} is also made from its other fields`)
  const files = [
    ...own,
    ...given.map(({ path, mode, text }) =>
      renderIgnitionFile(path, Number.parseInt(mode, 8), text),
    ),
  ]
  const config = {
    ignition: { version: VERSION },
    ...(users.length === 0
      ? {}
      : {
          passwd: {
            users: users.map(({ name, ssh_keys, password_hash }) => ({
              name,
              sshAuthorizedKeys: ssh_keys,
              ...(password_hash === undefined ? {} : { passwordHash: password_hash }),
            })),
          },
        }),
    ...(files.length === 0 ? {} : { storage: { files } }),
    ...(commands.length === 0
      ? {}
      : {
          systemd: {
            units: [{ name: 'flasher-first-boot.service', enabled: true, contents: UNIT }],
          },
        }),
  }
  return accept(`${JSON.stringify(config, null, 2)}\n`)
}

const renderIgnitionFile = (path: string, mode: number, text: string) => ({
  path,
  mode,
  overwrite: true,
  contents: { source: `data:,${encodeURIComponent(text)}` },
})

const renderScript = (commands: readonly string[]) => `#!/bin/sh\n${commands.join('\n')}\n`

const UNIT = `[Unit]
Description=Commands of the first boot
ConditionPathExists=!${STAMP}
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
ExecStart=${SCRIPT}
ExecStartPost=/usr/bin/touch ${STAMP}
[Install]
WantedBy=multi-user.target
`

// What keeps a machine's template from being used, in a sentence for the person in front of the machine.

export interface LiveFeatures {
  readonly firstBoot: boolean
  readonly capture: boolean
  /** Knows disks by WWN, EUI and place; null: it announces nothing. */
  readonly diskId: boolean | null
  readonly sources?: boolean
}

export const NO_FEATURES: LiveFeatures = {
  firstBoot: false,
  capture: false,
  diskId: null,
  sources: false,
}

/** `?features=first-boot,capture`. Hostile; unknown names are skipped. */
export function parseFeatures(query: Readonly<Record<string, string>>): LiveFeatures {
  const names = query['features']?.split(',')
  if (names === undefined) return NO_FEATURES
  return {
    firstBoot: names.includes(FEATURES.firstBoot),
    capture: names.includes(FEATURES.capture),
    diskId: names.includes(FEATURES.diskId),
    sources: names.includes(FEATURES.sources),
  }
}

interface TemplateMachine {
  readonly mac: Mac
  readonly name: string | null
  readonly labels: readonly string[]
  /** A template's name; null: none. */
  readonly first_boot: string | null
}

/** `serial` null: the machine has not reported one. */
export const subjectOf = (
  { mac, name, labels }: TemplateMachine,
  serial: string | null,
): TemplateSubject => ({ mac, name, labels, serial })

interface TemplateSurroundings {
  findTemplate(name: string): Template | null
  /** `[pxe] tokens`: machines must prove that the server booted them. */
  readonly tokens: 'off' | 'prefer' | 'require'
  readonly features: Pick<LiveFeatures, 'firstBoot'>
}

/** For a serial number that is looked up only when the configuration is fetched. */
const ANY_SERIAL = 'X'
const PREVIEW = { instance: 'preview', secrets: 'hidden' } as const

/** A sentence; null: no template, or it can be written. */
export function findTemplateObstacle(
  machine: TemplateMachine,
  { findTemplate, tokens, features }: TemplateSurroundings,
): string | null {
  if (machine.first_boot === null) return null
  const name = printable(machine.first_boot)
  const template = findTemplate(machine.first_boot)
  if (template === null) return `The first-boot template ${name} was removed from the server.`
  if (!features.firstBoot) return OLD_CLIENT
  if (hasSecrets(template) && tokens !== 'require') {
    return `The first-boot template ${name} has secrets. Set [pxe] tokens = require on the server to use it.`
  }
  const rendered = renderFirstBoot(template, subjectOf(machine, ANY_SERIAL), PREVIEW)
  return rendered.ok
    ? null
    : `The first-boot template ${name} does not fit this machine: ${rendered.refusal}.`
}

const OLD_CLIENT =
  'The live system is too old for first-boot templates. Install a newer one on the server.'

// One-time tokens, by which a live system fetches the first-boot configuration of its plan.

type SeedTokenDefect = 'malformed' | 'foreign' | 'expired' | 'used'

const SHAPE = /^([0-9a-z]{1,11})\.([\w-]{43})$/
const RADIX = 36
/** A live system fetches it before it begins to write. */
const LIFETIME_MS = 10 * 60_000

/** ISO 8601: later than the newest used one, whatever the clock says. */
export const decideIssue = (takenAt: string | null, now: string): string =>
  toText(Math.max(toMs(now), takenAt === null ? 0 : toMs(takenAt) + 1))

/** `<issued>.<signature>`. */
export function renderSeedToken(mac: Mac, issued: string, sign: (text: string) => string): string {
  const claims = toMs(issued).toString(RADIX)
  return `${claims}.${sign(textOf(mac, claims))}`
}

interface SeedTokenContext {
  readonly mac: Mac
  readonly now: string
  /** Of the newest token that this machine has used; null: none. */
  readonly takenAt: string | null
}

/** `verify`: in constant time. Refused: malformed, foreign, used, or older than ten minutes. */
export function parseSeedToken(
  text: string,
  { mac, now, takenAt }: SeedTokenContext,
  verify: (text: string, signature: string) => boolean,
): Result<string, SeedTokenDefect> {
  const [, claims = '', signature = ''] = SHAPE.exec(text) ?? []
  if (signature === '') return refuse('malformed')
  if (!verify(textOf(mac, claims), signature)) return refuse('foreign')
  const issued = Number.parseInt(claims, RADIX)
  if (takenAt !== null && issued <= toMs(takenAt)) return refuse('used')
  if (Math.abs(toMs(now) - issued) > LIFETIME_MS) return refuse('expired')
  return accept(toText(issued))
}

export const SEED_TOKEN_REFUSALS: Readonly<Record<SeedTokenDefect, string>> = {
  malformed: 'this is not the token of a plan',
  foreign: 'the token is for another server or machine',
  expired: 'the token has expired: request the plan again',
  used: 'the token was used already: request the plan again',
}

const textOf = (mac: Mac, claims: string) => `first-boot:${mac}:${claims}`

const toMs = (at: string) => Temporal.Instant.from(at).epochMilliseconds

const toText = (ms: number) =>
  Temporal.Instant.fromEpochMilliseconds(ms).toString({ fractionalSecondDigits: 3 })

/** RFC 7042: no card is given this address. */
const MAC = parseMac('00:00:5e:00:53:01')

export function exampleOf(template: Template): TemplateSubject {
  if (!MAC.ok) throw new Error('the address of the example is one')
  const labels = listTexts(template).flatMap(({ text }) => listLabels(text))
  return {
    name: 'example',
    mac: MAC.value,
    serial: 'SERIAL1',
    labels: [...new Set(labels)].map((label) => `${label}-1`),
  }
}

const PartSchema = z.string().max(2 ** 18)

export const DocumentSchema = z.object({
  cloud_init: z
    .object({
      'user-data': PartSchema,
      'meta-data': PartSchema,
      'network-config': PartSchema.nullable().default(null),
      'vendor-data': PartSchema.optional(),
    })
    .nullable(),
  ignition: PartSchema.nullable(),
  reason: z.string().max(1000).nullable().default(null).describe('Why one of the two is null'),
})

export const renderDocument = ({
  cloudInit,
  ignition,
  reason,
}: FirstBoot): z.output<typeof DocumentSchema> => ({ cloud_init: cloudInit, ignition, reason })

/** Malformed: nothing in it could be written. */
export function parseFirstBoot(document: unknown): Result<FirstBoot, 'malformed'> {
  const parsed = DocumentSchema.safeParse(document)
  if (!parsed.success) return refuse('malformed')
  const { cloud_init: cloudInit, ignition, reason } = parsed.data
  return cloudInit === null && ignition === null
    ? refuse('malformed')
    : accept({ cloudInit, ignition, reason })
}

export const OfferSchema = z.object({ template: TemplateNameSchema, token: z.string().max(200) })

export const TicketSchema = z.strictObject({ token: z.string().max(200) })

/** Secrets are dots. */
export const NamedTemplateSchema = TemplateSchema.safeExtend({
  name: TemplateNameSchema,
  updated_at: z.iso.datetime(),
  machines: z.int().describe('How many machines have it'),
})
