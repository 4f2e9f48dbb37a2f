/** Current line: what this server wishes of the DHCP proxy, by its settings and `pnpm start --proxy`. */
import type { BootFolder } from '#fleet/boot/boot-files.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { createOthers } from '#fleet/boot/rules/boot-decision.ts'
import { openProxyControl, PROXY_FOLDER, wishFolderOf } from '#fleet/proxy/proxy-control.ts'
import { listProxyNetworks, type ProxyWish, renderRevision } from '#fleet/proxy/rules/wish.ts'
import type { Environment } from '#kit/host/shell.ts'
import type { StartedProxy } from '#kit/program/process-environment.ts'
import { type LineConfig, saveSettings } from './configuration.ts'
import type { State } from './state.ts'

export type Proxy = Awaited<ReturnType<typeof openProxy>>

interface ProxyDependencies {
  readonly config: LineConfig
  readonly env: Environment
  readonly store: State['store']
  readonly bootFiles: Pick<BootFolder, 'active' | 'sets' | 'alias'>
  /** Null: a unit runs the proxy. */
  readonly beside: StartedProxy | null
  readonly log: { warn(message: string): void }
  now(): Date
}

/** Why machines could not boot from this server, in words. */
export function findProxyObstacle(config: LineConfig): string | null {
  const { host, tls_cert: certificate } = config.current().server
  if (/^(localhost|127\.|::1)/.test(host))
    return `This server listens on ${host} only, where machines cannot reach it.`
  return certificate === ''
    ? null
    : 'This server uses HTTPS, but machines fetch their first script by HTTP.'
}

export async function openProxy(parts: ProxyDependencies) {
  const { config, env, store, bootFiles, beside, log, now } = parts
  /** What `--proxy` chose counts until somebody switches it off or on. */
  let chosen = beside?.networks ?? []
  const othersOf = createOthers(config.derive(({ pxe }) => pxe.servers))
  const wanted = () => (chosen.length > 0 ? chosen : config.current().dhcp.proxy)
  const findObstacle = () => findProxyObstacle(config)

  function wish(): ProxyWish | null {
    const networks = wanted()
    const [first] = listLanAddresses()
    if (networks.length === 0 || findObstacle() !== null) return null
    const { server } = config.current()
    const base = `http://${first?.address ?? server.host}:${server.port}`
    const hasOthers = othersOf(base).length > 0
    const files = [bootFiles.active(), bootFiles.sets(), hasOthers, config.current().pxe.servers]
    const revision = renderRevision(files)
    return { networks, port: server.port, hasOthers, revision }
  }

  const control = await openProxyControl({
    wishFolder: wishFolderOf(env, config.stateDir),
    reportFolder: beside?.folder ?? PROXY_FOLDER,
    wish,
    log,
    now,
  })

  return {
    findObstacle,
    wanted,
    report: control.report,
    listNetworks: () => listProxyNetworks(listLanAddresses()),
    /** Empty: off. Refused where a variable sets it, or a network is none. */
    async change(networks: readonly string[]) {
      const text = networks.join('\n')
      const saved = await saveSettings({ config, store }, { 'dhcp.proxy': text })
      if (saved.ok) chosen = []
      await control.look()
      return saved
    },
    [Symbol.asyncDispose]: control[Symbol.asyncDispose],
  }
}
