/** Renders a template for one machine: the files of cloud-init's NoCloud, and an Ignition configuration. */
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { renderIgnition } from './ignition.ts'
import { fillPlaceholders, type PlaceholderValues } from './placeholder.ts'
import {
  hideSecrets,
  isIgnition,
  listFiles,
  type FilledTemplate,
  type Template,
  type TemplateFile,
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
