/** The form of a first-boot template: its fields by name, and back to the template. */
import {
  NETWORK_KINDS,
  readNetwork,
  renderNetwork,
  type NetworkChoice,
  DOTS,
  hideSecrets,
  listFiles,
  type Template,
  findNetworkMistakes,
  parseTemplate,
} from '#engine/first-boot/rules/template.ts'
import { mapNames } from '#kit/web/ui/fields.ts'
import { renderFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill, upperFirst } from '#kit/foundation/text.ts'
import { exampleOf, renderFirstBoot, type FirstBoot } from '#engine/first-boot/rules/seed.ts'
import { card, copyBlock } from '#kit/web/ui/elements.ts'
import { attributes, html, type Content, type Html } from '#kit/web/ui/html.ts'

export const SECTIONS = [
  'hostname',
  'users',
  'packages',
  'files',
  'network',
  'commands',
  'user_data',
  'secrets',
] as const
export type Section = (typeof SECTIONS)[number]

export type FieldTexts = Readonly<Record<string, string>>

/** More than a template may have. */
const MAX_ROWS = 48
/** In characters, of a part that a form shows. */
const MAX_LENGTH = 24_000

/** Such as `user-0-name`. */
export const fieldName = (kind: 'user' | 'file', row: number, part: string): string =>
  `${kind}-${row}-${part}`

type Draft = Readonly<Record<string, unknown>>

interface Mapping {
  write(template: Template): FieldTexts
  read(fields: FieldTexts): unknown
}

const MAPPINGS: Readonly<Record<Section, Mapping>> = {
  hostname: {
    write: ({ hostname }) => ({ hostname: hostname ?? '' }),
    read: ({ hostname = '' }) => hostname.trim() || null,
  },
  users: {
    write: ({ users }) =>
      Object.assign(
        {},
        ...users.map(({ name, ssh_keys, sudo, password_hash = '' }, row) => ({
          [fieldName('user', row, 'name')]: name,
          [fieldName('user', row, 'keys')]: ssh_keys.join('\n'),
          ...(sudo ? { [fieldName('user', row, 'sudo')]: '1' } : {}),
          [fieldName('user', row, 'password')]: password_hash,
        })),
      ),
    read: (fields) =>
      listUserRows(fields).map((row) => {
        const get = (part: string) => (fields[fieldName('user', row, part)] ?? '').trim()
        const [name, password] = [get('name'), get('password')]
        return {
          name,
          ssh_keys: linesOf(get('keys')),
          sudo: get('sudo') !== '',
          ...(password === ''
            ? {}
            : { password_hash: isReference(password) ? password : refer(name) }),
        }
      }),
  },
  packages: {
    write: ({ packages }) => ({ packages: packages.join(' ') }),
    read: ({ packages = '' }) => packages.split(/[\s,]+/).filter(Boolean),
  },
  files: {
    write: (template) =>
      Object.assign(
        {},
        ...listFiles(template).map(({ path, mode, text }, row) => ({
          [fieldName('file', row, 'path')]: path,
          [fieldName('file', row, 'mode')]: mode,
          [fieldName('file', row, 'text')]: text,
        })),
      ),
    read(fields) {
      const files = listFileRows(fields).map((row) => ({
        path: (fields[fieldName('file', row, 'path')] ?? '').trim(),
        mode: (fields[fieldName('file', row, 'mode')] ?? '').trim() || '0644',
        text: fields[fieldName('file', row, 'text')] ?? '',
      }))
      return files.length === 0 ? undefined : files
    },
  },
  network: {
    write({ network }) {
      const choice = readNetwork(network)
      const { kind } = choice
      return {
        network: kind,
        address: kind === 'static' ? choice.address : '',
        gateway: kind === 'static' ? choice.gateway : '',
        nameservers: kind === 'static' ? choice.nameservers.join(' ') : '',
        network_text: kind === 'text' ? choice.text : '',
      }
    },
    read: (fields) => renderNetwork(readChoice(fields)),
  },
  commands: {
    write: ({ commands }) => ({ commands: commands.join('\n') }),
    read: ({ commands = '' }) => linesOf(commands),
  },
  user_data: {
    write: ({ user_data }) => ({ user_data: user_data ?? '' }),
    read: ({ user_data = '' }) => (user_data.trim() === '' ? null : user_data),
  },
  secrets: {
    write: ({ secrets }) => ({
      secrets: Object.entries(secrets)
        .map(([name, value]) => `${name}=${value ?? ''}`)
        .join('\n'),
    }),
    read: ({ secrets = '' }) => parseSecrets(secrets),
  },
}

const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

const isReference = (text: string): boolean => /^\{\{.*\}\}$/.test(text)

const secretOf = (user: string): string => `password-${user}`
const refer = (user: string): string => `{{secret.${secretOf(user)}}}`

const rows = Array.from({ length: MAX_ROWS }, (_, row) => row)

const listRows = (kind: 'user' | 'file', parts: readonly string[]) => (fields: FieldTexts) =>
  rows.filter((row) => parts.some((part) => fields[fieldName(kind, row, part)]?.trim()))

/** Rows with a value: the first is the template's first user, and so on. */
export const listUserRows = listRows('user', ['name', 'keys', 'password'])
export const listFileRows = listRows('file', ['path', 'text'])

/** Unknown choices leave the network to the image. */
function readChoice(fields: FieldTexts): NetworkChoice {
  const kind = NETWORK_KINDS.find((one) => one === fields['network']) ?? 'image'
  const { address = '', gateway = '', nameservers = '', network_text: text = '' } = fields
  switch (kind) {
    case 'static':
      return {
        kind,
        address: address.trim(),
        gateway: gateway.trim(),
        nameservers: nameservers.split(/[\s,]+/).filter(Boolean),
      }
    case 'text':
      return text.trim() === '' ? { kind: 'image' } : { kind, text }
    default:
      return { kind }
  }
}

function parseSecrets(text: string): Readonly<Record<string, string | null>> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf('=')
      return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1) || null]
    }),
  )
}

/** Dots for secrets, without parts that the form cannot show. */
export function fieldsOf(template: Template): FieldTexts {
  const hidden = hideSecrets(template)
  const kept = listKept(template)
  return Object.assign(
    {},
    ...SECTIONS.filter((section) => !kept.includes(section)).map((section) =>
      MAPPINGS[section].write(hidden),
    ),
  )
}

/** Parts that a form would change untouched (a command of several lines): not shown, and kept. */
export function listKept(template: Template): readonly Section[] {
  const hidden = hideSecrets(template)
  return SECTIONS.filter((section) => {
    const { write, read } = MAPPINGS[section]
    const fields = write(hidden)
    const texts = Object.entries(fields)
    const isSame = JSON.stringify(read(fields)) === JSON.stringify(hidden[section])
    return !isSame || !texts.every(([name, text]) => survives(name, text)) || isLong(texts)
  })
}

const isLong = (texts: readonly (readonly [string, string])[]): boolean =>
  texts.reduce((sum, [, text]) => sum + text.length, 0) > MAX_LENGTH

const AREAS = /^(?:packages|commands|network_text|user_data|secrets|.*-(?:keys|text))$/

/** Whether a browser returns the text unchanged. */
const survives = (name: string, text: string): boolean =>
  text.isWellFormed() && !(AREAS.test(name) ? LOST_IN_AREA : LOST_IN_LINE).test(text)

// oxlint-disable-next-line no-control-regex -- these are the characters that browsers change
const LOST_IN_AREA = /[\0-\x08\x0b-\x1f]/
// oxlint-disable-next-line no-control-regex -- these are the characters that browsers change
const LOST_IN_LINE = /[\0-\x1f]/

export const readFields = (form: URLSearchParams): FieldTexts =>
  Object.fromEntries([...form].map(([name, text]) => [name, text.replaceAll('\r\n', '\n')]))

/** Parts that were not in `shown` stay as in `before`, with dots for secrets. */
function draftTemplate(fields: FieldTexts, before: Template | null): Draft {
  const shown = (fields['shown'] ?? '').split(' ')
  const kept: Draft = before === null ? {} : hideSecrets(before)
  const parts = mapNames(SECTIONS, (section) =>
    shown.includes(section) ? MAPPINGS[section].read(fields) : kept[section],
  )
  if (!shown.includes('users')) return parts
  const secrets = { ...Object(parts.secrets), ...readHashes(fields) }
  return { ...parts, secrets }
}

/** Users' typed hashes become secrets. */
const readHashes = (fields: FieldTexts): FieldTexts =>
  Object.fromEntries(
    listUserRows(fields).flatMap((row) => {
      const password = (fields[fieldName('user', row, 'password')] ?? '').trim()
      const name = (fields[fieldName('user', row, 'name')] ?? '').trim()
      return password === '' || isReference(password) ? [] : [[secretOf(name), password]]
    }),
  )

/** Without typed secrets, for the refused form. */
export const hideTyped = (fields: FieldTexts): FieldTexts =>
  Object.fromEntries(
    Object.entries(fields).map(([name, text]) => {
      if (name === 'secrets') return [name, hideValues(text)]
      const isHash = /^user-\d+-password$/.test(name) && !isReference(text.trim())
      return [name, isHash ? '' : text]
    }),
  )

const hideValues = (text: string): string =>
  Object.entries(parseSecrets(text))
    .map(([name, value]) => `${name}=${value === DOTS ? DOTS : ''}`)
    .join('\n')

/** Checks what was typed into the form of a first-boot template, and says at each field what is wrong with it. */

const TEMPLATE_ERRORS = {
  name: 'Enter a name of letters, digits and . _ - that begins with a letter or a digit.',
  taken: 'There already is a template {name}.',
  refused: {
    one: 'Not saved. Correct the field that is marked.',
    other: 'Not saved. Correct the {count} fields that are marked.',
  },
  tooMany: 'Not saved: there are {count} templates already.',
  missing: 'no such first-boot template',
  json: 'This is no JSON.',
  user: 'Enter a user name such as ada: lower-case letters, digits, _ and -.',
  key: 'Key {number} is no public key. One looks like ssh-ed25519 AAAA… ada@example, on one line.',
  package: 'Package {number} is not the name of a package.',
  command: 'Command {number}: {reason}.',
  secret:
    'A secret is a line name=value, and its name has at most 64 letters, digits, _ and -: {reason}.',
  address: 'Enter an IP address with its prefix length, such as 192.0.2.10/24.',
  gateway: 'Enter the IP address of the gateway, of the same kind as the address.',
  nameservers: 'Enter IP addresses, separated with spaces.',
} as const

export function parseFields(
  fields: FieldTexts,
  before: Template | null,
): Result<Template, FieldTexts> {
  const { document } = fields
  if (document !== undefined) return parseDocument(document)
  const choice = readChoice(fields)
  const wrong = choice.kind === 'static' ? findNetworkMistakes(choice) : []
  const parsed = parseTemplate(draftTemplate(fields, before))
  const errors = {
    ...(parsed.ok ? {} : nameErrors(parsed.refusal, fields)),
    ...Object.fromEntries(wrong.map((name) => [name, TEMPLATE_ERRORS[name]])),
  }
  return parsed.ok && wrong.length === 0 ? parsed : refuse(errors)
}

function parseDocument(text: string): Result<Template, FieldTexts> {
  const document = parseJson(text)
  if (document === undefined) return refuse({ document: TEMPLATE_ERRORS.json })
  const parsed = parseTemplate(document)
  return parsed.ok
    ? accept(parsed.value)
    : refuse({ document: sentence(renderFieldErrors(parsed.refusal)) })
}

function nameErrors(errors: readonly FieldError[], fields: FieldTexts): FieldTexts {
  const named: Record<string, string> = {}
  for (const { loc, msg } of errors) {
    const [section = '', at, ...rest] = loc.slice(1)
    const [name, text] =
      typeof at === 'number'
        ? nameRowError(String(section), at, { rest, msg, fields })
        : nameError(String(section), msg, fields)
    named[name] ??= text
  }
  return named
}

type Path = FieldError['loc']
type NamedError = readonly [name: string, text: string]

interface RowError {
  readonly rest: Path
  readonly msg: string
  readonly fields: FieldTexts
}

function nameRowError(section: string, at: number, { rest, msg, fields }: RowError): NamedError {
  const [part, item] = rest
  switch (section) {
    case 'users':
      return nameUserError(listUserRows(fields)[at] ?? 0, { part, item, msg })
    case 'files': {
      const row = listFileRows(fields)[at] ?? 0
      const isRow = part === 'mode' || part === 'text'
      return [fieldName('file', row, isRow ? part : 'path'), sentence(msg)]
    }
    case 'packages':
      return [section, fill(TEMPLATE_ERRORS.package, { number: at + 1 })]
    default:
      return [section, fill(TEMPLATE_ERRORS.command, { number: at + 1, reason: msg })]
  }
}

/** For a part that is no list, or a list as a whole. */
function nameError(section: string, msg: string, fields: FieldTexts): NamedError {
  switch (section) {
    case 'users':
      return [fieldName('user', 0, 'name'), sentence(msg)]
    case 'files':
      return [fieldName('file', listFileRows(fields)[0] ?? 0, 'path'), sentence(msg)]
    case 'network':
      return [readChoice(fields).kind === 'static' ? 'address' : 'network_text', sentence(msg)]
    case 'secrets':
      return [section, fill(TEMPLATE_ERRORS.secret, { reason: msg })]
    default:
      return [section, sentence(msg)]
  }
}

interface UserError {
  readonly part: Path[number] | undefined
  readonly item: Path[number] | undefined
  readonly msg: string
}

function nameUserError(row: number, { part, item, msg }: UserError): NamedError {
  switch (part) {
    case 'ssh_keys':
      return [
        fieldName('user', row, 'keys'),
        typeof item === 'number' ? fill(TEMPLATE_ERRORS.key, { number: item + 1 }) : sentence(msg),
      ]
    case 'password_hash':
      return [fieldName('user', row, 'password'), sentence(msg)]
    default:
      return [
        fieldName('user', row, 'name'),
        part === undefined ? sentence(msg) : TEMPLATE_ERRORS.user,
      ]
  }
}

const sentence = (msg: string): string => {
  const text = upperFirst(msg)
  return /[.?!]$/.test(text) ? text : `${text}.`
}

// The preview beside the form of a first-boot template: what a machine would get, with dots for secrets.

/** Its fields are previewed while somebody types; without scripts, by its button. */
export const FORM_ID = 'template-form'

/** `path`: of the form's post. */
export const renderPreviewCard = (path: string, drafted: Result<Template, FieldTexts>): Html =>
  card({
    title: 'Preview',
    id: 'preview',
    body: html`<p class="hint">
        ${'What a machine named example gets, with dots for secrets. The page of a machine has its own preview.'}
      </p>
      <div
        ${attributes({
          'hx-post': path,
          'hx-include': `#${FORM_ID}`,
          'hx-vals': JSON.stringify({ do: 'preview' }),
          'hx-trigger': ['input', 'delay:400ms', `from:#${FORM_ID}`].join(' '),
          'hx-select': '#preview-texts',
          'hx-swap': 'innerHTML',
        })}
      >
        ${renderPreviewTexts(drafted)}
      </div>`,
  })

export const renderPreviewTexts = (drafted: Result<Template, FieldTexts>): Html =>
  html`<div id="preview-texts" class="stack">
    ${drafted.ok ? renderTemplate(drafted.value) : renderErrors(Object.values(drafted.refusal))}
  </div>`

const renderErrors = (errors: readonly string[]): Html =>
  html`<p>There is no preview yet:</p>
    <ul>
      ${errors.map((error) => html`<li>${error}</li>`)}
    </ul>`

function renderTemplate(template: Template): Html {
  const subject = exampleOf(template)
  const rendered = renderFirstBoot(template, subject, { instance: 'flasher-…', secrets: 'hidden' })
  return rendered.ok
    ? renderFirstBootTexts(rendered.value)
    : html`<p>There is no preview yet: ${rendered.refusal}.</p>`
}

export const renderFirstBootTexts = ({ cloudInit, ignition, reason }: FirstBoot): Html =>
  html`${
    cloudInit === null
      ? null
      : Object.entries(cloudInit).map(([name, text]) =>
          text === null || text === undefined ? null : renderText(name, text),
        )
  }
  ${ignition === null ? html`<p class="hint">Not for images that use Ignition: ${reason ?? ''}.</p>` : renderText('config.ign', ignition)}`

const renderText = (name: string, text: string): Content =>
  html`<p class="mono small">${name}</p>
    ${copyBlock(text, name)}`
