/** `FLASHER_LINE=earlier flasher-web`: runs the server until it is asked to end. */
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'
import { openLog, runServer } from '#kit/program/listening.ts'
import type { Listening, ProcessEnvironment } from '#kit/program/process-environment.ts'
import { openSystemPassword, type SystemPassword } from '#fleet/access/system-password.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createShell } from '#kit/host/shell.ts'
import {
  decideFolders,
  readConfiguration,
  type LineConfig,
  openState,
  type State,
} from './assembly/state.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { renderError } from '#kit/foundation/fault.ts'
import { openMachineServer } from '#server/app/machine-server.ts'
import { openFetchParts } from '#server/app/release-fetches.ts'
import { deriveSecret } from '#kit/web/access/secret.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import { createLiveFiles } from '#fleet/boot/boot-files.ts'
import { findLiveRelease } from '#fleet/boot/release-finder.ts'
import { createReleaseFetches } from '#fleet/boot/releases.ts'
import { createPxeHelper, listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { createProvisionFiles, type ProvisionFiles } from '#fleet/workflow/online-workflows.ts'
import { createAssets } from '#kit/web/answers/assets.ts'
import { createImageShelf, type ImageShelf } from '#engine/image/images.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import { openWorkflows } from './assembly/workflows.ts'
import { createMachineLine, provesBoot } from './machine-line.ts'
import type { PxeServices } from './pages/machine-view.ts'
import { createLinePages } from './pages/line-pages.ts'
import { provisionRoutes } from './routes/provision.ts'
import { workflowRoutes } from './routes/workflows.ts'
import { SCHEMAS } from './rules/api-schema.ts'
import type { Machine } from './rules/machine.ts'
import type { H3Event } from 'h3'
import { renderImagerList } from '#appliance/imager-list.ts'
import { listForImager } from '#engine/catalog/rules/catalog-source.ts'
import type { ImageRow } from '#engine/image/rules/image.ts'
import { peerOf } from '#kit/web/answers/caller.ts'
import { receiveUpload } from '#fleet/boot/boot-folder.ts'
import { openServed } from '#kit/host/served-files.ts'
import { requireSpace } from '#fleet/state/disk-space.ts'
import { etagOf } from '#kit/web/answers/rules/content-coding.ts'
import { json, taggedJson, type Answer } from '#kit/web/answers/answers.ts'
import { readFileName } from '#kit/web/answers/checked.ts'
import { refuse } from '#kit/web/answers/faults.ts'
import { answerFile } from '#kit/web/answers/file-answer.ts'
import type { Site } from '#server/routes/site.ts'
import { documentObject, type Route } from '#kit/web/answers/route.ts'

export async function serve(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const config = await readConfiguration(environment, given)
  const log = openLog(environment, config, () => config.current().log.level)
  const release = await readVersion()
  const password = await openSystemPassword({
    shell: createShell(environment),
    helper: config.current().admin.password_helper,
    onExpired: (name) => log.warn(`a login was refused: the account ${name} has expired`),
  })
  await using state = await openState({ config, release, log })
  let { port } = config.current().server
  const parts = { environment, config, state, log, release, password, port: () => port }
  await using server = await createMachineServer(parts)
  return await runServer(environment, {
    app: server.app,
    endChannels: server.endChannels,
    config,
    log,
    settings: {
      ...config.current().server,
      settingHint: 'Set them with FLASHER_WEB_HOST and FLASHER_WEB_PORT.',
    },
    announce(listening) {
      port = listening.port
      log.info(`flasher-web ${release} (earlier line) listens on ${listening.urls.join(' ')}`)
      announce(environment, config, listening, password.user)
    },
  })
}

function announce(
  { stdout }: ProcessEnvironment,
  config: LineConfig,
  { urls }: Listening,
  user: string,
): void {
  const lines = [
    ...urls.map((url) => `Pages:    ${url}ui`),
    `Password: the one of ${user} on this system; passwd changes it`,
    `Images:   ${decideFolders(config).images}`,
  ]
  stdout.write(`${lines.join('\n')}\n`)
}

/** Earlier line: its machine server, assembled from the services, its rules, routes and pages. */
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

/** Earlier line: `GET /images`, and the images themselves, read and uploaded. */
const BYTES = { type: 'string', contentMediaType: 'application/octet-stream' }

/** Left free beside an upload of known length. */
const SPARE_BYTES = 16 * 2 ** 20

interface ImageRouteDependencies {
  readonly shelf: ImageShelf
  /** For Raspberry Pi Imager. */
  readonly icon: string
}

function imageRoutes(
  site: Site<Machine>,
  { shelf, icon }: ImageRouteDependencies,
): readonly Route[] {
  async function send(event: H3Event): Promise<Answer> {
    const name = readFileName(event)
    const file = await openServed(shelf.root, name)
    if (file === null) throw refuse(404, 'no such image')
    return (await answerFile(event, name, file)).answer
  }

  return [
    {
      method: 'GET',
      path: '/images',
      access: 'open',
      doc: {
        summary: 'The images in the image folder',
        answers: { 200: { type: 'array', items: { $ref: '#/components/schemas/ImageEntry' } } },
      },
      async handle(event) {
        const body = JSON.stringify(await shelf.list())
        return taggedJson(event, { body, etag: etagOf(body) })
      },
    },
    {
      method: 'GET',
      path: '/imager.json',
      access: 'open',
      isCompressed: true,
      doc: documentObject('The same images as a custom repository of Raspberry Pi Imager'),
      async handle(event) {
        const { baseUrl } = peerOf(event)
        const images = listForImager((await shelf.list()).map((row) => toOffered(row, baseUrl)))
        const body = JSON.stringify(renderImagerList(images, `${baseUrl}${icon}`))
        return taggedJson(event, { body, etag: etagOf(body) })
      },
    },
    {
      method: 'GET',
      path: '/images/:name',
      access: 'open',
      doc: {
        summary: 'An image; ranges and ETags as in RFC 9110',
        answers: { 200: BYTES },
        refuses: [416],
      },
      handle: send,
    },
    {
      method: 'PUT',
      path: '/images/:name',
      access: 'admin',
      reach: 'shared',
      takes: 'bytes',
      most: () => site.settings().uploadMostBytes,
      doc: {
        summary: 'Uploads an image; one of that name is replaced once all of it is there',
        body: BYTES,
        refuses: [409],
        isNeverMissing: true,
        answers: {
          200: {
            type: 'object',
            properties: {
              name: { type: 'string' },
              size_bytes: { type: 'integer' },
              path: { type: 'string' },
            },
          },
        },
      },
      handle: (event, bytes) => takeUpload(site, shelf, event, bytes),
    },
  ]
}

/** This line knows no digests: the Imager then compares nothing. */
const toOffered = ({ name, format, size_bytes }: ImageRow, baseUrl: string) => ({
  name,
  description: null,
  format,
  arch: null,
  sizeBytes: size_bytes,
  rawSizeBytes: null,
  rawSha256: null,
  sha256: null,
  addedAt: null,
  url: `${baseUrl}/images/${encodeURIComponent(name)}`,
})

async function takeUpload(
  site: Site<Machine>,
  shelf: ImageShelf,
  event: H3Event,
  bytes: AsyncIterable<Uint8Array>,
): Promise<Answer> {
  const name = readFileName(event)
  if (/\p{Bidi_Control}/u.test(name)) {
    throw refuse(400, 'the name must not contain characters that reverse text')
  }
  const expected = Number(event.req.headers.get('content-length') ?? 0)
  if (expected > 0) await requireSpace(shelf.root, expected + SPARE_BYTES, name)
  const size_bytes = await receiveUpload({
    dir: shelf.root,
    name,
    bytes,
    maxBytes: site.settings().uploadMostBytes,
    sha256: null,
  })
  shelf.forget()
  site.changes.announce({ topic: 'catalog' })
  const details = { name, size_bytes }
  const note = { kind: 'images.uploaded', summary: `${name} was uploaded`, details }
  const subject = { subject_id: name, ...site.by(event) }
  await site.recordAll([{ ...note, subject_kind: 'catalog' }], subject)
  return json({ ...details, path: `${shelf.root}/${name}` })
}
