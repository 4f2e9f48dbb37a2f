/** Has the privileged helper activate the DHCP proxy: the only thing that this server may do as root. */
import { networkInterfaces } from 'node:os'
import { isThere } from '#kit/config/state-dirs.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import type { Shell } from '#kit/host/shell.ts'
import { readActive } from './dnsmasq-proxy.ts'
import {
  type ActiveProxy,
  type FirmwareLoader,
  type InterfaceAddress,
  parseActivation,
} from './rules/dhcp.ts'

const HELPER = 'flasher-web-activate-pxe'
/** The first is for the appliance and npm packages, the second for Debian packages. */
const PATHS = [`/usr/local/sbin/${HELPER}`, `/usr/sbin/${HELPER}`]
/** Longer than three waits of the helper for dnsmasq. */
const LIMIT_MS = 90_000

interface PxeHelperDependencies {
  readonly shell: Pick<Shell, 'run' | 'has'>
  readonly isRoot: boolean
  /** Empty: the usual places. */
  path(): string
}

interface ActivationOptions {
  readonly device: string
  readonly subnet: string
  readonly port: number
  readonly loader: FirmwareLoader
}

export interface PxeHelper {
  /** A sentence; null: no known obstacle. */
  findObstacle(): Promise<string | null>
  readActive(): Promise<ActiveProxy | null>
  activate(options: ActivationOptions): Promise<Result<null, string>>
  deactivate(): Promise<Result<null, string>>
}

export function createPxeHelper({ shell, isRoot, path }: PxeHelperDependencies): PxeHelper {
  async function find(): Promise<string | null> {
    for (const each of path() === '' ? PATHS : [path()]) if (await isThere(each)) return each
    return null
  }

  async function findObstacle(): Promise<string | null> {
    if ((await find()) === null) return `${path() || PATHS[0]} is not installed.`
    if (!(await shell.has('dnsmasq'))) return 'dnsmasq is not installed.'
    return isRoot || (await shell.has('sudo')) ? null : 'sudo is not installed.'
  }

  async function call(args: readonly string[]): Promise<Result<null, string>> {
    const obstacle = await findObstacle()
    const helper = await find()
    if (obstacle !== null || helper === null) return refuse(obstacle ?? `${HELPER} is missing.`)
    const argv = [...(isRoot ? [] : ['sudo', '-n']), helper, ...args]
    const { exitCode, stdout, stderr } = await shell.run(argv, { timeout: LIMIT_MS })
    return exitCode === 0 ? accept(null) : refuse(wordsOf(stderr || stdout))
  }

  return {
    findObstacle,
    async readActive() {
      const text = await readActive()
      return text === null ? null : parseActivation(text)
    },
    activate: ({ device, subnet, port, loader }) =>
      call([
        'activate',
        ...(loader === 'grub' ? ['--secure-boot'] : []),
        device,
        subnet,
        String(port),
      ]),
    deactivate: () => call(['deactivate']),
  }
}

const MAX_WORDS = 600

const wordsOf = (said: string) =>
  said
    .replaceAll(`${HELPER}: `, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .slice(0, MAX_WORDS) || 'the helper ended without a message'

/** IPv4 first; without bridges of containers on this host. */
export function listLanAddresses(): readonly InterfaceAddress[] {
  const found = listCards().flatMap(
    ({ device, address, cidr, family }): readonly InterfaceAddress[] => {
      const prefix = Number(cidr?.split('/')[1] ?? Number.NaN)
      if (LINK_LOCAL.test(address) || !Number.isInteger(prefix)) return []
      return [{ device, address, prefix, family: family === 'IPv6' ? 6 : 4 }]
    },
  )
  return found.toSorted((one, two) => one.family - two.family)
}

/** The card with this `mac`, else the first one with an address. */
export function findOwnCard(mac: string | null): {
  readonly mac: string | null
  readonly address: string | null
} {
  const own = listCards().filter((card) => mac === null || card.mac === mac)
  const reachable = own.filter(({ address }) => !LINK_LOCAL.test(address))
  const best = reachable.find(({ family }) => family === 'IPv4') ?? reachable[0] ?? own[0]
  return {
    mac: mac ?? best?.mac ?? null,
    address: reachable.length > 0 ? (best?.address ?? null) : null,
  }
}

const listCards = () =>
  Object.entries(networkInterfaces()).flatMap(([device, list = []]) =>
    list.flatMap((card) => (card.internal || INNER.test(device) ? [] : [{ device, ...card }])),
  )

const INNER = /^(docker|veth|br-[0-9a-f]{12}|cni|podman|virbr|lxcbr|lxdbr)/
const LINK_LOCAL = /^(fe80:|169\.254\.)/i
