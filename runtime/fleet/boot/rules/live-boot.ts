/** Parses what the kernel command line of a live boot says to the wizard. */
import { KERNEL_ARGS } from '../../../../appliance/contract.ts'
import { parseKernelArgs } from './kernel-args.ts'
import { parseServerList } from '../../../kit/net/rules/server-address.ts'

export interface LiveBoot {
  /** Null: standalone, as from a stick. */
  readonly server: string | null
  /** The other servers of the site; those of earlier releases name none. */
  readonly others: readonly string[]
  /** Null: nobody drives this machine. */
  readonly mac: string | null
  readonly token: string | null
  /** The catalog that the wizard offers as its default. */
  readonly catalog: string | null
}

/** Parses all of /proc/cmdline. An empty value is as good as none. */
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

/**
 * Tells whether the server decides what happens here; then one console does it and the others look
 * on.
 */
export const isDriven = ({ server, mac }: LiveBoot): boolean => server !== null && mac !== null

/** Renders the arguments of the wizard that does what the server says. */
export const renderDriverArgs = ({ server, others, mac }: LiveBoot): readonly string[] => [
  ...(server === null ? [] : [server, ...others].flatMap((each) => ['--server', each])),
  ...(mac === null ? [] : ['--mac', mac]),
]

/**
 * Renders the arguments of a wizard for the person at the console. `base` is the address at which
 * the server answers, or null. A server that cannot be reached or parsed is passed on anyway, so
 * that the wizard reports it, unless the console that the server drives does.
 */
export function renderGuestArgs({ server, mac }: LiveBoot, base: string | null): readonly string[] {
  if (base !== null) return ['--server', base, '--catalog', `${base}/catalog.toml`]
  return server === null || mac !== null ? [] : [`--server=${server}`]
}

/**
 * Returns the variables added to the wizard's environment. `base` is the address of the server, for
 * a wizard that it does not drive but whose flashes are reported to it.
 */
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
