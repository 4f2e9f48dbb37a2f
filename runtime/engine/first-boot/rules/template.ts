/** First-boot templates: what an operator writes once, and each machine gets filled in with its own values. */
import { gunzipSync } from 'node:zlib'
import { z } from 'zod'
import { parseFields } from '#kit/foundation/field-error.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isRecord } from '#kit/foundation/shape.ts'

export const MAX_TEMPLATES = 200

/** Also a part of addresses and file names. */
export const TemplateNameSchema = z
  .string()
  .regex(
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/,
    'at most 64 letters, digits and . _ - that begin with a letter or a digit',
  )

const UserSchema = z.strictObject({
  name: z
    .string()
    .regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'a user name such as ada: lower case, digits, _ and -'),
  ssh_keys: z
    .array(
      z
        .string()
        .max(4096)
        .regex(
          /^(ssh-|ecdsa-sha2-|sk-)[a-z0-9@.-]+ [A-Za-z0-9+/]+=*( [^\n\r]*)?$/,
          'a public key such as "ssh-ed25519 AAAA… ada@example"',
        ),
    )
    .max(32)
    .default([]),
  sudo: z.boolean().default(false),
  /** `mkpasswd`'s hash, by the name of a secret; absent: the password is locked. */
  password_hash: z
    .string()
    .max(80)
    .regex(/^\{\{secret\.[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\}\}$/, 'a secret such as {{secret.ada}}')
    .optional(),
})

/** What `mkpasswd` and `openssl passwd -6` print; a password itself never looks so. */
const isPasswordHash = (text: string): boolean =>
  text.length <= 512 && /^\$[a-z0-9]{1,10}\$[./A-Za-z0-9$=,_+-]{8,}$/.test(text)

/** Of all files: each machine is sent them as JSON, and for Ignition escaped. */
const MAX_FILES_BYTES = 32 * 1024

const FileSchema = z.strictObject({
  path: z
    .string()
    .max(1024)
    .regex(/^(\/[^/\p{C}]+)+$/u, 'a path that begins with /, such as /etc/motd')
    .refine((path) => !/\/\.{1,2}(\/|$)/.test(path), 'a path without . and ..'),
  mode: z
    .string()
    .regex(/^[0-7]{4}$/, 'four octal digits such as 0644')
    .default('0644'),
  text: z.string().max(MAX_FILES_BYTES),
})

const SecretNameSchema = z
  .string()
  .regex(/^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$/, 'at most 64 letters, digits, _ and -')

const FieldsSchema = z.strictObject({
  hostname: z.string().min(1).max(253).nullable().default(null),
  users: z.array(UserSchema).max(32).default([]),
  packages: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9+.:~=_-]{0,127}$/, 'the name of a package'))
    .max(256)
    .default([]),
  /** Absent where there are none, so that an older server can read the template. */
  files: z.array(FileSchema).min(1).max(32).optional(),
  commands: z.array(z.string().min(1).max(4096)).max(64).default([]),
  network: z
    .string()
    .min(1)
    .max(16_384)
    .regex(
      /^\s*"?version"?\s*:|^\s*"?network"?\s*:|^\{/m,
      'cloud-init network configuration has a line version:',
    )
    .nullable()
    .default(null),
  user_data: z.string().min(1).max(65_536).nullable().default(null),
  secrets: z.record(SecretNameSchema, z.string().min(1).max(4096).nullable()).default({}),
})

type TemplateFields = z.infer<typeof FieldsSchema>

/** The body of `PUT /first-boot/{name}`. */
export const TemplateSchema = FieldsSchema.superRefine((fields, context) => {
  for (const { path, message } of findMistakes(fields)) {
    context.addIssue({ code: 'custom', path: [...path], message })
  }
})

export type Template = Readonly<TemplateFields>
export type TemplateFile = Readonly<z.infer<typeof FileSchema>>

/** Nothing is secret any more. */
export type FilledTemplate = Omit<Template, 'secrets'>

export interface NamedTemplate {
  readonly name: string
  readonly template: Template
  /** ISO time. */
  readonly updated_at: string
}

/** The refusal lists the wrong fields. */
export const parseTemplate = (body: unknown) => parseFields<Template>(TemplateSchema, body)

interface TemplateMistake {
  readonly path: readonly (string | number)[]
  readonly message: string
}

export const listTexts = (
  template: Template,
): readonly { readonly path: TemplateMistake['path']; readonly text: string }[] => [
  { path: ['hostname'], text: template.hostname ?? '' },
  ...template.users.map(({ password_hash = '' }, at) => ({
    path: ['users', at, 'password_hash'],
    text: password_hash,
  })),
  ...listFiles(template).map(({ text }, at) => ({ path: ['files', at, 'text'], text })),
  ...template.commands.map((text, at) => ({ path: ['commands', at], text })),
  { path: ['network'], text: template.network ?? '' },
  { path: ['user_data'], text: template.user_data ?? '' },
]

function findMistakes(template: Template): readonly TemplateMistake[] {
  const { user_data, users, packages, commands, secrets } = template
  const files = listFiles(template)
  const count = users.length + packages.length + commands.length + files.length
  const isMixed = user_data !== null && count > 0
  const mixed = { path: ['user_data'], message: MIXED }
  const placeholders = listTexts(template).flatMap(({ path, text }) => {
    const unknown = findUnknownPlaceholder(text)
    const undeclared = listSecrets(text)
      .filter((name) => !Object.hasOwn(secrets, name))
      .map((name) => ({ path, message: `{{secret.${name}}}: there is no such secret` }))
    return unknown === null ? undeclared : [{ path, message: unknown }]
  })
  const begins = user_data !== null && !isUserData(user_data)
  return [
    ...(isMixed ? [mixed] : []),
    ...(begins ? [{ path: ['user_data'], message: NO_USER_DATA }] : []),
    ...placeholders,
    ...findWrongHashes(template),
    ...findWrongFiles(files),
  ]
}

export const listFiles = ({ files = [] }: Pick<Template, 'files'>): readonly TemplateFile[] => files

/** A password instead of its hash would be readable on the disk, and nobody could log in. */
const findWrongHashes = ({ users, secrets }: Template): readonly TemplateMistake[] =>
  users.flatMap(({ password_hash = '' }, at) => {
    const [name = ''] = listSecrets(password_hash)
    const value = Object.hasOwn(secrets, name) ? secrets[name] : null
    if (value === null || value === undefined || value === DOTS || isPasswordHash(value)) return []
    return [{ path: ['users', at, 'password_hash'], message: NO_HASH }]
  })

function findWrongFiles(files: readonly TemplateFile[]): readonly TemplateMistake[] {
  const bytes = files.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)
  const twice = files.flatMap(({ path }, at) =>
    files.findIndex((other) => other.path === path) < at
      ? [{ path: ['files', at, 'path'], message: 'there already is a file of this path' }]
      : [],
  )
  return bytes > MAX_FILES_BYTES
    ? [{ path: ['files'], message: `at most ${MAX_FILES_BYTES / 1024} KiB together` }, ...twice]
    : twice
}

const NO_HASH = 'not a password hash; create one with mkpasswd or openssl passwd -6'
const MIXED = 'cannot be combined with users, packages, files or commands'
const NO_USER_DATA =
  'must begin with #cloud-config, #! or a MIME header (cloud-init), or be JSON with ignition.version 3 (Ignition)'

const isUserData = (text: string): boolean =>
  isIgnition(text) || (text.trim() !== '' && findUserDataProblem(Buffer.from(text)) === null)

/** Its placeholders stand in strings. */
export function isIgnition(text: string): boolean {
  const document = parseJson(text)
  const ignition = isRecord(document) ? document['ignition'] : null
  return isRecord(ignition) && /^3\.\d/.test(String(ignition['version']))
}

export const DOTS = '••••••••'

export const hideSecrets = (template: Template): Template => ({
  ...template,
  secrets: Object.fromEntries(
    Object.entries(template.secrets).map(([name, value]) => [name, value === null ? null : DOTS]),
  ),
})

/** A form that was only shown dots changes no secret. */
export const keepSecrets = (template: Template, before: Template | null): Template => ({
  ...template,
  secrets: Object.fromEntries(
    Object.entries(template.secrets).map(([name, value]) => [
      name,
      value === DOTS ? (before?.secrets[name] ?? null) : value,
    ]),
  ),
})

/** Only for machines that prove their boot. */
export const hasSecrets = (template: Template): boolean => Object.keys(template.secrets).length > 0

/** cloud-init ignores case and leading white space. */
const BEGINNINGS = [
  '#!',
  '#cloud-boothook',
  '#cloud-config',
  '#include',
  '#part-handler',
  '#upstart-job',
  '## template: jinja',
]
/** cloud-init looks so far for the header of a MIME message. */
const MIME_BYTES = 4096
/** More than cloud-init is ever given. */
const MAX_BYTES = 64 * 2 ** 20

/** Null: cloud-init reads it, or it is empty. */
export function findUserDataProblem(content: Buffer): string | null {
  const unpacked = isGzip(content) ? unpack(content) : content
  if (unpacked === null) return 'its gzip data is damaged'
  if (isKnown(unpacked)) return null
  const text = unpacked.toString('utf8', 0, MIME_BYTES)
  const begins = text.startsWith('\ufeff')
    ? 'begins with a byte order mark'
    : isKnown(Buffer.from(text, 'base64'))
      ? 'is encoded in base64'
      : 'begins without a header of cloud-init'
  return `it ${begins}, so cloud-init would ignore it; ${HEADERS}`
}

const HEADERS =
  'the first line has to be #cloud-config, #! and a program, or another header of cloud-init'

function isKnown(content: Buffer): boolean {
  const head = content.toString('latin1', 0, MIME_BYTES).toLowerCase()
  const begins = head.trimStart()
  const isMime = head.includes('mime-version:')
  return begins === '' || isMime || BEGINNINGS.some((known) => begins.startsWith(known))
}

const isGzip = (content: Buffer) => content.length > 2 && content.readUInt16BE(0) === 0x1f8b

function unpack(content: Buffer): Buffer | null {
  try {
    return gunzipSync(content, { maxOutputLength: MAX_BYTES })
  } catch {
    return null
  }
}

// The usual networks of a template as choices, and as the text that cloud-init reads; any other text stays one.

interface StaticNetwork {
  /** With its prefix length; placeholders are allowed in all three. */
  readonly address: string
  /** Empty: no route leads out of the network. */
  readonly gateway: string
  readonly nameservers: readonly string[]
}

export type NetworkChoice =
  | { readonly kind: 'image' }
  | { readonly kind: 'dhcp' }
  | ({ readonly kind: 'static' } & StaticNetwork)
  | { readonly kind: 'text'; readonly text: string }

export const NETWORK_KINDS = ['image', 'dhcp', 'static', 'text'] as const

const DHCP = 'version: 2\nethernets:\n  all:\n    match: {name: "e*"}\n    dhcp4: true\n'

/** Null: the image decides. */
export function renderNetwork(choice: NetworkChoice): string | null {
  switch (choice.kind) {
    case 'image':
      return null
    case 'dhcp':
      return DHCP
    case 'static':
      return renderStatic(choice)
    case 'text':
      return choice.text
  }
}

/** Some writers of network files of cloud-init know cards by name alone. */
function renderStatic({ address, gateway, nameservers }: StaticNetwork): string {
  const to = gateway.includes(':') ? '::/0' : '0.0.0.0/0'
  const lines = [
    'version: 2',
    'ethernets:',
    '  boot0:',
    '    match: {macaddress: "{{mac}}"}',
    '    set-name: boot0',
    `    addresses: ["${address}"]`,
    ...(gateway === '' ? [] : [`    routes: [{to: "${to}", via: "${gateway}"}]`]),
    ...(nameservers.length === 0
      ? []
      : [`    nameservers: {addresses: [${nameservers.map((each) => `"${each}"`).join(', ')}]}`]),
  ]
  return `${lines.join('\n')}\n`
}

/** Only what `renderNetwork` writes, byte for byte: saving the choice again changes nothing. */
export function readNetwork(text: string | null): NetworkChoice {
  if (text === null) return { kind: 'image' }
  if (text === DHCP) return { kind: 'dhcp' }
  const nameservers = [...capture(text, NAMESERVERS).matchAll(/"([^"]*)"/g)].map(
    ([, each = '']) => each,
  )
  const choice = {
    kind: 'static',
    address: capture(text, ADDRESS),
    gateway: capture(text, GATEWAY),
    nameservers,
  } as const
  const isOurs = findNetworkMistakes(choice).length === 0 && renderStatic(choice) === text
  return isOurs ? choice : { kind: 'text', text }
}

const ADDRESS = /^ {4}addresses: \["([^"\n]*)"\]$/m
const GATEWAY = /^ {4}routes: .* via: "([^"\n]*)"\}\]$/m
const NAMESERVERS = /^ {4}nameservers: \{addresses: \[(.*)\]\}$/m

const capture = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? ''

const [FOUR, SIX] = [z.ipv4(), z.ipv6()]
const HOSTS = z.union([FOUR, SIX])
const ADDRESSES = z.union([z.cidrv4(), z.cidrv6()])

export function findNetworkMistakes({
  address,
  gateway,
  nameservers,
}: StaticNetwork): readonly (keyof StaticNetwork)[] {
  const isAddress = ADDRESSES.safeParse(sample(address)).success
  // A gateway of the other family would never be used.
  const family = address.includes(':') ? SIX : FOUR
  const isGateway = gateway === '' || family.safeParse(sample(gateway)).success
  return [
    ...(isAddress ? [] : (['address'] as const)),
    ...(isGateway || !isAddress ? [] : (['gateway'] as const)),
    ...(nameservers.every((each) => HOSTS.safeParse(sample(each)).success)
      ? []
      : (['nameservers'] as const)),
  ]
}

const sample = (text: string): string => text.replaceAll(/\{\{[^{}\n"\\]*\}\}/g, '1')

export interface PlaceholderValues {
  /** Null: nobody named the machine. */
  readonly name: string | null
  readonly mac: string
  /** Null: the machine has not reported one. */
  readonly serial: string | null
  readonly labels: readonly string[]
  /** By name; null: the secret has no value. */
  readonly secrets: Readonly<Record<string, string | null>>
}

/** `\{{` stands for `{{` itself. */
const PLACEHOLDER = /(\\?)\{\{([^{}\n]*)\}\}/g
const LABEL = /^label\.([A-Za-z0-9][A-Za-z0-9._-]{0,63})$/
const SECRET = /^secret\.([A-Za-z0-9_][A-Za-z0-9_-]{0,63})$/
const FACTS = ['name', 'mac', 'serial'] as const

const KNOWN = '{{name}}, {{mac}}, {{serial}}, {{label.…}} and {{secret.…}}'

const listPlaceholders = (text: string): readonly string[] =>
  [...text.matchAll(PLACEHOLDER)].flatMap(([, escape, inner = '']) =>
    escape === '' ? [inner.trim()] : [],
  )

/** A sentence; null: all are known. */
export function findUnknownPlaceholder(text: string): string | null {
  const unknown = listPlaceholders(text).find(
    (inner) => !FACTS.some((fact) => fact === inner) && !LABEL.test(inner) && !SECRET.test(inner),
  )
  return unknown === undefined
    ? null
    : `{{${printable(unknown)}}} is not a placeholder: there are ${KNOWN}`
}

const listSecrets = (text: string): readonly string[] =>
  listPlaceholders(text).flatMap((inner) => SECRET.exec(inner)?.[1] ?? [])

export const listLabels = (text: string): readonly string[] =>
  listPlaceholders(text).flatMap((inner) => LABEL.exec(inner)?.[1] ?? [])

/** Refused with the first placeholder that cannot be filled, and why. */
export function fillPlaceholders(text: string, values: PlaceholderValues): Result<string, string> {
  let refusal: string | null = null
  const filled = text.replaceAll(PLACEHOLDER, (whole, escape: string, inner: string) => {
    if (escape !== '') return whole.slice(1)
    const value = findValue(inner.trim(), values)
    if (!value.ok) refusal ??= `{{${printable(inner.trim())}}}: ${value.refusal}`
    return value.ok ? value.value : ''
  })
  return refusal === null ? accept(filled) : refuse(refusal)
}

function findValue(inner: string, values: PlaceholderValues): Result<string, string> {
  const [, key] = LABEL.exec(inner) ?? []
  const [, secret] = SECRET.exec(inner) ?? []
  if (key !== undefined) return findLabel(key, values.labels)
  if (secret !== undefined) return findSecret(secret, values.secrets)
  switch (inner) {
    case 'name':
      return checkValue(values.name, 'the machine has no name')
    case 'mac':
      return accept(values.mac)
    case 'serial':
      return checkValue(values.serial, 'the machine has not reported a serial number')
    default:
      return refuse(`there is no such placeholder; there are ${KNOWN}`)
  }
}

function findSecret(name: string, secrets: PlaceholderValues['secrets']): Result<string, string> {
  const value = Object.hasOwn(secrets, name) ? (secrets[name] ?? null) : null
  return value === null ? refuse('the secret has no value') : accept(value)
}

/** With the label `rack-12`, `{{label.rack}}` is `12`: labels have no values. */
function findLabel(key: string, labels: readonly string[]): Result<string, string> {
  const start = key.toLowerCase()
  const [value, ...others] = labels.flatMap((label) => {
    const isOurs = label.toLowerCase().startsWith(start) && /^[ ._-]./.test(label.slice(key.length))
    return isOurs ? [label.slice(key.length + 1)] : []
  })
  if (value === undefined) return refuse(`the machine has no label such as ${key}-1`)
  return others.length === 0
    ? checkValue(value, '')
    : refuse(`the machine has more than one label that begins with ${key}`)
}

/** Serial numbers come from the machine: nothing in them may end a quotation or a line. */
const PLAIN = /^[\p{L}\p{N}][\p{L}\p{N}\p{M} ._:/@+-]*$/u

function checkValue(value: string | null, missing: string): Result<string, string> {
  if (value === null || value === '') return refuse(missing)
  return PLAIN.test(value)
    ? accept(value)
    : refuse(`"${printable(value)}" has characters that could change the meaning of the text`)
}
