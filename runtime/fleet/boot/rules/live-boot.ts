/** Parses what the kernel command line of a live boot says to the wizard. */
import { KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'
import { parseKernelArgs } from './boot-decision.ts'
import { parseServerList } from '#kit/net/rules/host-header.ts'

export interface LiveBoot {
  /** Null: standalone, as from a stick. */
  readonly server: string | null
  readonly others: readonly string[]
  /** Null: no server drives this machine. */
  readonly mac: string | null
  readonly token: string | null
  readonly catalog: string | null
}

/** All of /proc/cmdline. An empty value counts as absent. */
export function parseLiveBoot(line: string): LiveBoot {
  const args = parseKernelArgs(line)
  const valueOf = (name: string) => args.get(name)?.trim() || null
  return {
    server: valueOf(KERNEL_ARGS.server),
    others: parseServerList(valueOf(KERNEL_ARGS.servers)),
    mac: valueOf(KERNEL_ARGS.mac),
    token: valueOf(KERNEL_ARGS.token),
    catalog: valueOf(KERNEL_ARGS.catalog),
  }
}

/** The server decides; one console acts and the others look on. */
export const isDriven = ({ server, mac }: LiveBoot): boolean => server !== null && mac !== null

export const renderDriverArgs = ({ server, others, mac }: LiveBoot): readonly string[] => [
  ...(server === null ? [] : [server, ...others].flatMap((each) => ['--server', each])),
  ...(mac === null ? [] : ['--mac', mac]),
]

/**
 * For the person at the console. `base`: the address at which the server answers, or null. An
 * unusable server is passed on anyway, so that the wizard reports it, unless the driven console
 * does.
 */
export function renderGuestArgs({ server, mac }: LiveBoot, base: string | null): readonly string[] {
  if (base !== null) return ['--server', base, '--catalog', `${base}/catalog.toml`]
  return server === null || mac !== null ? [] : [`--server=${server}`]
}

/** `base`: the server's address, for a wizard that reports its flashes but is not driven. */
export const renderWizardEnv = (
  boot: LiveBoot,
  base: string | null = null,
): Readonly<Record<string, string>> => ({
  FLASHER_LIVE: '1',
  ...(base === null || boot.mac === null
    ? {}
    : {
        FLASHER_LIVE_SERVER: base,
        ...(boot.others.length === 0 ? {} : { FLASHER_LIVE_SERVERS: boot.others.join(',') }),
        FLASHER_LIVE_MAC: boot.mac,
      }),
  ...(boot.token === null ? {} : { FLASHER_PXE_TOKEN: boot.token }),
  ...(boot.catalog === null ? {} : { FLASHER_DEFAULT_CATALOG: boot.catalog }),
})

// Paths by which the consoles of a live system agree who drives it, and show what is done.

export type ConsolePaths = Readonly<Record<keyof typeof CONSOLE_PATHS, string>>

export const CONSOLE_PATHS = {
  kernelArguments: '/proc/cmdline',
  terminal: '/proc/self/fd/0',
  kmsg: '/dev/kmsg',
  console: '/dev/console',
  /** The driving console writes what it does here. */
  status: LIVE_PATHS.status,
  /** Consoles agree by this name who drives; it is no file. */
  lock: '/run/flasher/driver',
  /** Counts the tries of this boot: a program that died is tried again, but not for ever. */
  driven: '/run/flasher/driven',
}
