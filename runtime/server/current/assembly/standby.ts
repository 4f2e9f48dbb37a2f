/** Current line: opens the server while it does not lead, on the copy of the fleet that its state holds. */
import { createOthers } from '#fleet/boot/rules/boot-decision.ts'
import { renderBoot } from '#fleet/boot/rules/boot-script.ts'
import type { ClusterTimes } from '#fleet/cluster/rules/lease.ts'
import { NOWHERE, readMembership } from '#fleet/state/membership.ts'
import type { Database } from '#fleet/state/database.ts'
import { readText } from '#fleet/state/sqlite.ts'
import { parseJson } from '#kit/foundation/json-reader.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { findOwnUrl, openStandingBy } from '#server/app/standing-by.ts'
import { exitOf } from '#server/routes/contact.ts'
import type { Contact } from '#server/routes/transition.ts'
import { mayBootDisk, toDisk } from '#server/current/machines/rules/boot.ts'
import { parseRecord } from '#server/current/machines/rules/machine.ts'
import { type LineConfig, listenSettingsOf } from './configuration.ts'
import { openBootFiles } from './netboot.ts'

interface LineStandbyDependencies {
  readonly environment: ProcessEnvironment
  readonly config: LineConfig
  readonly log: ServerLog
  readonly release: string
  readonly database: Database
  readonly memberKey: string
  readonly times: ClusterTimes
}

/** Rejects with a Fault if it cannot listen. */
export async function openStandby({ database, ...parts }: LineStandbyDependencies) {
  const { config } = parts
  const { server, database: shared } = config.current()
  await using opened = new AsyncDisposableStack()
  const opening = opened.use(await openBootFiles(parts))
  const standing = await openStandingBy({
    ...parts,
    bootFiles: opening.bootFiles,
    keep: () => config.current().retention.boot_sets,
    listenSettings: listenSettingsOf(config),
    otherServers: createOthers(config.derive(({ pxe }) => pxe.servers)),
    findDiskScript: (mac, contact) => findDiskScript(database, mac, contact),
  })
  const isTls = server.tls_cert !== ''
  const { port } = standing.door.listening
  const own = { database: shared.url, host: server.host, port, isTls }
  const url = shared.own_url || (await findOwnUrl(own))
  opened.use(standing)
  const held = opened.move()
  return {
    ...standing,
    url,
    /** Opened once, for the server when it leads, too. */
    bootFiles: opening,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

/** Null: unknown here, so the machine goes on waiting. */
function findDiskScript({ sql }: Database, mac: Mac, contact: Contact): string | null {
  if ((readMembership(sql)?.seq ?? NOWHERE) === NOWHERE) return null
  const row = sql.get('SELECT record FROM machines WHERE mac = ?', mac)
  if (row === null) return exitOf(contact)
  const machine = parseRecord(parseJson(readText(row, 'record')))
  if (machine === null || !mayBootDisk(machine)) return null
  const reason = 'No server leads this fleet, and the machine had no order.'
  const header = { mac, mode: machine.boot_mode, rule: 'no-leader', reason }
  return renderBoot(toDisk(machine), header, contact.loader ?? null)
}
