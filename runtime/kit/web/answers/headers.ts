/** The headers that every response carries. */

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

export function commonHeaders(type: string | null | undefined) {
  if (type?.startsWith('text/html') === true) return PAGE_HEADERS
  return type?.startsWith('text/javascript') === true ? SCRIPT_HEADERS : DATA_HEADERS
}
