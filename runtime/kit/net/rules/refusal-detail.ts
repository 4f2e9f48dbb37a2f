/** Reads why one of our servers refused a request from its response: `{"detail": …}`. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { isRecord } from '#kit/foundation/shape.ts'
import { printable } from '#kit/foundation/printable.ts'

const MAX_CHARACTERS = 1000

/** A text, or a list of fields with what is wrong with each; null where the body says nothing. */
export function parseDetail(body: string): string | null {
  const detail = fieldOf(parseJson(body), 'detail')
  const words = Array.isArray(detail) ? detail.map(renderField).join('; ') : detail
  return typeof words === 'string' ? printable(words.trim().slice(0, MAX_CHARACTERS)) || null : null
}

/** Renders `HTTP 404: no machine record for …`; the status alone where the body says nothing. */
export const renderRefusal = (status: number, body: string): string =>
  [`HTTP ${status}`, parseDetail(body)].filter((part) => part !== null).join(': ')

/** `loc` begins with the part of the request that the field is in. */
function renderField(field: unknown): string {
  const [loc, msg] = [fieldOf(field, 'loc'), fieldOf(field, 'msg')]
  const path = Array.isArray(loc) ? loc.slice(1).join('.') : ''
  return [path, typeof msg === 'string' ? msg : 'invalid'].filter(Boolean).join(': ')
}

const fieldOf = (document: unknown, name: string): unknown =>
  isRecord(document) ? document[name] : undefined
