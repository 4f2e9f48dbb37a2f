/** `flasher-web import --from earlier`: takes over the machines of a server of the earlier line. */
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { printable } from '#kit/foundation/printable.ts'
import type { RunCommand } from '#kit/terminal/command/program.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { nameDisarmed, renderDisarmed } from '#fleet/backup/disarming.ts'
import { readEarlierState } from '#fleet/backup/earlier-state.ts'
import { createCatalog, createKeptCatalogs } from '#engine/catalog/catalogs.ts'
import { SYSTEM_EVENT } from '#fleet/state/event-rows.ts'
import { createLog } from '#kit/terminal/text/log.ts'
import { decideTerminalStyle } from '#kit/terminal/text/terminal-style.ts'
import { openVoice } from '#kit/terminal/text/voice.ts'
import { decideFolders } from '../assembly/configuration.ts'
import { COMMAND_LINE } from './rules/commands.ts'
import {
  listSetAside,
  parseEarlier,
  planImport,
  type EarlierMachine,
} from '#server/current/machines/rules/earlier-import.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { visitState, type Visit } from './visit.ts'

export const importEarlier: RunCommand<ProcessEnvironment> = async (environment, given) => {
  const [folder = ''] = given.positionals
  const isDry = given.switches.has('dry-run')
  const earlier = await readEarlierState(folder)
  const machines = earlier.records.map(parseEarlier).filter((each) => each !== null)
  await using visit = await visitState(environment, given)
  const catalog = await readCatalog(visit, environment)
  const settings = { images: catalog.entries, now: new Date().toISOString() }
  const plan = (machine: EarlierMachine, before: Machine | null) =>
    planImport(machine, before, settings)

  const { machines: fleet } = visit.state
  const planned = machines.map((machine) => plan(machine, fleet.peek(machine.mac)))
  const report = renderReport(folder, isDry, earlier, planned, catalog.error)
  if (!isDry) {
    await fleet.updateMany(
      machines.map((machine) => ({
        mac: machine.mac,
        // Another process may have changed it since.
        change: (before) => plan(machine, before).machine,
        hardware: null,
      })),
    )
    if (report.added > 0) await record(visit, folder, report)
  }
  if (given.switches.has('json')) {
    const document = { schema_version: '1', command: 'import', ...report }
    environment.stdout.write(`${JSON.stringify(document, null, 2)}\n`)
  } else tell(environment, report)
  return SUCCESS
}

type Report = ReturnType<typeof renderReport>

/** `catalogError`: why images may be unmatched; null: the catalog was fetched. */
function renderReport(
  folder: string,
  isDry: boolean,
  { records, entries, bootFiles }: Awaited<ReturnType<typeof readEarlierState>>,
  planned: readonly ReturnType<typeof planImport>[],
  catalogError: string | null,
) {
  const added = planned.filter(({ action }) => action === 'added').length
  return {
    from: folder,
    dry_run: isDry,
    added,
    kept: planned.length - added,
    unreadable: records.length - planned.length,
    disarmed: planned
      .filter(({ isDisarmed }) => isDisarmed)
      .map(({ machine: { mac, name } }) => ({ mac, name })),
    catalog_error: catalogError,
    machines: planned.map(({ action, machine: { mac, name, bty_image_ref }, left }) => ({
      mac,
      name,
      bty_image_ref,
      action,
      left,
    })),
    set_aside: listSetAside(entries, bootFiles),
  }
}

function tell({ stdout, env }: ProcessEnvironment, report: Report): void {
  const { log, success, warn } = openVoice(stdout, env)
  for (const { mac, name, action, left } of report.machines) {
    const known = action === 'kept' ? ' exists already and is kept' : ''
    log(`${mac}${name === null ? '' : ` (${printable(name)})`}${known}`)
    for (const sentence of left) log(`  not imported: ${sentence}`)
  }
  for (const { what, reason } of report.set_aside) log(`${what} not imported: ${reason}`)
  if (report.disarmed.length > 0) {
    warn(
      `Not flashed here until you set their mode: ${report.disarmed.map(nameDisarmed).join(', ')}`,
    )
  }
  if (report.unreadable > 0) warn(`${report.unreadable} machines could not be read`)
  if (report.catalog_error !== null) warn(`No images were matched: ${report.catalog_error}`)
  const { program } = COMMAND_LINE
  success(
    report.dry_run
      ? `${program} import, dry run: ${report.added} machines would be added, ${report.kept} kept; nothing was changed`
      : `${program} import: ${report.added} machines added (as flasher-inventory), ${report.kept} kept`,
  )
}

/** The catalog as it is now, else as last fetched. */
async function readCatalog({ config, state }: Visit, { env, stderr }: ProcessEnvironment) {
  const style = decideTerminalStyle(env, stderr.isTTY === true)
  const { note } = createLog({ program: COMMAND_LINE.program, stderr, style })
  await using catalog = await createCatalog({
    url: () => config.current().withcache.url || null,
    kept: createKeptCatalogs(decideFolders(config).catalog),
    now: () => new Date(),
    log: { warn: note },
    changes: state.changes,
    env,
  })
  return await catalog.refresh()
}

const record = ({ state }: Visit, folder: string, { added, disarmed }: Report) =>
  state.journal.record({
    ...SYSTEM_EVENT,
    kind: 'system.state.imported',
    actor: 'operator',
    summary:
      `${added} machines of the earlier line were imported from ${folder}. ${renderDisarmed(disarmed)}`.trim(),
    details: { folder, added, disarmed },
  })
