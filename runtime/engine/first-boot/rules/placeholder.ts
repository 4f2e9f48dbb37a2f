/** Placeholders such as `{{name}}` in the texts of a template: which there are, and how they are filled. */
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

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

export const listSecrets = (text: string): readonly string[] =>
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
