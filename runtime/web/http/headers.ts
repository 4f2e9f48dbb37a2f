/** The headers that every answer carries, whatever it is. */
import type { H3Event } from 'h3'

const PAGE_POLICY = [
  "default-src 'self'",
  "img-src 'self' data:",
  "object-src 'none'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join('; ')
const DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"

export const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const

/** Marks an answer as one person's: no cache may keep it. */
export function keepPrivate(event: H3Event): void {
  event.context['isPrivate'] = true
}

/** Called for each response, errors too. */
export function addHeaders(response: Response, event: H3Event): void {
  // Machines' own requests: they know of no pages, and their answers bring what they need.
  if (event.url.pathname.startsWith('/pxe')) return
  const { headers } = response
  for (const [name, value] of Object.entries(NOSNIFF)) headers.set(name, value)
  const isHtml = headers.get('content-type')?.startsWith('text/html') ?? false
  headers.set('content-security-policy', isHtml ? PAGE_POLICY : DATA_POLICY)
  headers.set('referrer-policy', 'same-origin')
  if (isHtml) {
    headers.set('cross-origin-opener-policy', 'same-origin')
    headers.set('x-frame-options', 'DENY')
  }
  if (event.context['isPrivate'] === true && !headers.has('cache-control')) {
    headers.set('cache-control', 'no-store')
  }
}
