/** Errors in a request body, field by field: the `detail` list of a 422. */
import type { ZodError, ZodType } from 'zod'
import { accept, refuse, type Result } from './result.ts'

export interface FieldError {
  /** `body` or `query`, then the way to the field: `["body", "labels", 3]`. */
  readonly loc: readonly (string | number)[]
  /** The message is for people; it may name keys that were sent. */
  readonly msg: string
  /** For programs: `invalid_type`, `unrecognized_keys`… */
  readonly type: string
}

/** At most this many are reported: a hostile body can hold thousands. */
const MAX = 32
/** Zod names all keys that it does not know, however many and long. */
const MAX_CHARACTERS = 500

export function listFieldErrors(
  error: ZodError,
  where: 'body' | 'query' = 'body',
): readonly FieldError[] {
  return error.issues.slice(0, MAX).map(({ path, message, code }) => ({
    loc: [where, ...path.map((part) => (typeof part === 'symbol' ? String(part) : part))],
    msg: message.slice(0, MAX_CHARACTERS),
    type: code,
  }))
}

export function parseFields<Value>(
  schema: ZodType<Value>,
  body: unknown,
): Result<Value, readonly FieldError[]> {
  const parsed = schema.safeParse(body)
  return parsed.success ? accept(parsed.data) : refuse(listFieldErrors(parsed.error))
}

export const fieldError = (
  path: readonly (string | number)[],
  msg: string,
  type = 'custom',
): FieldError => ({ loc: ['body', ...path], msg, type })

/** Renders field errors in one line for pages and logs: `labels.3: too long; boot_mode: …`. */
export const renderFieldErrors = (errors: readonly FieldError[]): string =>
  errors.map(({ loc, msg }) => [loc.slice(1).join('.'), msg].filter(Boolean).join(': ')).join('; ')
