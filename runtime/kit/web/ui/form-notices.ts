/** Routes of pages and forms; why a form was refused is kept for the next page, so that no page shows text from an address as ours. */
import { randomBytes } from 'node:crypto'
import type { H3Event } from 'h3'
import { callerOf } from '../answers/caller.ts'
import { banner } from './elements.ts'
import type { Content } from './html.ts'
import type { MaybePromise } from '#kit/foundation/maybe-promise.ts'
import type { Answer } from '../answers/answers.ts'
import { LIMITS } from '../answers/limits.ts'
import type { Route } from '../answers/route.ts'
import type { PageScope } from '../answers/rules/rights.ts'

export interface Notice {
  /** Empty: nothing was refused, and the form comes back all the same. */
  readonly error: string
  /** Fields as they were typed, by name, so that the form comes back with them. */
  readonly typed: Readonly<Record<string, string>>
  /** Why each of several fields was refused, by name. */
  readonly errors: Readonly<Record<string, string>>
}

export type Notices = ReturnType<typeof createNotices>

/** Time enough to load the page again, and to come back to it. */
const KEPT_MS = 15 * 60_000
/** The most notices of all sessions; the oldest are forgotten first. */
const MAX = 200
/** Characters: of one error, of all that was typed into a form. */
const LONGEST = { error: 500, form: 64 * 1024 } as const

/** The fields that fit: a field that came back cut would be saved as if somebody had typed it so. */
const keepFields = (
  fields: Readonly<Record<string, string>>,
  most: number,
): Readonly<Record<string, string>> => {
  let left = most
  return Object.fromEntries(
    Object.entries(fields).filter(([, text]) => {
      const fits = text.length <= left
      if (fits) left -= text.length
      return fits
    }),
  )
}

/** Null: the form was not refused. */
export function messageOf(
  { site }: { readonly site: { readonly notices: Pick<Notices, 'read'> } },
  event: H3Event,
): Content {
  const notice = site.notices.read(event)
  return notice === null || notice.error === '' ? null : banner('failed', notice.error)
}

/** Each notice is for one session, and kept for 15 minutes. */
export function createNotices(now: () => Date) {
  const kept = new Map<string, Notice & { readonly session: string; readonly until: number }>()

  return {
    /** What the page's address carries as `notice`; it says nothing to anybody else, nor for long. */
    keep(
      event: H3Event,
      error: string,
      { typed = {}, errors = {} }: Partial<Pick<Notice, 'typed' | 'errors'>> = {},
    ): string {
      const id = randomBytes(9).toString('base64url')
      const session = sessionOf(event)
      if (session === null) return id
      kept.set(id, {
        error: error.slice(0, LONGEST.error),
        typed: keepFields(typed, LONGEST.form),
        errors: keepFields(errors, LONGEST.form),
        session,
        until: now().getTime() + KEPT_MS,
      })
      for (const oldest of [...kept.keys()].slice(0, -MAX)) kept.delete(oldest)
      return id
    },
    /** The notice that the address names; null: this session has none of that name, or it has expired. */
    read(event: H3Event): Notice | null {
      const found = kept.get(event.url.searchParams.get('notice') ?? '')
      if (found === undefined || found.session !== sessionOf(event)) return null
      return found.until > now().getTime() ? found : null
    },
  }
}

function sessionOf(event: H3Event): string | null {
  const caller = callerOf(event)
  return caller.kind === 'session' ? caller.id : null
}

type HandleRequest = (event: H3Event) => MaybePromise<Answer>
type HandleForm = (event: H3Event, form: URLSearchParams) => MaybePromise<Answer>

export type PageOptions = Pick<Route, 'reach'>

/** `most`: its limit in bytes, where it may be longer than usual. */
export type FormOptions = PageOptions & { readonly most?: number }

/** For an operator's session alone. */
export const pageRoute = (
  path: string,
  scope: PageScope,
  handle: HandleRequest,
  options?: PageOptions,
): Route => ({ method: 'GET', path, access: { page: scope }, handle, ...options })

/** Its body is not read. */
export const buttonRoute = (
  path: string,
  scope: PageScope,
  handle: HandleRequest,
  options?: PageOptions,
): Route => ({ method: 'POST', path, access: { page: scope }, handle, ...options })

export const formRoute = (
  path: string,
  scope: PageScope,
  handle: HandleForm,
  options?: FormOptions,
): Route => ({ method: 'POST', path, access: { page: scope }, takes: 'form', handle, ...options })

/** Files are taken as texts. */
export const uploadRoute = (
  path: string,
  scope: PageScope,
  handle: HandleForm,
  options: FormOptions & { readonly most: number },
): Route => ({
  method: 'POST',
  path,
  access: { page: scope },
  takes: 'form',
  takesFiles: true,
  handle,
  seconds: LIMITS.uploadSeconds,
  ...options,
})
