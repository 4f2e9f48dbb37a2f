/** Current line: opens what machines boot from: the boot directory and the fetches that fill it. */
import { BOOT_ARCHS } from '#fleet/boot/rules/boot-set.ts'
import { decideDhcpTarget } from '#fleet/boot/rules/dhcp.ts'
import { openFetchParts } from '#server/app/release-fetches.ts'
import { listReadiness, type ReadinessRow, type TftpState } from '#fleet/boot/rules/readiness.ts'
import { type BuiltSet, findBuiltSets } from '#fleet/boot/boot-sets.ts'
import { createBootFiles, type BootFolder } from '#fleet/boot/boot-files.ts'
import type { FollowedCatalog } from '#engine/catalog/catalogs.ts'
import { readSpace } from '#fleet/state/disk-space.ts'
import { listLanAddresses } from '#fleet/boot/pxe-helper.ts'
import { createReleases } from '#fleet/boot/releases.ts'
import type { Environment } from '#kit/host/shell.ts'
import { createTftpProbe } from '#fleet/boot/tftp-probe.ts'
import type { Machine } from '#server/current/machines/rules/machine.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

export type Netboot = Awaited<ReturnType<typeof openNetboot>>

interface NetbootDependencies {
  readonly config: LineConfig
  readonly state: State
  readonly catalog: FollowedCatalog
  /** Whether a cache service is set, or runs beside the server. */
  hasCache(): boolean
  readonly env: Environment
  readonly liveFolders: readonly string[]
  readonly log: { warn(message: string): void }
  /** Already open where the server stood by; null: it is opened here. */
  readonly opened: OpenedBootFiles | null
  now(): Date
}

export interface OpenedBootFiles extends AsyncDisposable {
  readonly bootFiles: BootFolder
  listen(listener: () => void): void
}

export async function openBootFiles({
  config,
  log,
}: Pick<NetbootDependencies, 'config' | 'log'>): Promise<OpenedBootFiles> {
  let changed: (() => void) | null = null
  const bootFiles = await createBootFiles({
    dir: decideFolders(config).boot,
    changed: () => changed?.(),
    onSetAside: ({ arch, version, reason }) =>
      log.warn(`version ${version} (${arch}) in the boot directory is not used: ${reason}`),
    now: () => new Date(),
  })
  return {
    bootFiles,
    listen(listener) {
      changed = listener
    },
    [Symbol.asyncDispose]: bootFiles[Symbol.asyncDispose],
  }
}

export async function openNetboot(parts: NetbootDependencies) {
  const { config, state, env, now } = parts
  const opened = parts.opened ?? (await openBootFiles(parts))
  const { bootFiles } = opened
  opened.listen(() => state.changes.announce({ topic: 'fetch', key: 'active' }))
  const keep = () => config.current().retention.boot_sets
  const folder = decideFolders(config).fetches
  const fetches = await openFetchParts({ config, state, folder, keep, env, now })
  const releases = createReleases({ ...fetches, bootFiles })
  const probe = createTftpProbe({ host: () => config.current().netboot.tftp_probe_host })
  // Asked at once, so that the first page knows.
  probe.state()
  return {
    bootFiles,
    releases,
    /** Complete sets on this host that are not installed. */
    async listBuilt(): Promise<readonly BuiltSet[]> {
      const known = bootFiles.sets().map(({ arch, version }) => `${arch} ${version}`)
      const built = await findBuiltSets(parts.liveFolders)
      return built.filter(({ arch, version }) => !known.includes(`${arch} ${version}`))
    },
    /** From memory: the daemon's last answer. */
    tftp: (): TftpState => probe.state(),
    async readiness(): Promise<readonly ReadinessRow[]> {
      const active = bootFiles.active()
      const { entries, error } = parts.catalog.snapshot()
      return listReadiness({
        sets: BOOT_ARCHS.flatMap((arch) => active[arch] ?? []),
        catalog: { images: entries.length, error, isSet: parts.hasCache() },
        hasContact: (await state.machines.list()).some(hasBooted),
        tftp: probe.state(),
        disk: await readDisk(config),
      })
    },
    reachedAt: (baseUrl: string): string =>
      decideDhcpTarget(baseUrl, listLanAddresses(), 'grub')?.baseUrl ?? baseUrl,
    async [Symbol.asyncDispose]() {
      await releases[Symbol.asyncDispose]()
      if (parts.opened === null) await opened[Symbol.asyncDispose]()
    },
  }
}

/** A record that was only created here has neither. */
const hasBooted = ({ discovered_at, last_seen_at }: Machine): boolean =>
  discovered_at !== null || last_seen_at !== null

async function readDisk(config: LineConfig) {
  // Null: the checklist says that it cannot be read.
  const space = await readSpace(config.stateDir).catch(() => null)
  if (space === null) return null
  const { warn_free_bytes: most } = config.current().retention
  return {
    freeBytes: space.freeBytes,
    isLow: space.freeBytes < Math.min(most, space.totalBytes / 10),
  }
}
