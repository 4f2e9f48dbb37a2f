/** Validates a request: the machine or file in its path, and its body by a schema that the API document shares. */
import { getRouterParam, type H3Event } from 'h3'
import * as z from 'zod'
import { listFieldErrors } from '#kit/foundation/field-error.ts'
import { isBareFileName } from '#kit/foundation/file-name.ts'
import { readPairs, type Mac } from '#kit/net/rules/mac.ts'
import { refuse, refuseFields } from './faults.ts'

/** Throws a 422 that names each wrong field. */
export function checked<Value>(
  schema: z.ZodType<Value>,
  body: unknown,
  where: 'body' | 'query' = 'body',
): Value {
  const parsed = schema.safeParse(body)
  if (!parsed.success) throw refuseFields(listFieldErrors(parsed.error, where))
  return parsed.data
}

/** A time in a query string, as the database spells it. */
export const QueryTimeSchema = z.iso
  .datetime({ offset: true })
  .transform((time) => new Date(time).toISOString())

/**
 * `input` for what is sent (a default makes a field optional), `output` for what is answered. That
 * is worked out where the document becomes text, as most programs never show it; `more` is added to
 * it.
 */
export function renderSchema(
  schema: z.ZodType,
  io: 'input' | 'output',
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return {
    ...more,
    toJSON() {
      // The dialect is said once, by the document.
      const { $schema: _, ...rest } = z.toJSONSchema(schema, { io })
      return { ...rest, ...more }
    },
  }
}

/** Throws a 400 for anything that is not a MAC address. */
export function readMac(event: H3Event): Mac {
  const mac = readPairs(readAddress(event))
  if (mac === null)
    throw refuse(400, 'not a MAC address', { hint: 'Six pairs of hexadecimal digits.' })
  return mac
}

export const readAddress = (event: H3Event): string =>
  getRouterParam(event, 'mac', { decode: true }) ?? ''

/** Null: none, or one that is longer or stranger than any of ours. */
export function readBearer(event: H3Event): string | null {
  const header = event.req.headers.get('authorization')
  return header === null ? null : (/^Bearer +([\w.~+/=-]{1,200})$/i.exec(header)?.[1] ?? null)
}

/** Throws a 400 for anything but a bare name. */
export function readFileName(event: H3Event): string {
  const name = getRouterParam(event, 'name', { decode: true }) ?? ''
  if (isBareFileName(name)) return name
  throw refuse(400, 'not a file name', { hint: 'A bare name, without a dot at its start.' })
}

/** Validates the path that a form returns to: one below `/ui`, or the start page. */
const MAX = 2048

/** `wanted` only below `/ui`: anything else could lead away from here. */
export function localPath(wanted: string | null | undefined, otherwise = '/ui/dashboard'): string {
  if (wanted === null || wanted === undefined || wanted.length > MAX) return otherwise
  const url = URL.parse(wanted, 'http://localhost')
  if (!wanted.startsWith('/') || url === null || url.origin !== 'http://localhost') return otherwise
  const isOurs = url.pathname === '/ui' || url.pathname.startsWith('/ui/')
  return isOurs ? `${url.pathname}${url.search}${url.hash}` : otherwise
}
