/** Current line: its machine server, assembled from the services, its rules, routes and pages. */
import { createMisfitFinder } from '#engine/bootable/misfit-finder.ts'
import { proposeSource, listReleaseBases } from '#fleet/boot/rules/release.ts'
import { listLiveFolders, readRepository } from '#kit/host/package-manifest.ts'
import { UPLOAD_KEY } from '#engine/capture/rules/order.ts'
import { IMAGER_LIST } from '#appliance/assets.ts'
import { createAssets, type Assets } from '#kit/web/answers/assets.ts'
import { startBackupSchedule } from '#fleet/backup/backups.ts'
import { endCacheSession } from '#fleet/access/owner-rows.ts'
import type { ListedFolder } from '#appliance/imager-list.ts'
import {
  createCatalog,
  type FollowedCatalog,
  createKeptCatalogs,
} from '#engine/catalog/catalogs.ts'
import { type Origins, createOrigins } from '#engine/catalog/origins.ts'
import { createBootStamps } from '#fleet/run/running-runs.ts'
import { createOthers } from '#fleet/boot/rules/boot-decision.ts'
import type { Passwords } from '#fleet/access/passwords.ts'
import { deriveSecret, type Secret } from '#kit/web/access/secret.ts'
import { type Clock, HOST_CLOCK, openMachineServer } from '#server/app/machine-server.ts'
import type { ServerLine } from '#server/routes/line.ts'
import type { Site } from '#server/routes/site.ts'
import type { Metrics } from '#kit/web/http/metrics.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import type { ProcessEnvironment, StartedProxy } from '#kit/program/process-environment.ts'
import { openBackups, type State } from './assembly/state.ts'
import { decideFolders, type LineConfig, saveSettings } from './assembly/configuration.ts'
import { openNetboot, type OpenedBootFiles } from './assembly/netboot.ts'
import { openProxy } from './assembly/proxy.ts'
import { openNotify, openProviders } from './assembly/notify.ts'
import { openPower, openProofs } from './power/power.ts'
import { findCache, startPinner } from './images/pins.ts'
import { createSeenServices, type SeenServices } from './assembly/seen-services.ts'
import { scopePower } from '#server/power/scoped-power.ts'
import {
  createOrderClock,
  startOrderExpiry,
  createFlashGate,
  type FlashGate,
} from './machines/flash-gate.ts'
import {
  createFinder,
  createMachineLine,
  gatherSurroundings,
  type LineDependencies,
} from './machine-line.ts'
import type { createLinePages } from './line-pages.ts'
import type { Standing } from '#fleet/access/accounts.ts'
import {
  startBatchEnds,
  createBatchKeeper,
  type BatchKeeper,
  type SeenMachines,
  actOnBatch,
} from './batches/keeper/batch-keeper.ts'
import { machineTableRoutes, imageRoutes } from './images/catalog-routes.ts'
import { viewMachine } from './view/machine-view.ts'
import type { ChangedLine } from './machines/rules/machine-file.ts'
import { createFilePreviews } from '#fleet/machine/undoable-edits.ts'
import { batchRoutes } from './batches/batch-routes.ts'
import { backupRoutes } from './backups/backup-routes.ts'
import { createWaitingCaptures } from './captures/waiting-captures.ts'
import { createChannelResource } from './channels/channels.ts'
import { firstBootRoutes } from './first-boot/template-routes.ts'
import { createEntryFinder, onceRoutes } from './once/once-routes.ts'
import { createEntryFiles, type EntryFiles } from '#fleet/once/entry-files.ts'
import { proofRoutes } from './runs/proof.ts'
import { powerRoutes } from './power/power-routes.ts'
import { powerSettingRoutes } from './power/power-settings.ts'
import { releaseRoutes } from './netboot/releases.ts'
import { runRemovalRoutes } from './runs/run-routes.ts'
import { PROVIDER_SWITCH, type SetProvider } from '#server/openid/provider-login.ts'
import type { Machine } from './machines/rules/machine.ts'
import { SCHEMAS } from './machines/rules/api-schema.ts'
import { findNameOwner } from './captures/rules/capture-owner.ts'
import { getRouterParam, type H3Event } from 'h3'
import { parseMac } from '#kit/net/rules/mac.ts'
import { seeOther, nothing } from '#kit/web/answers/answers.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import type { Route } from '#kit/web/answers/route.ts'
import { machinePath } from '#server/pages/machines/machines-list.ts'
import type { Environment } from '#kit/host/shell.ts'
import { readS3Access } from '#kit/net/s3/s3-client.ts'
import { act } from '#server/routes/bulk.ts'
import { checked, renderSchema } from '#kit/web/answers/checked.ts'
import { CaptureFieldsSchema } from './machines/rules/action.ts'
import type { Batch } from '#fleet/batch/rules/batch.ts'
import { SYSTEM } from '#fleet/state/journal.ts'
import { renderError } from '#kit/foundation/fault.ts'

interface MachineServerDependencies {
  readonly environment: ProcessEnvironment
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly release: string
  readonly passwords: Passwords
  /** Counts when no other cache is set. */
  readonly cacheBeside: string | null
  /** The DHCP proxy that was started with the server. */
  readonly proxyBeside?: StartedProxy | null
  /** Open already where this server stood by; null: it is opened here. */
  readonly bootFiles: OpenedBootFiles | null
  readonly options?: AssemblyOptions
}

/** For tests. */
export interface AssemblyOptions {
  readonly clock?: Clock
  readonly catalog?: FollowedCatalog
  readonly findOrigin?: Origins['find']
  readonly openProofs?: typeof openProofs
  readonly openPower?: typeof openPower
  readonly line?: Partial<ServerLine<Machine>>
  /** With it, the line's own pages are not even loaded. */
  readonly createPages?: typeof createLinePages
}

/** Does not wait for the cache service: until it answers, the catalog is the kept one. */
export async function createMachineServer(given: MachineServerDependencies) {
  const { config, state, log, release, passwords, options = {} } = given
  const { now, elapsed } = clockOf(given)
  const createPages = options.createPages ?? (await loadPages())
  const settings = () => config.current()
  const otherServers = createOthers(config.derive(({ pxe }) => pxe.servers))
  const parts = { config, state, log, release, folders: decideFolders(config), now }
  return await openMachineServer<Machine>(parts, async (secret, opened) => {
    const services = await openServices(given, secret, opened)
    const { catalog, netboot, backups, control, watch, notify } = services
    const { bootFiles } = netboot
    const { entries } = state
    const entryFiles = opened.use(
      createEntryFiles({
        bootFiles,
        entries: entries.list,
        changed: () => state.changes.announce({ topic: 'fetch', key: 'active' }),
      }),
    )
    await entryFiles.lookAtStart()
    const findEntry = createEntryFinder({ entries, entryFiles })
    const gate = openGate(given)
    const findOrigin = options.findOrigin ?? services.origins.find
    const misfits = createMisfitFinder({ env: given.environment.env, cacheUrl: cacheOf(given) })
    const refuseImage: LineDependencies['refuseImage'] = (image, machine) =>
      settings().images.require_bootable ? misfits.refuse(image, machine) : null
    const expectImages: LineDependencies['expectImages'] = (images) =>
      settings().images.require_bootable && misfits.expect(images)
    const recallMisfit: LineDependencies['recallMisfit'] = (image, machine) =>
      settings().images.require_bootable ? misfits.recall(image, machine) : null
    const fitting = { refuseImage, expectImages, recallMisfit }
    const sets = bootFiles.active
    const near = { ...gate, ...fitting, otherServers, findOrigin, findEntry, sets }
    const rules = createRules(given, secret, catalog, near)
    const openKeeper = (machines: SeenMachines) =>
      createBatchKeeper({ ...state, machines, findImage: rules.findImage, now })
    const keeper = openKeeper(state.machines)
    const served = { keeper, power: control, batches: state.batches, open: openKeeper }
    const seen = createSeenServices(served)
    const assets = await createAssets()
    const releaseSource = proposeSource(await readRepository())
    const { views, plugin: pages } = createPages({
      runs: state.runs,
      version: release,
      assets,
      services: {
        config,
        backups,
        netboot,
        proxy: services.proxy,
        ...listPageStores(state),
        entryFiles,
        releaseSource,
        keeper,
        power: control,
        notify,
        previews: createFilePreviews<ChangedLine>(),
        images: () => catalog.snapshot().entries,
        misfits,
        gather: (on) => gatherSurroundings(rules, on),
        cacheUrl: rules.cacheUrl,
        countWaiting: createWaitingCaptures({ ...findCache(given), env: given.environment.env }),
        queue: () => countQueue(gate, settings().pxe.max_flashes),
      },
      seen,
      now,
    })
    notify.start(views.match)
    return {
      line: { ...createMachineLine(rules), ...options.line },
      views,
      plugins: [
        pages,
        (base) => {
          measureQueue(base.metrics, gate)
          startWatches(base, opened, { rules, keeper, standing: given.state.standing })
          return {
            schemas: SCHEMAS,
            routes: (site) =>
              listRoutes(site, given, {
                ...services,
                assets,
                rules,
                entryFiles,
                seen: seen(site),
              }),
          }
        },
      ],
      catalog,
      bootFiles,
      checkPassword: passwords.check,
      setPassword: passwords.set,
      people: listPeopleServices(given, services.providers.current),
      elapsed,
      onFlashSlot: gate.assign,
      otherServers,
      power: { ...control, within: (canSee) => scopePower(control, canSee) },
      batches: keeper.maker,
      ...watch,
      onLogout: endCacheSessions(given),
    }
  })
}

interface RoutesDependencies extends OpenedServices {
  readonly assets: Assets
  readonly rules: LineDependencies
  readonly seen: SeenServices
  readonly entryFiles: EntryFiles
}

function listRoutes(
  site: Site<Machine>,
  given: MachineServerDependencies,
  parts: RoutesDependencies,
) {
  const { assets, rules, seen, watch, control, backups, netboot } = parts
  const { state, config } = given
  const settings = () => config.current()
  return [
    ...imageRoutes(site, { assets, media: () => findMedia(settings()) }),
    ...firstBootRoutes(site, { ...state, ...rules, proof: () => settings().proof }),
    ...onceRoutes(site, { ...state, ...rules, entryFiles: parts.entryFiles }),
    ...proofRoutes(site, { proofs: watch.proof, ...rules }),
    ...cacheRoutes(site),
    ...captureRoutes(site),
    ...createChannelResource(site, state.channels).routes(),
    ...powerRoutes(site, {
      control: seen.power,
      stagger: () => settings().power.stagger,
    }),
    ...powerSettingRoutes(site, control),
    ...shortLinkRoutes(),
    ...runRemovalRoutes(site),
    ...batchRoutes(site, seen.keeper),
    ...machineTableRoutes(site, (machine, contact) =>
      viewMachine(
        machine,
        gatherSurroundings(rules, contact),
        state.runs.findRunning(machine.mac),
        state.runs.findWritten(machine.mac),
      ),
    ),
    ...releaseRoutes(site, { netboot, ...releaseSettings(given) }),
    ...backupRoutes(site, { backups, place: () => settings().backup.driver }),
  ]
}

function startWatches(
  site: Site<Machine>,
  opened: AsyncDisposableStack,
  {
    rules,
    keeper,
    standing,
  }: {
    readonly rules: LineDependencies
    readonly keeper: BatchKeeper
    readonly standing: Standing
  },
): void {
  opened.use(startOrderExpiry(site, rules))
  opened.use(startBatchEnds({ ...site, keeper }))
  opened.use(startBatchStops({ site, keeper, standing }))
}

const clockOf = ({ options }: MachineServerDependencies): Clock => options?.clock ?? HOST_CLOCK

const loadPages = async () => (await import('./line-pages.ts')).createLinePages

const openGate = (given: MachineServerDependencies): FlashGate => {
  const { config, state } = given
  const { peek: find, silenceOf, peekAll } = state.machines
  const settings = () => config.current().pxe
  return createFlashGate({ find, settings, fleet: peekAll(), silenceOf, ...clockOf(given) })
}

const listPageStores = ({ store, templates, channels, entries, presence }: State) => ({
  store,
  templates,
  channels,
  entries,
  presence,
})

const listPeopleServices = (
  { config, state, passwords }: MachineServerDependencies,
  provider: () => SetProvider | null,
) => ({
  store: state.peopleStore,
  checkHash: passwords.checkHash,
  nameless: () => config.current().people.nameless_login,
  provider: () => (state.store.find(PROVIDER_SWITCH) === 'off' ? null : provider()),
  configured: provider,
})

const endCacheSessions =
  ({ environment, config, log }: MachineServerDependencies) =>
  (cookie: string) =>
    endCacheSession({ url: config.current().withcache.url, cookie, env: environment.env, log })

const releaseSettings = ({ config, state }: MachineServerDependencies) => ({
  tag: () => config.current().boot.release_tag,
  save: (changes: Parameters<typeof saveSettings>[1]) =>
    saveSettings({ config, store: state.store }, changes),
})

/** Null: no release site is set. */
function findMedia({ releases, boot }: ReturnType<LineConfig['current']>): ListedFolder | null {
  const [base] = listReleaseBases(releases.base_url, boot.release_repo, boot.release_tag)
  if (releases.base_url === '' || boot.release_repo === '' || base === undefined) return null
  const description = 'The stick and the board image that start the wizard'
  return { name: 'Flasher', description, url: `${base}${IMAGER_LIST}` }
}

function createRules(
  given: MachineServerDependencies,
  secret: Secret,
  catalog: FollowedCatalog,
  near: Pick<
    LineDependencies,
    | 'sets'
    | 'placeOf'
    | 'otherServers'
    | 'findOrigin'
    | 'refuseImage'
    | 'expectImages'
    | 'recallMisfit'
    | 'findEntry'
  >,
): LineDependencies {
  const { config, state } = given
  return {
    findImage: createFinder(catalog),
    findChannel: (name) => state.channels.find(name)?.bty_image_ref ?? null,
    findTemplate: (name) => state.templates.find(name)?.template ?? null,
    findNameOwner: (name, mac, canSee) =>
      findNameOwner(name, mac, {
        images: catalog.snapshot().entries,
        machines: state.machines.peekAll(),
        canSee,
      }),
    ...near,
    isPaused: state.batches.isPaused,
    isPast: createOrderClock({ fleet: state.machines.peekAll(), ...clockOf(given) }).isPast,
    settings: config.derive(({ pxe, flash: { delta }, sources: { caches } }) => ({
      ...pxe,
      delta,
      caches,
    })),
    hasRun: (mac) => state.runs.findRunning(mac) !== null,
    isWriting: (mac) => state.runs.findRunning(mac)?.stalled === false,
    bootKey: deriveSecret(secret, 'boot tokens'),
    uploadKey: deriveSecret(secret, UPLOAD_KEY),
    cacheUrl: cacheOf(given),
  }
}

const cacheOf = ({ config, cacheBeside }: MachineServerDependencies) =>
  config.derive(({ withcache }) => withcache.url || cacheBeside)

type OpenedServices = Awaited<ReturnType<typeof openServices>>

/** `opened` disposes of them, the last one first. */
async function openServices(
  given: MachineServerDependencies,
  secret: Secret,
  opened: AsyncDisposableStack,
) {
  const { environment, config, state, log, release, cacheBeside, bootFiles, options = {} } = given
  const clock = clockOf(given)
  const { now } = clock
  const { env } = environment
  const settings = () => config.current()
  const catalog = options.catalog ?? opened.use(await openCatalog(given, now))
  const origins = opened.use(openOrigins({ config, catalog, env, log, now }))
  const hasCache = () => settings().withcache.url !== '' || cacheBeside !== null
  const { liveFolders = listLiveFolders() } = environment
  const source = { config, state, catalog, hasCache, env, liveFolders, log, opened: bootFiles, now }
  const netboot = opened.use(await openNetboot(source))
  const beside = given.proxyBeside ?? null
  const near = { config, env, store: state.store, bootFiles: netboot.bootFiles, beside, log, now }
  const proxy = opened.use(await openProxy(near))
  opened.use(startPinner({ config, state, secret, cacheBeside, env, log }))
  const backups = opened.use(await openBackups(config, state, release))
  const { store } = state
  opened.use(startBackupSchedule({ backups, store, settings: () => settings().backup }))
  const stamps = createBootStamps(now, state.changes)
  const openControl = options.openPower ?? openPower
  const { control } = opened.use(await openControl({ config, state, log, env, now, stamps }))
  const proof = (options.openProofs ?? openProofs)({ config, state, log, env, clock })
  const watch = { proof, stamps }
  const providers = opened.use(openProviders({ config, env, log }))
  const notify = opened.use(await openNotify({ config, state, log, env, now }))
  return { providers, catalog, origins, netboot, proxy, backups, control, watch, notify }
}

const openCatalog = (given: MachineServerDependencies, now: () => Date) =>
  createCatalog({
    url: cacheOf(given),
    kept: createKeptCatalogs(decideFolders(given.config).catalog),
    now,
    log: given.log,
    changes: given.state.changes,
    env: given.environment.env,
  })

const measureQueue = (metrics: Metrics, gate: FlashGate) =>
  metrics.gauge('flasher_flash_line', async () =>
    Object.entries(gate.count()).map(([state, value]) => ({
      labels: { state },
      value,
    })),
  )

const countQueue = (gate: FlashGate, most: number) =>
  most === 0 ? null : { most, ...gate.count() }

/** A code of capitals is smaller. */
const PATHS = ['/m/:mac', '/M/:mac']

/** Says nothing of the machine: the page asks for a login first. */
const shortLinkRoutes = (): readonly Route[] =>
  PATHS.map((path) => ({
    method: 'GET',
    path,
    access: 'open',
    handle(event) {
      const given = getRouterParam(event, 'mac', { decode: true }) ?? ''
      const mac = parseMac(
        given.replace(/^(?:[0-9a-f]{2}){6}$/i, (digits) => digits.match(/../g)?.join(':') ?? ''),
      )
      if (!mac.ok) throw refuse(404, 'this is not the address of a machine')
      return seeOther(machinePath(mac.value))
    },
  }))

/** Current line: where machines may read images besides the caches, by what is configured. */
interface OpenedOrigins {
  readonly config: LineConfig
  readonly catalog: Pick<FollowedCatalog, 'snapshot'>
  /** For proxies, keys of buckets, and registries that speak plain http. */
  readonly env: Environment
  readonly log: { info(message: string): void; warn(message: string): void }
  readonly now: () => Date
}

/** Asks registries and buckets only where that is switched on. */
function openOrigins({ config, catalog, env, log, now }: OpenedOrigins): Origins {
  const settings = () => config.current()
  return createOrigins({
    images: () => catalog.snapshot().entries,
    isEnabled: () => settings().sources.origins,
    s3: () => readS3Access(settings().s3, env),
    lifetime: () => settings().s3.lifetime,
    env,
    log,
    now,
  })
}

/** `/machines/{mac}/capture`: orders an image of a disk of the machine, or cancels the order. */
function captureRoutes(site: Site<Machine>): readonly Route[] {
  const answers = { 200: 'Machine' }
  return [
    {
      method: 'POST',
      path: '/machines/:mac/capture',
      access: 'flash',
      takes: 'json',
      doc: {
        summary: 'Captures a disk of the machine at its next network boot',
        body: renderSchema(CaptureFieldsSchema, 'input'),
        answers,
        refuses: [409],
      },
      handle: (event, body) => act(site, event, 'capture', checked(CaptureFieldsSchema, body)),
    },
    {
      method: 'DELETE',
      path: '/machines/:mac/capture',
      access: 'flash',
      doc: { summary: 'Cancels an ordered capture', answers, refuses: [409] },
      handle: (event) => act(site, event, 'cancel-capture', {}),
    },
  ]
}

/** Pauses batches of people who were removed, or may not do any more what they ordered. */
interface BatchStopsDependencies {
  readonly site: Site<Machine>
  readonly keeper: BatchKeeper
  readonly standing: Standing
}

/** Milliseconds; another process may have changed people. */
const LOOK_MS = 1000

function startBatchStops({ site, keeper, standing }: BatchStopsDependencies): Disposable {
  /** Null: somebody still answers for it. */
  function findReason({ id, by, resumed_by }: Batch): string | null {
    const actor = resumed_by ?? by.actor
    const refusal = standing.refuse(actor, 'machines', resumed_by === null ? by.at : undefined)
    if (refusal !== null) return refusal
    const isOutside = keeper.listOwn(id).some(({ labels }) => !standing.canSee(actor, labels))
    return isOutside ? 'it has machines that its owner may no longer change' : null
  }

  async function look(): Promise<void> {
    const open = keeper
      .list()
      .filter((batch) => batch.ended_at === null && batch.paused_at === null)
    for (const batch of open) {
      const why = findReason(batch)
      if (why !== null) await actOnBatch({ site, keeper }, batch, 'pause', SYSTEM, why)
    }
  }

  let running: Promise<unknown> | null = null
  const timer = setInterval(() => {
    running ??= look()
      .catch((thrown: unknown) =>
        site.log.warn(`batches of removed people: ${renderError(thrown)}`),
      )
      .finally(() => {
        running = null
      })
  }, LOOK_MS).unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

/** Answers after the fetch, so that the next page shows the result. */
export const cacheRoutes = (site: Site): readonly Route[] => [
  {
    method: 'POST',
    path: '/admin/cache/refresh',
    access: 'admin',
    reach: 'shared',
    doc: {
      summary: 'Fetch the catalog of the cache service now',
      answers: { 204: null, 303: null },
    },
    async handle(event) {
      await refresh(site, event)
      const isForJson = event.req.headers.get('accept')?.includes('application/json') === true
      return isForJson ? nothing() : seeOther('/ui/machines')
    },
  },
]

async function refresh({ catalog, journal, by }: Site, event: H3Event) {
  const { entries, skipped, error } = await catalog.refresh()
  const { actor, ip } = by(event)
  await journal.record({
    kind: error === null ? 'catalog.refreshed' : 'catalog.refresh.failed',
    subject_kind: 'catalog',
    subject_id: null,
    actor,
    source_ip: ip,
    summary: error ?? `The catalog was fetched: ${entries.length} images${renderLeftOut(skipped)}`,
    details: {
      images: entries.length,
      skipped: skipped.length,
      left_out: skipped.slice(0, MAX_NAMED).map(({ name, reason }) => `${name}: ${reason}`),
      error,
    },
  })
}

/** A broken catalog can have thousands. */
const MAX_NAMED = 20

const renderLeftOut = ({ length }: readonly unknown[]) =>
  length === 0 ? '' : `, ${length} left out`
