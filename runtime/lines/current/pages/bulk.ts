/** Many machines at once: first what would be done to each, then the deed, row by row. */
import type { H3Event, HTTPResponse } from 'h3'
import type { Route } from '../../../web/route.ts'
import type { Desk } from './desk.ts'

export function bulkPages(_desk: Omit<Desk, 'query'>): readonly Route[] {
  return []
}
