/** Current line: its machine server, assembled from the services, its rules, routes and pages. */
import type { H3 } from 'h3'
import { renderError } from '../../core/foundation/fault.ts'
import type { CatalogEntry, CatalogSnapshot } from '../../core/catalog/catalog.ts'
import { createAssets } from '../../services/host/assets.ts'
import { startBackupSchedule } from '../../services/backup/backup-schedule.ts'
import { endCacheSession } from '../../services/access/cache-logout.ts'
import { createCatalog, type Catalog } from '../../services/catalog/catalogs.ts'
import { watchSpace } from '../../services/state/disk-space.ts'
import { createKeptCatalogs } from '../../services/catalog/kept-catalogs.ts'
import type { Passwords } from '../../services/access/passwords.ts'
import { createSecret, deriveSecret } from '../../services/access/secret.ts'
import { createSignedOut } from '../../services/access/signed-out.ts'
import type { ServerLine } from '../../web/fleet/line.ts'
import type { Metrics } from '../../web/http/metrics.ts'
import { createServer } from '../../web/fleet/server.ts'
import type { ServerLog } from '../../terminal/text/server-log.ts'
import type { ProcessEnvironment } from './assembly/process-environment.ts'
import { openBackups } from './assembly/archives.ts'
import { decideFolders, type LineConfig } from './assembly/configuration.ts'
import { openNetboot } from './assembly/netboot.ts'
import { startPinner } from './assembly/pins.ts'
import { createFlashGate, type FlashGate } from './flash-gate.ts'
import { createMachineLine, gatherSurroundings } from './machine-line.ts'
import { createPages } from './pages/site-pages.ts'
import { backupRoutes } from './routes/backups.ts'
import { cacheRoutes } from './routes/cache.ts'
import { imageRoutes } from './routes/images.ts'
import { releaseRoutes } from './routes/releases.ts'
import type { Machine } from './rules/machine.ts'
import type { State } from './assembly/state.ts'
import { toWebSettings } from './assembly/web-settings.ts'

interface MachineServerDependencies {
  readonly environment: ProcessEnvironment
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly release: string
  readonly passwords: Passwords
  /** The cache service that was started beside the server, for when no other is set. */
  readonly cacheBeside: string | null
}

interface MachineServer extends AsyncDisposable {
  readonly app: H3
  /** So that their connections can be closed. */
  endChannels(): void
}

/** Waits for no other machine: the catalog is what was kept until the cache service has answered. */
export async function createMachineServer(
  parts: MachineServerDependencies,
): Promise<MachineServer> {
  const { environment, config, state, log, release, passwords, cacheBeside } = parts
  const folders = decideFolders(config)
  const settings = () => config.current()
  const secret = await createSecret({
    path: folders.secret,
    configured: settings().server.session_secret,
  })
  const catalog = await createCatalog({
    url: () => settings().withcache.url || cacheBeside,
    kept: createKeptCatalogs(folders.catalog),
    now,
    log,
    feed: state.feed,
    env: environment.env,
  })
  const netboot = await openNetboot({
    config,
    state,
    catalog,
    hasCache: () => settings().withcache.url !== '' || cacheBeside !== null,
    env: environment.env,
    log,
    now,
  })
  const { bootFiles } = netboot
  const pinner = startPinner({ config, state, secret, cacheBeside, env: environment.env, log })
  const gate = createFlashGate({
    find: (mac) => state.machines.peek(mac),
    settings: () => settings().pxe,
    fleet: await state.machines.list(),
  })
  const machineParts = {
    gate,
    findImage: createFinder(catalog),
    sets: () => bootFiles.active(),
    settings: () => settings().pxe,
    bootKey: deriveSecret(secret, 'boot tokens'),
  }
  const backups = await openBackups(config, state, release)
  const schedule = startBackupSchedule({
    backups,
    store: state.store,
    settings: () => settings().backup,
  })
  const spaceWatch = watchSpace({
    path: folders.stateDir,
    journal: state.journal,
    warnBelow: () => settings().retention.warn_free_bytes,
    onLow: (message) => log.warn(message),
  })
  const pages = createPages({
    runs: state.runs,
    version: release,
    assets: await createAssets(),
    services: { config, store: state.store, backups, netboot },
    images: () => catalog.snapshot().entries,
    gather: (on) => gatherSurroundings(machineParts, on),
    zone: () => settings().display.timezone,
    queue: () => countQueue(gate, settings().pxe.max_flashes),
    now,
  })
  const line: ServerLine<Machine> = {
    ...createMachineLine(machineParts),
    ...pages,
    checkPassword: (given) => passwords.check(given),
  }
  const server = createServer({
    ...state,
    line,
    routes(site) {
      measureLine(site.metrics, gate)
      return [
        ...imageRoutes(site),
        ...cacheRoutes(site),
        ...releaseRoutes(site, {
          releases: netboot.releases,
          tag: () => settings().boot.release_tag,
        }),
        ...backupRoutes(site, { backups, place: () => settings().backup.driver }),
        ...pages.routes(site),
      ]
    },
    catalog,
    bootFiles,
    secret,
    signedOut: createSignedOut({
      path: folders.signedOut,
      now,
      log,
      onDamage: (message) => noteLogouts(state, log, message),
    }),
    settings: () => toWebSettings(settings()),
    onLogout: (cookie) =>
      endCacheSession({ url: settings().withcache.url, cookie, env: environment.env, log }),
    now,
    log,
    version: release,
  })
  return {
    app: server.app,
    endChannels: () => server.close(),
    async [Symbol.asyncDispose]() {
      server.close()
      await pinner[Symbol.asyncDispose]()
      spaceWatch[Symbol.dispose]()
      schedule[Symbol.dispose]()
      await backups[Symbol.asyncDispose]()
      await netboot[Symbol.asyncDispose]()
      await catalog[Symbol.asyncDispose]()
    },
  }
}

const now = () => new Date()

/** Puts on record that the list of logged-out sessions is damaged. */
function noteLogouts({ journal }: State, log: ServerLog, summary: string): void {
  const note = {
    kind: 'auth.logouts.lost',
    subject_kind: 'auth',
    subject_id: null,
    actor: 'system',
    source_ip: null,
    summary,
    details: null,
  } as const
  journal.record(note).catch((thrown: unknown) => {
    log.warn(`the event could not be recorded: ${renderError(thrown)}`)
  })
}

/** What `GET /metrics` says of the line. */
function measureLine(metrics: Metrics, gate: FlashGate): void {
  metrics.gauge('flasher_flash_line', async () =>
    Object.entries(gate.count(now().toISOString())).map(([state, value]) => ({
      labels: { state },
      value,
    })),
  )
}

const countQueue = (gate: FlashGate, most: number) =>
  most === 0 ? null : { most, ...gate.count(now().toISOString()) }

/** By `ref`, without a walk through the catalog at each contact. */
function createFinder(catalog: Catalog): (ref: string) => CatalogEntry | null {
  let of: CatalogSnapshot | null = null
  let byRef = new Map<string, CatalogEntry>()
  return (ref) => {
    const present = catalog.snapshot()
    if (present !== of) {
      byRef = new Map(present.entries.map((entry) => [entry.ref, entry]))
      of = present
    }
    return byRef.get(ref) ?? null
  }
}
