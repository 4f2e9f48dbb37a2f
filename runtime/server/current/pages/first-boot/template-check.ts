/** Checks what was typed into the form of a first-boot template, and says at each field what is wrong with it. */
import { findNetworkMistakes } from '#engine/first-boot/rules/network-choice.ts'
import { parseTemplate, type Template } from '#engine/first-boot/rules/template.ts'
import { renderFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { fill } from '#kit/texts/text.ts'
import { PAGES } from '#server/texts/texts.ts'
import {
  draftTemplate,
  fieldName,
  listFileRows,
  listUserRows,
  readChoice,
  type FieldTexts,
} from './template-form.ts'

const t = PAGES.firstBoot.errors

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
    ...Object.fromEntries(wrong.map((name) => [name, t[name]])),
  }
  return parsed.ok && wrong.length === 0 ? parsed : refuse(errors)
}

function parseDocument(text: string): Result<Template, FieldTexts> {
  const document = parseJson(text)
  if (document === undefined) return refuse({ document: t.json })
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
      return [section, fill(t.package, { number: at + 1 })]
    default:
      return [section, fill(t.command, { number: at + 1, reason: msg })]
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
      return [section, fill(t.secret, { reason: msg })]
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
        typeof item === 'number' ? fill(t.key, { number: item + 1 }) : sentence(msg),
      ]
    case 'password_hash':
      return [fieldName('user', row, 'password'), sentence(msg)]
    default:
      return [fieldName('user', row, 'name'), part === undefined ? sentence(msg) : t.user]
  }
}

const sentence = (msg: string): string => {
  const text = `${msg.charAt(0).toUpperCase()}${msg.slice(1)}`
  return /[.?!]$/.test(text) ? text : `${text}.`
}
