/** The services that a program assembles for its server. */
import type { LogSink, WebSettings } from '../../kit/web/answers/caller.ts'
import type { FlashSlot, MachineBase } from '../../engine/inventory/rules/machine.ts'
import type { BootFiles } from '../../fleet/boot/boot-files.ts'
import type { FollowedCatalog } from '../../engine/catalog/catalogs.ts'
import type { Feed } from '../../kit/host/feed.ts'
import type { Journal } from '../../fleet/state/journal.ts'
import type { Machines } from '../../fleet/state/machines.ts'
import type { Runs } from '../../fleet/run/runs.ts'
import type { Secret } from '../../kit/web/access/secret.ts'
import type { SignedOut } from '../../kit/web/access/signed-out.ts'
import type { Tokens } from '../../fleet/access/tokens.ts'
import type { ServerLine } from './line.ts'
import type { ServerViews } from './views.ts'

/** What the program assembles: real services in production, the same ones in tests. */
export interface ServerServices<M extends MachineBase = MachineBase> {
  readonly line: ServerLine<M>
  readonly views: ServerViews<M>
  readonly machines: Machines<M>
  readonly journal: Journal
  readonly runs: Runs
  readonly feed: Feed
  readonly catalog: FollowedCatalog
  readonly bootFiles: BootFiles
  readonly tokens: Tokens
  readonly secret: Secret
  readonly signedOut: SignedOut
  settings(): WebSettings
  checkPassword(given: string): Promise<boolean>
  /** Null: the password is the operating system's, and is changed there. */
  readonly setPassword: ((password: string) => Promise<void>) | null
  /** Notified of each decision on a machine's place among those that flash, before its record is stored. */
  onFlashSlot?(machine: M, slot: FlashSlot): void
  /** For whoever else takes the sessions: one was ended, with its cookie (`name=value`). */
  onLogout?(cookie: string): Promise<void>
  now(): Date
  /** Milliseconds of a clock that nobody sets; the process's own unless said. */
  elapsed?(): number
  readonly log: LogSink
  readonly version: string
}
