/** The few shapes of answers that routes give. */
import { HTTPResponse } from 'h3'

type Headers = Readonly<Record<string, string>>

/** 204. */
export const nothing = (headers: Headers = {}) => new HTTPResponse(null, { status: 204, headers })

/** 303 to a local path. */
export const seeOther = (location: string, headers: Headers = {}) =>
  new HTTPResponse('', { status: 303, headers: { ...headers, location } })

export const text = (body: string, headers: Headers = {}) =>
  new HTTPResponse(body, {
    status: 200,
    headers: { 'content-type': 'text/plain; charset=utf-8', ...headers },
  })

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
