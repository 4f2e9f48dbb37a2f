/** Earlier line: its machine server, assembled from the services, its rules, routes and pages. */
import type { H3 } from 'h3'
import { parseMac } from '../../core/machine/mac.ts'
import { renderError } from '../../core/foundation/fault.ts'
import { openSignedOut } from '../../program/signed-out.ts'
import type { ProcessEnvironment } from '../../program/process-environment.ts'
import { createSecret, deriveSecret } from '../../services/access/secret.ts'
import type { Catalog } from '../../services/catalog/catalogs.ts'
import { createPxeHelper } from '../../services/boot/pxe-helper.ts'
import { createProvisionFiles, type ProvisionFiles } from '../../services/flash/provision-files.ts'
import { createAssets } from '../../services/host/assets.ts'
import { listLanAddresses } from '../../services/host/host-addresses.ts'
import { createShell } from '../../services/host/shell.ts'
import { createImageShelf } from '../../services/image/image-shelf.ts'
import { watchSpace } from '../../services/state/disk-space.ts'
import type { ServerLog } from '../../terminal/text/server-log.ts'
import { createServer } from '../../web/fleet/server.ts'
import type { Route } from '../../web/http/route.ts'
import { decideFolders, toWebSettings, type LineConfig } from './assembly/configuration.ts'
import { openNetboot } from './assembly/netboot.ts'
import type { PasswordCheck } from './assembly/password.ts'
import type { State } from './assembly/state.ts'
import { openWorkflows } from './assembly/workflows.ts'
import { createMachineLine, provesBoot } from './machine-line.ts'
import type { PxeServices } from './pages/frame/page-context.ts'
import { createPages } from './pages/site-pages.ts'
import { imageRoutes } from './routes/images.ts'
import { provisionRoutes } from './routes/provision.ts'
import { workflowRoutes } from './routes/workflows.ts'
import { SCHEMAS } from './rules/api-schema.ts'
import type { Machine } from './rules/machine.ts'

interface MachineServerDependencies {
  readonly environment: Pick<ProcessEnvironment, 'env' | 'isRoot'>
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly release: string
  readonly password: PasswordCheck
  /** The one that the server listens on. */
  port(): number
  readonly now?: () => Date
}

interface MachineServer extends AsyncDisposable {
  readonly app: H3
  readonly routes: readonly Route[]
  /** So that their connections can be closed. */
  endChannels(): void
}

export async function createMachineServer(
  given: MachineServerDependencies,
): Promise<MachineServer> {
  const { config, state, log, release, password, now = () => new Date() } = given
  const settings = () => config.current()
  await using opened = new AsyncDisposableStack()
  const { secret, netboot, shelf, files, workflows } = await openServices(given, opened, now)
  const bootKey = deriveSecret(secret, 'boot tokens')
  const { views, plugin: pages } = createPages({
    version: release,
    user: password.user,
    assets: await createAssets(),
    services: { config, shelf, files, workflows, ...netboot, pxe: createPxe(given) },
    zone: () => settings().display.timezone,
    now,
    findRun: state.runs.findLive,
  })
  const server = createServer<Machine>({
    ...state,
    line: createMachineLine({ bootKey, workflows: decideFolders(config).workflows }),
    views,
    plugins: [
      () => ({ schemas: SCHEMAS }),
      (site) => ({ routes: imageRoutes(site, shelf) }),
      (site) => ({
        routes: provisionRoutes(site, {
          files,
          proves: (machine, contact) => provesBoot({ bootKey }, machine, contact),
        }),
      }),
      (site) => ({ routes: workflowRoutes(site, workflows) }),
      pages,
    ],
    catalog: NO_CATALOG,
    bootFiles: netboot.bootFiles,
    secret,
    signedOut: openSignedOut({
      path: decideFolders(config).signedOut,
      journal: state.journal,
      log,
      now,
    }),
    settings: () => toWebSettings(settings()),
    checkPassword: password.verifyPassword,
    setPassword: null,
    now,
    log,
    version: release,
  })
  opened.defer(server.close)
  const held = opened.move()
  return {
    app: server.app,
    routes: server.routes,
    endChannels: server.close,
    [Symbol.asyncDispose]: () => held.disposeAsync(),
  }
}

const createPxe = ({ environment, config, port }: MachineServerDependencies): PxeServices => ({
  ...createPxeHelper({
    shell: createShell(environment),
    isRoot: environment.isRoot,
    path: () => config.current().paths.pxe_helper,
  }),
  listAddresses: listLanAddresses,
  port,
})

/** Services that only a running server needs; `opened` ends them, the last one first. */
async function openServices(
  { environment: { env }, config, state, log }: MachineServerDependencies,
  opened: AsyncDisposableStack,
  now: () => Date,
) {
  const folders = decideFolders(config)
  const secret = await createSecret({
    path: folders.secret,
    configured: config.current().server.session_secret,
  })
  const netboot = opened.use(await openNetboot({ config, state, env, now }))
  const shelf = createImageShelf(folders.images, now)
  await shelf.open().catch((thrown: unknown) => {
    log.warn(`images cannot be uploaded to ${shelf.root}: ${renderError(thrown)}`)
  })
  const files = createProvisionFiles(folders.provision)
  opened.defer(clearWithMachine(state, files, log))
  const workflows = opened.use(await openWorkflows({ config, state, env, log, now }))
  opened.use(
    watchSpace({
      path: folders.stateDir,
      journal: state.journal,
      warnBelow: () => config.current().retention.warn_free_bytes,
      onLow: (message) => log.warn(message),
    }),
  )
  return { secret, netboot, shelf, files, workflows }
}

/** Keys and passwords of a machine go with its record. */
const clearWithMachine = (
  { feed, machines }: Pick<State, 'feed' | 'machines'>,
  files: ProvisionFiles,
  log: ServerLog,
) =>
  feed.listen((change) => {
    const mac = change.topic === 'machine' ? parseMac(change.mac) : null
    if (mac === null || !mac.ok || machines.peek(mac.value) !== null) return
    files.clear(mac.value).catch((thrown: unknown) => {
      log.error(`provisioning files of ${mac.value}: ${renderError(thrown)}`)
    })
  })

/** This line's images lie in a folder. */
const NONE = { entries: [], skipped: [], fetchedAt: null, error: null } as const
const NO_CATALOG: Catalog = { snapshot: () => NONE, refresh: async () => NONE }
