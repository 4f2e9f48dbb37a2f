/** Reads a name from one path segment of a request, decoded exactly once. */
import type { H3Event } from 'h3'
import { decodePart } from '#kit/net/rules/image-location.ts'

/**
 * Index 0 is the first. Decodes slashes too, which the framework keeps encoded. Null: missing or
 * wrongly encoded.
 */
export function readSegment(event: H3Event, index: number): string | null {
  const segment = URL.parse(event.req.url)?.pathname.split('/')[index + 1]
  return segment ? decodePart(segment) : null
}
