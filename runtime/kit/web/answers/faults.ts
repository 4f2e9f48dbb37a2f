/** Maps faults and refusals to HTTP responses: JSON, or a page under /ui. */
import { HTTPError, type H3Event } from 'h3'
import { STATUS_CODES } from 'node:http'
import { renderFieldErrors, type FieldError } from '#kit/foundation/field-error.ts'
import { Fault, renderError, type FaultCode, isFull } from '#kit/foundation/fault.ts'
import { after, type MaybePromise } from '#kit/foundation/maybe-promise.ts'
import { answer, type Answer } from './answers.ts'
import { callerOf, personOf, type ErrorView, type LogSink } from './caller.ts'
import { permits, scopesOf } from './rules/rights.ts'

const STATUS = {
  misuse: 400,
  'input-missing': 404,
  'input-invalid': 400,
  'plan-refused': 409,
  'source-broken': 502,
  'image-broken': 422,
  'digest-mismatch': 422,
  'write-failed': 500,
  'verify-failed': 500,
  'target-raced': 409,
  'provision-failed': 500,
  'root-required': 500,
  'tool-missing': 500,
  'tool-failed': 500,
  cancelled: 503,
  'not-found': 404,
  'login-required': 401,
  forbidden: 403,
  conflict: 409,
  stale: 412,
  'too-large': 413,
  busy: 503,
  'no-leader': 503,
  'storage-full': 507,
  'upstream-failed': 502,
} as const satisfies Record<FaultCode, number>

interface RefusalOptions {
  /** How to fix it, shown on pages. */
  readonly hint?: string
  /** Instead of one sentence: what is wrong with which field. */
  readonly fields?: readonly FieldError[]
  readonly headers?: Readonly<Record<string, string>>
}

interface RefusalText {
  readonly detail: string | readonly FieldError[]
  readonly hint: string | null
}

/** An expected refusal, answered as `{"detail": …}`. */
export const refuse = (status: number, detail: string, options: RefusalOptions = {}) =>
  new HTTPError<RefusalText>({
    status,
    message: detail,
    data: { detail: options.fields ?? detail, hint: options.hint ?? null },
    headers: { ...options.headers },
  })

/** Programs get the list of fields, pages a sentence. */
export function refuseFields(fields: readonly FieldError[]) {
  const what = fields[0]?.loc[0] === 'query' ? 'address' : 'form'
  return refuse(422, `the ${what} is invalid: ${renderFieldErrors(fields)}`, { fields })
}

export interface FailureContext {
  readonly log: LogSink
  renderError(view: ErrorView, event: H3Event): MaybePromise<string>
}

/** Logs our own faults, and hides what is not the caller's business. */
export function answerFailure(
  error: HTTPError,
  event: H3Event,
  failures: FailureContext,
): MaybePromise<Answer> {
  const { status, text, headers } = judge(error, event, failures)
  const finish = (body: string, type: string) =>
    answer(status, { ...headers, 'content-type': type }, body)
  return wantsPage(event)
    ? after(renderPage(event, status, text, failures, error.message), (body) =>
        finish(body, 'text/html; charset=utf-8'),
      )
    : finish(JSON.stringify({ detail: text.detail }), 'application/json')
}

const renderPage = (
  event: H3Event,
  status: number,
  { detail, hint }: RefusalText,
  failures: FailureContext,
  message: string,
) =>
  failures.renderError(
    {
      status,
      title: STATUS_CODES[status] ?? 'Error',
      detail: typeof detail === 'string' ? detail : message,
      hint,
      ...describeVisitor(event),
    },
    event,
  )

function describeVisitor(event: H3Event): Pick<ErrorView, 'loggedIn' | 'seesAll'> {
  const caller = callerOf(event)
  const loggedIn = caller.kind === 'session'
  const person = personOf(caller)
  const isAdministrator = person === null || permits(scopesOf(person.role), 'admin')
  return { loggedIn, seesAll: loggedIn && isAdministrator }
}

/** On a page, or where a browser goes to an address of the API. */
export const wantsPage = (event: H3Event): boolean =>
  isPage(event) ||
  ((event.req.method === 'GET' || event.req.method === 'HEAD') &&
    event.req.headers.get('accept')?.includes('text/html') === true)

/** A page, rather than a program's JSON. */
export const isPage = (event: H3Event): boolean =>
  event.url.pathname === '/ui' || event.url.pathname.startsWith('/ui/')

interface FaultAnswer {
  readonly status: number
  readonly text: RefusalText
  readonly headers?: Readonly<Record<string, string>>
}

function judge(error: HTTPError, event: H3Event, { log }: FailureContext): FaultAnswer {
  const thrown = error.cause
  if (isRefusalText(error.data)) {
    return { status: error.status, text: error.data, headers: headersOf(error) }
  }
  const where = `${event.req.method} ${event.url.pathname}`
  // Who is not logged in and has no token learns nothing of this host's files.
  const isKnown = callerOf(event).kind !== 'anonymous'
  if (thrown instanceof Fault) return judgeFault(thrown, where, log, isKnown)
  if (isFull(thrown)) return tell(507, FULL, 'Free space on that disk first.')
  if (error.unhandled !== true && error.status < 500) {
    // The framework's own: a malformed URL, a body over its limit. Its words hold what was sent.
    return tell(error.status, STATUS_CODES[error.status] ?? 'Bad Request')
  }
  log.error(`${where}: ${(thrown instanceof Error && thrown.stack) || renderError(thrown)}`)
  return tell(500, 'Internal Server Error')
}

function judgeFault(fault: Fault, where: string, log: LogSink, isKnown: boolean): FaultAnswer {
  // What is wrong with our database is no fault of the request.
  const status = isDatabaseFault(fault) ? Math.max(500, STATUS[fault.code]) : STATUS[fault.code]
  // That a limit was reached is an answer, however often it is given.
  const isLimit = (fault.code === 'busy' && !isDatabaseFault(fault)) || fault.code === 'no-leader'
  if (status >= 500 && !isLimit) log.error(`${where}: ${fault.message}`)
  const general = isKnown ? null : describeOwnFault(fault)
  const answered =
    general === null ? tell(status, fault.message, fault.hint) : tell(status, general)
  return fault.code === 'no-leader' ? { ...answered, headers: SOON } : answered
}

/** Until another server leads, or the database answers again. */
const SOON = { 'retry-after': '2' }

const FULL = 'the disk of the server is full'

/** General words for a fault of this host, whose own words may name its files; null for any other. */
function describeOwnFault(fault: Fault): string | null {
  if (fault.code === 'storage-full') return FULL
  if (fault.code === 'no-leader') return 'no server leads this fleet at the moment'
  if (isDatabaseFault(fault)) return 'the database of the server cannot be used at the moment'
  return fault.code === 'write-failed' ? 'the server cannot write to its disk' : null
}

/** SQLite's own errors alone carry such a number. */
const isDatabaseFault = ({ cause }: Fault) => cause instanceof Error && 'errcode' in cause

const tell = (status: number, detail: string, hint: string | null = null): FaultAnswer => ({
  status,
  text: { detail, hint },
})

const headersOf = ({ headers }: HTTPError) => Object.fromEntries(headers?.entries() ?? [])

function isRefusalText(data: unknown): data is RefusalText {
  return typeof data === 'object' && data !== null && 'detail' in data && 'hint' in data
}
