/** The servers of both lines, for the rows that both specifications have in the same words. */
import type { Route } from '#kit/web/answers/route.ts'
import { createEarlierServer } from '../server/earlier-server.ts'
import { createTestServer } from '../server/server.ts'

/** What the rows need of a server, whichever line it serves. */
export interface LineServer extends AsyncDisposable {
  readonly routes: readonly Route[]
  readonly log: readonly string[]
  readonly machines: { count(): Promise<number> }
  request(path: string, init?: RequestInit): Promise<Response>
  operator(): Promise<(path: string, init?: RequestInit) => Promise<Response>>
  putBootFile(name: string, bytes: string): Promise<void>
}

interface LineOptions {
  readonly now?: () => Date
}

interface Line {
  readonly name: string
  create(options?: LineOptions): Promise<LineServer>
  /** A valid body of PUT, and one that is refused. */
  readonly upsert: Readonly<Record<string, unknown>>
  readonly wrong: Readonly<Record<string, unknown>>
}

export const LINES: readonly Line[] = [
  {
    name: 'current',
    create: createTestServer,
    upsert: { boot_mode: 'flasher-tui' },
    wrong: { boot_mode: 'tui' },
  },
  {
    name: 'earlier',
    create: createEarlierServer,
    upsert: { boot_policy: 'tui' },
    wrong: { boot_policy: 'flasher-tui' },
  },
]
