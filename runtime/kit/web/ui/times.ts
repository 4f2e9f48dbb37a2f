/** Times for people: relative, with the exact time on hover. */
import { html, NOTHING, type Html } from './html.ts'

export interface Clock {
  readonly now: Date
  /** An IANA name. */
  readonly zone: string
}

/** "3 min ago"; a dash for never. A script on the page keeps it up to date. */
export function renderTime(iso: string | null, clock: Clock, never = '–'): Html {
  if (iso === null) return html`<span class="dim">${never}</span>`
  const at = new Date(iso)
  if (Number.isNaN(at.getTime())) return NOTHING
  const exact = renderExact(at, clock.zone)
  return html`<time datetime="${iso}" title="${exact}">${renderAge(at, clock.now)}</time>`
}

/** `2026-11-21 07:04`, or `07:04` alone, exactly on hover. */
export function renderMinute(iso: string, { zone }: Clock, isHour = false): Html {
  const exact = renderExact(new Date(iso), zone)
  const className = isHour ? 'minute hour' : 'minute'
  return html`<time class="${className}" datetime="${iso}" title="${exact}"
    >${exact.slice(isHour ? 11 : 0, 16)}</time
  >`
}

/** Where the page's zone is UTC, a script shows that of the browser, with UTC on hover. */
export const renderMoment = (at: Date, zone: string): Html =>
  html`<time class="exact" datetime="${at.toISOString()}">${renderExact(at, zone)}</time>`

/** `2026-11-21 07:04:05 UTC`. */
export function renderExact(at: Date, zone: string): string {
  const text = formatter(zone).format(at)
  return `${text.replace(',', '')} ${zone}`
}

/**
 * `day` is `2026-11-22`. The result is an ISO 8601 time, `later` days after its beginning; null:
 * there is no such day.
 */
export function startOfDay(day: string, zone: string, later = 0): string | null {
  if (!/^\d{4}-\d\d-\d\d$/.test(day)) return null
  try {
    const date = Temporal.PlainDate.from(day, { overflow: 'reject' }).add({ days: later })
    return new Date(date.toZonedDateTime(zone).epochMilliseconds).toISOString()
  } catch {
    return null // The only way in which Temporal reports that there is no such day.
  }
}

/** `2026-11-22`. */
export const dayOf = ({ now, zone }: Clock, days = 0): string =>
  Temporal.Instant.fromEpochMilliseconds(now.getTime())
    .toZonedDateTimeISO(zone)
    .toPlainDate()
    .add({ days })
    .toString()

const formatters = new Map<string, Intl.DateTimeFormat>()

const formatter = (zone: string): Intl.DateTimeFormat =>
  formatters.getOrInsertComputed(
    zone,
    () =>
      new Intl.DateTimeFormat('sv-SE', { timeZone: zone, dateStyle: 'short', timeStyle: 'medium' }),
  )

const [MINUTE, HOUR, DAY] = [60, 3600, 86_400]

/** In the texts of `ages.js`, which updates them in the browser. */
export function renderAge(at: Date, now: Date): string {
  const seconds = Math.round((now.getTime() - at.getTime()) / 1000)
  if (Math.abs(seconds) < 10) return 'now'
  const span = renderSpan(Math.abs(seconds))
  return seconds < 0 ? `in ${span}` : `${span} ago`
}

/** `42 s`, `3 min`, `5 h`, `12 d`. */
export function renderSpan(seconds: number): string {
  if (seconds < MINUTE) return `${Math.floor(seconds)} s`
  if (seconds < HOUR) return `${Math.floor(seconds / MINUTE)} min`
  if (seconds < 2 * DAY) return `${Math.floor(seconds / HOUR)} h`
  return `${Math.floor(seconds / DAY)} d`
}
