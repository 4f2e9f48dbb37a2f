/** The few shapes of answers that routes give. */
import { HTTPResponse } from 'h3'
import { FastResponse } from 'srvx'
import { NOSNIFF } from './headers.ts'

type Headers = Readonly<Record<string, string>>

/** 204. */
export const nothing = () => new FastResponse(null, { status: 204, headers: { ...NOSNIFF } })

/** 303 to a local path. */
export const seeOther = (location: string, headers: Headers = {}) =>
  new HTTPResponse('', { status: 303, headers: { ...headers, location } })

/** Its headers stay a plain object where nobody changes them: what machines get costs half as much. */
export const text = (body: string, headers: Headers = {}) =>
  new FastResponse(body, {
    status: 200,
    headers: {
      ...NOSNIFF,
      'content-type': 'text/plain; charset=utf-8',
      // Also for HEAD, where the body is gone by the time that its length is asked for.
      'content-length': String(Buffer.byteLength(body)),
      ...headers,
    },
  })

/** JSON for machines, who keep no session that the answer could renew. */
export const plainJson = (value: unknown) =>
  text(JSON.stringify(value), { 'content-type': 'application/json' })

export const page = (body: string, status = 200, headers: Headers = {}) =>
  new HTTPResponse(body, {
    status,
    headers: { 'content-type': 'text/html; charset=utf-8', ...headers },
  })

export const json = (value: unknown, status = 200, headers: Headers = {}) =>
  new HTTPResponse(JSON.stringify(value), {
    status,
    headers: { 'content-type': 'application/json', ...headers },
  })

/** Pieces as they are made, taken as fast as the caller reads. */
export function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await iterator.next()
      if (done === true) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await iterator.return?.()
    },
  })
}
