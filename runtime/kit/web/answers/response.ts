/** Builds the response from what a route returned: common headers, its length, and no body for HEAD. */
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx'
import { streamOf, type Answer, type ByteStream } from './answers.ts'

/** A response as the entrance sends it itself, in one write or part by part. */
interface WholeResponse {
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: Exclude<Answer['body'], ReadableStream>
}

const WHOLE = Symbol('whole')

/** Null for a web stream, and for a response to which the framework has added headers. */
export const readWhole = (response: Response | { readonly [WHOLE]: WholeResponse }) =>
  WHOLE in response ? response[WHOLE] : null

const NO_STORE = { 'cache-control': 'no-store' }

export function renderResponse(given: Answer, event: H3Event): Response {
  const { status, body } = given
  const headers = headersOf(given, event)
  const isHead = event.req.method === 'HEAD'
  if (body instanceof ReadableStream) {
    // Cancelled, so that its producer stops: nobody reads it.
    if (isHead) body.cancel().catch(() => {})
    return new FastResponse(isHead ? null : body, { status, headers })
  }
  // Also for HEAD: boot loaders ask for it.
  if (typeof body === 'string' || body instanceof Uint8Array)
    headers[CONTENT_LENGTH] ??= String(Buffer.byteLength(body))
  const whole: WholeResponse = { status, headers, body: isHead ? null : body }
  const web = typeof whole.body === 'function' ? streamOf(copyParts(whole.body)) : whole.body
  return Object.assign(new FastResponse(web, whole), { [WHOLE]: whole })
}

const headersOf = ({ headers: own }: Answer, event: H3Event): Record<string, string> => ({
  ...(event.context.isPrivate === true && NO_STORE),
  ...own,
  // Machines know of no pages: their scripts and plans bring what they need.
  ...(event.url.pathname.startsWith('/pxe') ? NOSNIFF : commonHeaders(own['content-type'])),
})

/** For requests within the process, which may keep what they read. */
async function* copyParts(parts: ByteStream): AsyncGenerator<Uint8Array> {
  for await (const part of parts(new AbortController().signal)) yield part.slice()
}

// The headers that every response carries.

const PAGE_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')

/** GRUB and shim compare this name byte by byte: without it they take a file for an empty or a broken one. */
export const CONTENT_LENGTH = 'Content-Length'

export const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const

const DATA_HEADERS = {
  ...NOSNIFF,
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
  'referrer-policy': 'same-origin',
} as const
/** A worker of ours follows events from here. */
const SCRIPT_HEADERS = {
  ...DATA_HEADERS,
  'content-security-policy': "default-src 'none'; connect-src 'self'; frame-ancestors 'none'",
} as const
const PAGE_HEADERS = {
  ...DATA_HEADERS,
  'content-security-policy': PAGE_POLICY,
  'cross-origin-opener-policy': 'same-origin',
  'x-frame-options': 'DENY',
} as const

function commonHeaders(type: string | null | undefined) {
  if (type?.startsWith('text/html') === true) return PAGE_HEADERS
  return type?.startsWith('text/javascript') === true ? SCRIPT_HEADERS : DATA_HEADERS
}

/** Several may be added. */
export function addCookie({ res }: H3Event, cookie: string): void {
  res.headers.append('set-cookie', cookie)
  // Answers that refuse something have headers of their own.
  res.errHeaders.append('set-cookie', cookie)
}
