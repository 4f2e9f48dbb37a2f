/** Assembles the services that the server-driven mode requires. */
import { LIVE_PATHS } from '#appliance/contract.ts'
import { isBootWanted } from '#engine/disk/rules/boot-entry.ts'
import { parseLoops } from '#engine/disk/rules/mount-map.ts'
import { parseMac } from '#kit/net/rules/mac.ts'
import { parseServerList } from '#kit/net/rules/host-header.ts'
import { createDisks } from '#engine/disk/disks.ts'
import { createHardware } from '#engine/inventory/hardware-reader.ts'
import { createMarks, NO_MARKS } from '#kit/host/marks.ts'
import { createNvram } from '#engine/disk/nvram.ts'
import { createPower } from '#flasher/live-system/power.ts'
import type { ServerClient } from '#flasher/link/server-client.ts'
import { createShell } from '#kit/host/shell.ts'
import { createHooks, type RemoteDependencies } from './remote-hooks.ts'
import { NO_HOOKS, type Hooks } from './rules/flash-choice.ts'

interface RemoteEnvironment extends Pick<RemoteDependencies, 'env' | 'signal' | 'now'> {
  /** As Node names it. */
  readonly arch: string
}

/** `FLASHER_LIVE=1`: console and kernel log may be written to. */
export function createRemoteDependencies({
  arch,
  ...given
}: RemoteEnvironment): RemoteDependencies {
  const { env } = given
  const shell = createShell({ env })
  return {
    ...given,
    loops: parseLoops(env['FLASHER_OFFER_LOOP'] ?? '') !== 'none',
    disks: createDisks({ shell }),
    hardware: createHardware({ shell }),
    nvram: createNvram({ shell, arch }),
    power: createPower({ shell }),
    marks: env['FLASHER_LIVE'] === '1' ? createMarks({ status: LIVE_PATHS.status }) : NO_MARKS,
  }
}

/**
 * The firmware boots the disk once if wanted, and the server that booted this machine gets reports.
 */
export async function createStandaloneHooks(environment: RemoteEnvironment): Promise<Hooks> {
  const { env } = environment
  const registersBoot = isBootWanted(env['FLASHER_REGISTER_UEFI_BOOT'])
  const client = await openClient(environment)
  if (!registersBoot && client === null) return NO_HOOKS
  return createHooks({
    ...createRemoteDependencies(environment),
    client,
    mode: 'interactive',
    registersBoot,
    disks: () => [],
    transcript: () => [],
  })
}

async function openClient({ env, signal }: RemoteEnvironment): Promise<ServerClient | null> {
  const base = env['FLASHER_LIVE_SERVER'] ?? ''
  const mac = parseMac(env['FLASHER_LIVE_MAC'] ?? '')
  if (base === '' || !mac.ok) return null
  const { createServerClient } = await import('#flasher/link/server-client.ts')
  const token = env['FLASHER_PXE_TOKEN'] || null
  const others = parseServerList(env['FLASHER_LIVE_SERVERS'] ?? null)
  // The address that answered when the wizard opened is among `others` as well.
  const rest = others.filter((other) => other !== base)
  return createServerClient({ base, others: rest, mac: mac.value, token, env, signal })
}
