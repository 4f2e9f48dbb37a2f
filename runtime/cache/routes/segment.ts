/** Reads a name from one path segment of a request, decoded exactly once. */
import type { H3Event } from 'h3'
import { decodePart } from '../../kit/net/rules/image-location.ts'

/**
 * The part of the path at `index` (0 is the first), decoded once, slashes too: the framework keeps
 * those encoded. Null where it is missing or no encoding of anything.
 */
export function readSegment(event: H3Event, index: number): string | null {
  const segment = URL.parse(event.req.url)?.pathname.split('/')[index + 1]
  return segment ? decodePart(segment) : null
}
