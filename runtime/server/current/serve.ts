/** `flasher-web`: runs the server until it is asked to end. */
import { makeWishFolder, removeOldWish, wishFolderOf } from '#fleet/proxy/proxy-control.ts'
import { renderError, type Fault } from '#kit/foundation/fault.ts'
import { parseTimes, TIMES } from '#fleet/cluster/rules/lease.ts'
import type { CompleteSet } from '#fleet/boot/rules/boot-set.ts'
import { type ActiveSets, copyBuiltSets } from '#fleet/boot/boot-sets.ts'
import { readVersion } from '#kit/host/package-manifest.ts'
import { createPasswords } from '#fleet/access/passwords.ts'
import type { ServerLog } from '#kit/terminal/text/log.ts'
import {
  decideFolders,
  readConfiguration,
  type LineConfig,
  listenSettingsOf,
} from './assembly/configuration.ts'
import { findProxyObstacle } from './assembly/proxy.ts'
import { createMachineServer } from './server.ts'
import type { openStandby } from './assembly/standby.ts'
import { openState } from './assembly/state.ts'
import { replaceLoopback } from '#engine/catalog/rules/cache-entry.ts'
import type { Database } from '#fleet/state/database.ts'
import { SUCCESS } from '#kit/terminal/command/rules/command.ts'
import { openLog, runServer } from '#kit/program/listening.ts'
import type {
  Listening,
  ProcessEnvironment,
  StartedProxy,
} from '#kit/program/process-environment.ts'
import type { Arguments } from '#kit/terminal/command/rules/arguments.ts'

export async function serve(environment: ProcessEnvironment, given: Arguments): Promise<number> {
  const config = await readConfiguration(environment, given)
  const log = openLog(environment, config, () => config.current().log.level)
  const release = await readVersion()
  const lost = createLoss(environment.signal)
  const times = parseTimes(environment.env['FLASHER_TEST_TIMES'])
  if (times !== TIMES) log.warn('FLASHER_TEST_TIMES is set, which is for tests alone')
  await removeOldWish(wishFolderOf(environment.env, config.stateDir))
  await using standby = createStandby({ environment, config, log, release, times })
  const leads = { ...lost, standBy: standby.open, times }
  const opening = { config, release, visit: false, log, leads }
  await using state = await openState(opening).catch((thrown: unknown) => {
    // Asked to end while it stood by or waited for its database: a normal end.
    if (environment.signal.aborted) return null
    throw thrown
  })
  if (state === null) return SUCCESS
  const passwords = createPasswords({
    path: decideFolders(config).password,
    configured: () => config.current().admin,
    share: async () => await state.presence?.share(),
  })
  const generated = await passwords.ensure()
  const cacheBeside = await startCache(environment, given, config)
  const proxyBeside = await startProxy(environment, config, log)
  const built = await takeBuilt(environment, config, log)
  const bootFiles = standby.bootFiles()
  if (built.length > 0) await bootFiles?.bootFiles.look()
  const parts = {
    environment,
    config,
    state,
    log,
    release,
    passwords,
    cacheBeside,
    proxyBeside,
    bootFiles,
  }
  await using server = await createMachineServer(parts)
  const liveSystems = built.map((set) => renderBuilt(set, server.active()))
  const code = await runServer(
    { ...environment, signal: lost.signal },
    {
      app: server.app,
      endChannels: server.endChannels,
      config,
      log,
      settings: listenSettingsOf(config),
      door: standby.door(),
      divert: standby.divert(),
      announce(listening) {
        if (state.leader !== null) standby.lead(state.leader.lease.epoch)
        log.info(`flasher-web ${release} listens on ${listening.urls.join(' ')}`)
        announce(environment, config, listening, { generated, cacheBeside, liveSystems })
      },
    },
  )
  lost.check()
  return code
}

/** Loaded only where several servers share a database. */
function createStandby(parts: Omit<Parameters<typeof openStandby>[0], 'database' | 'memberKey'>) {
  let standing: Awaited<ReturnType<typeof openStandby>> | null = null
  return {
    async open(database: Database, memberKey: string) {
      const { openStandby: open } = await import('./assembly/standby.ts')
      standing = await open({ ...parts, database, memberKey })
      return standing
    },
    door: () => standing?.door,
    divert: () => standing?.divert,
    bootFiles: () => standing?.bootFiles ?? null,
    lead: (epoch: number) => standing?.lead(epoch),
    [Symbol.asyncDispose]: async () => standing?.[Symbol.asyncDispose](),
  }
}

/** A server that lost its lease stops in order; whoever started it starts it again. */
function createLoss(asked: AbortSignal) {
  const ending = new AbortController()
  let why: Fault | null = null
  return {
    signal: AbortSignal.any([asked, ending.signal]),
    onEnd(fault: Fault) {
      why = fault
      ending.abort()
    },
    check() {
      if (why !== null) throw why
    },
  }
}

/** Only where one can be started and no other is set. */
async function startCache(
  { startCache: start }: ProcessEnvironment,
  given: Arguments,
  config: LineConfig,
): Promise<string | null> {
  const { withcache, cache, server } = config.current()
  if (start === undefined || withcache.url !== '') return null
  const isChosen = config.originOf('cache', 'host')?.by !== 'default'
  return start({
    host: isChosen ? cache.host : server.host,
    port: cache.port,
    stateDir: config.stateDir,
    named: given.lists['config'] ?? [],
  })
}

/** With `pnpm start --proxy`; else a unit of root may run it. */
async function startProxy(
  { startProxy: start, env }: ProcessEnvironment,
  config: LineConfig,
  log: ServerLog,
): Promise<StartedProxy | null> {
  if (start === undefined) return null
  const obstacle = findProxyObstacle(config)
  if (obstacle !== null) {
    log.warn(`--proxy: ${obstacle}`)
    return null
  }
  const wishFolder = wishFolderOf(env, config.stateDir)
  await makeWishFolder(wishFolder)
  return await start({ wishFolder, networks: config.current().dhcp.proxy })
}

/** A live system that was built here is available at once; the server also runs without. */
async function takeBuilt(
  { builtDir }: ProcessEnvironment,
  config: LineConfig,
  log: ServerLog,
): Promise<readonly CompleteSet[]> {
  if (builtDir === undefined) return []
  try {
    return await copyBuiltSets({ from: builtDir, to: decideFolders(config).boot })
  } catch (thrown) {
    log.warn(`the live system in ${builtDir} was not copied: ${renderError(thrown)}`)
    return []
  }
}

/** What was fetched or chosen under Network boot stays active. */
function renderBuilt({ arch, version }: CompleteSet, active: ActiveSets): string {
  const other = active[arch]?.version
  if (other === version) return `${version} (${arch}) from dist/`
  const why = other === undefined ? 'not in use' : `not active; machines boot ${other}`
  return `${version} (${arch}) from dist/, ${why} (see Network boot)`
}

interface Announced {
  /** Made at this start. */
  readonly generated: string | null
  readonly cacheBeside: string | null
  /** Built in this checkout, in words. */
  readonly liveSystems: readonly string[]
}

/** The password is only here: logs are kept and read by others. */
function announce(
  { stdout }: ProcessEnvironment,
  config: LineConfig,
  { urls }: Listening,
  { generated, cacheBeside, liveSystems }: Announced,
): void {
  const folders = decideFolders(config)
  const lines = urls.map((url) => `Pages:    ${url}ui`)
  if (cacheBeside !== null) {
    const host = new URL(urls[0] ?? cacheBeside).hostname
    const images = new URL('ui', replaceLoopback(cacheBeside, host))
    lines.push(`Images:   ${images.href}, or copy them into ${folders.cache}`)
  }
  if (generated !== null) {
    lines.push(
      `Password: ${generated}`,
      `          shown only this once; flasher-web password sets another`,
    )
  }
  for (const text of liveSystems) lines.push(`Live:     ${text}`)
  if (cacheBeside !== null) lines.push('Next:     log in; the dashboard lists what is missing')
  stdout.write(`${lines.join('\n')}\n`)
}
