/** Builds the response from what a route returned: common headers, its length, and no body for HEAD. */
import type { H3Event } from 'h3'
import { FastResponse } from 'srvx'
import { streamOf, type Answer, type ByteStream } from './answers.ts'
import { commonHeaders, CONTENT_LENGTH, NOSNIFF } from './headers.ts'

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
