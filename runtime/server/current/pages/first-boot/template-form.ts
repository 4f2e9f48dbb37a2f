/** The form of a first-boot template: its fields as text, and back. */
import {
  DOTS,
  hideSecrets,
  parseTemplate,
  type Template,
} from '../../../../engine/first-boot/rules/template.ts'
import type { FieldError } from '../../../../kit/foundation/field-error.ts'
import type { Result } from '../../../../kit/foundation/result.ts'
import { PAGES } from '../../../texts/texts.ts'
import { areaField, mapNames, textField } from '../../../../kit/web/ui/fields.ts'
import { fillHtml, html, type Html } from '../../../../kit/web/ui/html.ts'

const t = PAGES.firstBoot.form

const FIELDS = [
  'hostname',
  'users',
  'packages',
  'commands',
  'network',
  'user_data',
  'secrets',
] as const
export type TemplateTexts = Readonly<Record<(typeof FIELDS)[number], string>>

/** Together they are no longer than what a form may be. */
const MAX_LENGTH = 60_000

export const EMPTY_TEXTS = mapNames(FIELDS, () => '')

/** Secrets are dots. */
export function textsOf(template: Template): TemplateTexts {
  const { hostname, users, packages, commands, network, user_data } = template
  return {
    hostname: hostname ?? '',
    users: users
      .flatMap(({ name, ssh_keys, sudo }) => [sudo ? `${name} sudo` : name, ...ssh_keys])
      .join('\n'),
    packages: packages.join(' '),
    commands: commands.join('\n'),
    network: network ?? '',
    user_data: user_data ?? '',
    secrets: Object.entries(hideSecrets(template).secrets)
      .map(([name, value]) => `${name}=${value ?? ''}`)
      .join('\n'),
  }
}

/** What was typed, else what is kept. */
export function readTexts(given: URLSearchParams, kept: TemplateTexts): TemplateTexts {
  return mapNames(
    FIELDS,
    (name) => given.get(name)?.slice(0, MAX_LENGTH).replaceAll('\r\n', '\n') ?? kept[name],
  )
}

/** What may be kept for the form to come back with: a secret that was typed is not. */
export const hideTyped = (texts: TemplateTexts): TemplateTexts => ({
  ...texts,
  secrets: Object.entries(parseSecrets(texts.secrets))
    .map(([name, value]) => `${name}=${value === DOTS ? DOTS : ''}`)
    .join('\n'),
})

export const parseTexts = (texts: TemplateTexts): Result<Template, readonly FieldError[]> =>
  parseTemplate({
    hostname: texts.hostname.trim() || null,
    users: parseUsers(texts.users),
    packages: texts.packages.split(/[\s,]+/).filter(Boolean),
    commands: linesOf(texts.commands),
    network: texts.network.trim() === '' ? null : texts.network,
    user_data: texts.user_data.trim() === '' ? null : texts.user_data,
    secrets: parseSecrets(texts.secrets),
  })

const linesOf = (text: string): readonly string[] =>
  text
    .split('\n')
    .map((line) => line.trim())
    .filter(Boolean)

/** A line is a user, `ada` or `ada sudo`, or a key of the user above. */
function parseUsers(text: string) {
  const users: { name: string; ssh_keys: string[]; sudo: boolean }[] = []
  for (const line of linesOf(text)) {
    const last = users.at(-1)
    if (/^(ssh|ecdsa|sk)-\S+ /.test(line) && last !== undefined) last.ssh_keys.push(line)
    else {
      const name = line.replace(/\s+sudo$/, '')
      users.push({ name, ssh_keys: [], sudo: name !== line })
    }
  }
  return users
}

function parseSecrets(text: string): Readonly<Record<string, string | null>> {
  return Object.fromEntries(
    linesOf(text).map((line) => {
      const at = line.indexOf('=')
      return at < 0 ? [line, null] : [line.slice(0, at).trim(), line.slice(at + 1) || null]
    }),
  )
}

export const renderFields = (texts: TemplateTexts): Html =>
  html`${textField({ name: 'hostname', label: t.hostname, value: texts.hostname, mono: true, placeholder: '{{name}}', maxLength: 253, hint: t.hostnameHint })}
  ${areaField({ name: 'users', label: t.users, value: texts.users, rows: 4, hint: t.usersHint })}
  ${areaField({ name: 'packages', label: t.packages, value: texts.packages, rows: 2, hint: t.packagesHint })}
  ${areaField({ name: 'commands', label: t.commands, value: texts.commands, rows: 3, hint: t.commandsHint })}
  ${areaField({ name: 'network', label: t.network, value: texts.network, rows: 4, hint: t.networkHint })}
  ${areaField({ name: 'user_data', label: t.userData, value: texts.user_data, rows: 6, hint: fillHtml(t.userDataHint, { braces: html`<code>\\{{</code>` }) })}
  ${areaField({ name: 'secrets', label: t.secrets, value: texts.secrets, rows: 2, hint: fillHtml(t.secretsHint, { placeholder: html`<code>{{secret.name}}</code>`, setting: html`<code>[pxe] tokens = require</code>` }) })}`
