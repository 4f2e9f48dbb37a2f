/** Adds cookies to an answer, whatever its status is. */
import type { H3Event } from 'h3'

/** Several may be added. */
export function addCookie({ res }: H3Event, cookie: string): void {
  res.headers.append('set-cookie', cookie)
  // Answers that refuse something have headers of their own.
  res.errHeaders.append('set-cookie', cookie)
}
