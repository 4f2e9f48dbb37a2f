/** Earlier line: its machine server, assembled from the services, its rules, routes and pages. */
import { parseMac } from '#kit/net/rules/mac.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { openMachineServer } from '#server/app/machine-server.ts'
import { openFetchParts } from '#server/app/release-fetches.ts'
import type { ProcessEnvironment } from '#kit/program/process-environment.ts'
import { deriveSecret } from '#kit/web/access/secret.ts'
import type { SystemPassword } from '#fleet/access/system-password.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import { createLiveFiles } from '#fleet/boot/live-files.ts'
import { findLiveRelease } from '#fleet/boot/live-releases.ts'
import { createReleaseFetches } from '#fleet/boot/releases.ts'
import { createPxeHelper } from '#fleet/boot/pxe-helper.ts'
import { createProvisionFiles, type ProvisionFiles } from '#fleet/workflow/provision-files.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import { listLanAddresses } from '#fleet/boot/host-addresses.ts'
import { createShell } from '#kit/host/shell.ts'
import { createImageShelf } from '#engine/image/image-shelf.ts'
import type { ServerLog } from '#kit/terminal/text/server-log.ts'
import { decideFolders, type LineConfig } from './assembly/configuration.ts'
import type { State } from './assembly/state.ts'
import { openWorkflows } from './assembly/workflows.ts'
import { createMachineLine, provesBoot } from './machine-line.ts'
import type { PxeServices } from './pages/page-context.ts'
import { createLinePages } from './pages/line-pages.ts'
import { imageRoutes } from './routes/images.ts'
import { provisionRoutes } from './routes/provision.ts'
import { workflowRoutes } from './routes/workflows.ts'
import { SCHEMAS } from './rules/api-schema.ts'
import { SETTING_TEXTS } from './rules/settings.ts'
import type { Machine } from './rules/machine.ts'

interface MachineServerDependencies {
  readonly environment: Pick<ProcessEnvironment, 'env' | 'isRoot'>
  readonly config: LineConfig
  readonly state: State
  readonly log: ServerLog
  readonly release: string
  readonly password: SystemPassword
  port(): number
  readonly now?: () => Date
}

export async function createMachineServer(given: MachineServerDependencies) {
  const { config, state, log, release, password, now = () => new Date() } = given
  const folders = decideFolders(config)
  const parts = { config, state, log, release, folders, now }
  return await openMachineServer<Machine>(parts, async (secret, opened) => {
    const services = await openServices(given, opened, now)
    const { bootFiles, shelf, files, workflows } = services
    const bootKey = deriveSecret(secret, 'boot tokens')
    const assets = await createAssets()
    const { views, plugin: pages } = createLinePages({
      version: release,
      assets,
      services: {
        ...services,
        config,
        settingTexts: SETTING_TEXTS,
        pxe: createPxe(given),
        user: password.user,
      },
      now,
      runs: state.runs,
    })
    return {
      line: createMachineLine({ bootKey, workflows: folders.workflows }),
      views,
      plugins: [
        () => ({ schemas: SCHEMAS }),
        () => ({ routes: (site) => imageRoutes(site, { shelf, icon: assets.url('icon.svg') }) }),
        () => ({
          routes: (site) =>
            provisionRoutes(site, {
              files,
              proves: (machine, contact) =>
                provesBoot(
                  { bootKey },
                  machine,
                  contact,
                  state.runs.findRunning(machine.mac) !== null,
                ),
            }),
        }),
        () => ({ routes: (site) => workflowRoutes(site, workflows) }),
        pages,
      ],
      catalog: NO_CATALOG,
      bootFiles,
      checkPassword: password.check,
      setPassword: null,
    }
  })
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

/** `opened` disposes of them, the last one first. */
async function openServices(
  { environment: { env }, config, state, log }: MachineServerDependencies,
  opened: AsyncDisposableStack,
  now: () => Date,
) {
  const folders = decideFolders(config)
  const parts = { config, state, env, log, now }
  const bootFiles = await createLiveFiles(folders.boot)
  const releases = opened.use(
    createReleaseFetches({
      ...(await openFetchParts({ ...parts, folder: folders.fetches, keep: () => 0 })),
      bootFiles,
      find: findLiveRelease,
    }),
  )
  const shelf = createImageShelf(folders.images, now)
  await shelf.open().catch((thrown: unknown) => {
    log.warn(`images cannot be uploaded to ${shelf.root}: ${renderError(thrown)}`)
  })
  const files = createProvisionFiles(folders.provision)
  opened.defer(clearWithMachine(state, files, log))
  const workflows = opened.use(await openWorkflows(parts))
  return { bootFiles, releases, shelf, files, workflows }
}

/** Keys and passwords of a machine are deleted with its record. */
const clearWithMachine = (
  { changes, machines }: Pick<State, 'changes' | 'machines'>,
  files: ProvisionFiles,
  log: ServerLog,
) =>
  changes.listen((change) => {
    const mac = change.topic === 'machine' ? parseMac(change.mac) : null
    if (mac === null || !mac.ok || machines.peek(mac.value) !== null) return
    files.clear(mac.value).catch((thrown: unknown) => {
      log.error(`provisioning files of ${mac.value}: ${renderError(thrown)}`)
    })
  })

/** This line's images lie in a folder. */
const NONE = { entries: [], skipped: [], fetchedAt: null, error: null } as const
const NO_CATALOG: FollowedCatalog = { snapshot: () => NONE, refresh: async () => NONE }
