/** `Authorization: Bearer …`: tokens of programs, and of machines that the server booted. */
import type { H3Event } from 'h3'

/** Null: none, or one that is longer or stranger than any of ours. */
export function readBearer(event: H3Event): string | null {
  const header = event.req.headers.get('authorization')
  return header === null ? null : (/^Bearer +([\w.~+/=-]{1,200})$/i.exec(header)?.[1] ?? null)
}
