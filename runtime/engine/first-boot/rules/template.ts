/** First-boot templates: what an operator writes once, and each machine gets filled in with its own values. */
import { z } from 'zod'
import { parseFields } from '../../../kit/foundation/field-error.ts'
import { parseJson } from '../../../kit/foundation/json-reader.ts'
import { isRecord } from '../../../kit/foundation/shape.ts'
import { findUnknownPlaceholder, listSecrets } from './placeholder.ts'

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
  /** Whether the user may become root without a password. */
  sudo: z.boolean().default(false),
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

/** A template with its placeholders filled: nothing is secret any more. */
export type FilledTemplate = Omit<Template, 'secrets'>

/** A template as the server keeps it. */
export interface NamedTemplate {
  readonly name: string
  readonly template: Template
  /** ISO time. */
  readonly updated_at: string
}

/** Checks a template as it is stored or sent. The refusal lists the fields that are wrong. */
export const parseTemplate = (body: unknown) => parseFields<Template>(TemplateSchema, body)

interface TemplateMistake {
  readonly path: readonly (string | number)[]
  readonly message: string
}

/** The texts in which placeholders are filled, with where they stand. */
const listTexts = (
  template: Template,
): readonly { readonly path: TemplateMistake['path']; readonly text: string }[] => [
  { path: ['hostname'], text: template.hostname ?? '' },
  ...template.commands.map((text, at) => ({ path: ['commands', at], text })),
  { path: ['network'], text: template.network ?? '' },
  { path: ['user_data'], text: template.user_data ?? '' },
]

function findMistakes(template: Template): readonly TemplateMistake[] {
  const { user_data, users, packages, commands, secrets } = template
  const isMixed = user_data !== null && users.length + packages.length + commands.length > 0
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
  ]
}

const MIXED = 'replaces users, packages and commands: give either the text or those'
const NO_USER_DATA =
  'cloud-init takes a text that begins with #cloud-config, #! or a MIME header; Ignition takes JSON with ignition.version 3'

const isUserData = (text: string): boolean =>
  isIgnition(text) || /^(#|content-type:|mime-version:)/i.test(text)

/** Whether a text is an Ignition configuration, whose placeholders stand in strings. */
export function isIgnition(text: string): boolean {
  const document = parseJson(text)
  const ignition = isRecord(document) ? document['ignition'] : null
  return isRecord(ignition) && /^3\.\d/.test(String(ignition['version']))
}

/** Stands for a secret that has a value. */
export const DOTS = '••••••••'

/** Returns the template as everybody may see it, with dots for its secrets. */
export const hideSecrets = (template: Template): Template => ({
  ...template,
  secrets: Object.fromEntries(
    Object.entries(template.secrets).map(([name, value]) => [name, value === null ? null : DOTS]),
  ),
})

/**
 * Returns the template with the secrets from before where it has dots: a form that was only shown
 * them changes nothing.
 */
export const keepSecrets = (template: Template, before: Template | null): Template => ({
  ...template,
  secrets: Object.fromEntries(
    Object.entries(template.secrets).map(([name, value]) => [
      name,
      value === DOTS ? (before?.secrets[name] ?? null) : value,
    ]),
  ),
})

/**
 * Tells whether a template holds secrets: such a one is only given to a machine that proves its
 * boot.
 */
export const hasSecrets = (template: Template): boolean => Object.keys(template.secrets).length > 0
