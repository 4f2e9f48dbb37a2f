/** Current line: opens what machines boot from: the boot directory and the fetches that fill it. */
import { BOOT_ARCHS } from '../../../core/boot/boot-set.ts'
import { decideDhcpTarget } from '../../../core/boot/dhcp-target.ts'
import { listReadiness, type ReadinessRow } from '../../../core/boot/readiness.ts'
import type { TftpState } from '../../../core/boot/tftp.ts'
import { createBootFiles, type BootFolder } from '../../../services/boot/boot-files.ts'
import type { Catalog } from '../../../services/catalog/catalogs.ts'
import { readSpace } from '../../../services/state/disk-space.ts'
import { listLanAddresses } from '../../../services/host/host-addresses.ts'
import { FetchJobSchema } from '../../../services/boot/release-job.ts'
import { openJobRecords } from '../../../services/host/job-records.ts'
import { createRecords } from '../../../services/host/records.ts'
import { createReleases, type Releases } from '../../../services/boot/releases.ts'
import type { Environment } from '../../../services/host/shell.ts'
import { createSources } from '../../../services/image/sources.ts'
import { createTftpProbe } from '../../../services/net/tftp.ts'
import type { Machine } from '../rules/machine.ts'
import { decideFolders, type LineConfig } from './configuration.ts'
import type { State } from './state.ts'

export interface Netboot extends AsyncDisposable {
  readonly bootFiles: BootFolder
  readonly releases: Releases
  /** From memory: what the daemon answered last. */
  tftp(): TftpState
  readiness(): Promise<readonly ReadinessRow[]>
  /** The address that machines can use for a server that is reached at `baseUrl`. */
  reachedAt(baseUrl: string): string
}

interface NetbootDependencies {
  readonly config: LineConfig
  readonly state: State
  readonly catalog: Catalog
  /** Whether a cache service is set, or runs beside the server. */
  hasCache(): boolean
  readonly env: Environment
  readonly log: { warn(message: string): void }
  now(): Date
}

export async function openNetboot(parts: NetbootDependencies): Promise<Netboot> {
  const { config, state, env, log, now } = parts
  const { feed, journal } = state
  const bootFiles = await createBootFiles({
    dir: decideFolders(config).boot,
    changed: () => feed.announce({ topic: 'fetch', key: 'active' }),
    onSetAside: ({ arch, version, reason }) =>
      log.warn(`version ${version} (${arch}) in the boot directory does not count: ${reason}`),
    now,
  })
  const fetches = createRecords(decideFolders(config).fetches)
  const releases = createReleases({
    records: await openJobRecords(fetches, FetchJobSchema, now()),
    bootFiles,
    sources: createSources({ env }),
    env,
    journal,
    feed,
    settings: () => toReleaseSettings(config),
    now,
  })
  const probe = createTftpProbe({ host: () => config.current().netboot.tftp_probe_host })
  // Asked at once, so that the first page knows.
  probe.state()
  return {
    bootFiles,
    releases,
    tftp: () => probe.state(),
    async readiness() {
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
    reachedAt: (baseUrl) =>
      decideDhcpTarget(baseUrl, listLanAddresses(), 'grub')?.baseUrl ?? baseUrl,
    async [Symbol.asyncDispose]() {
      await releases[Symbol.asyncDispose]()
      await bootFiles[Symbol.asyncDispose]()
    },
  }
}

/** A record that was only created here has neither. */
const hasBooted = ({ discovered_at, last_seen_at }: Machine): boolean =>
  discovered_at !== null || last_seen_at !== null

function toReleaseSettings(config: LineConfig) {
  const { boot, releases, retention } = config.current()
  return {
    site: releases.base_url,
    repository: boot.release_repo,
    tag: boot.release_tag,
    keys: releases.public_keys,
    keep: retention.boot_sets,
  }
}

async function readDisk(config: LineConfig) {
  // Null: that it cannot be read is what the checklist says then.
  const space = await readSpace(config.stateDir).catch(() => null)
  if (space === null) return null
  const { warn_free_bytes: most } = config.current().retention
  return {
    freeBytes: space.freeBytes,
    isLow: space.freeBytes < Math.min(most, space.totalBytes / 10),
  }
}
