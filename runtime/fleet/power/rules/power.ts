/** What can be asked of a machine's power, how it is planned, and what it came to. */
import { parseJson } from '#kit/foundation/json-reader.ts'
import { printable } from '#kit/foundation/printable.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'
import { isLoopback, isNamedBy, isNoHost, plainAddress } from '#kit/net/rules/direct-host.ts'
import type { Mac } from '#kit/net/rules/mac.ts'

/** `unknown`: this way cannot tell, or the BMC said something else. */
export type PowerState = 'on' | 'off' | 'unknown'

/** While a machine is turning on, nothing is pressed. */
export type PowerReading = PowerState | 'turning-on'

/** Outside a request, turning on is neither on nor off. */
export const stateOf = (reading: PowerReading): PowerState =>
  reading === 'turning-on' ? 'unknown' : reading

export const POWER_ACTIONS = ['on', 'off', 'restart', 'read'] as const
export type PowerAction = (typeof POWER_ACTIONS)[number]

/** For the next boot alone. `network`: PXE; `http`: UEFI HTTP Boot; `cd`: virtual media. */
export const BOOT_DEVICES = ['network', 'http', 'cd'] as const
export type BootDevice = (typeof BOOT_DEVICES)[number]

export interface BootOnce {
  readonly device: BootDevice
  readonly firmware: Firmware
  /** For HTTP Boot (null: DHCP's), or the virtual CD's ISO. */
  readonly url: string | null
}

export const FIRMWARES = ['uefi', 'bios'] as const
type Firmware = (typeof FIRMWARES)[number]

/** A restart is an `off` and an `on`, so that both can be confirmed. */
export const POWER_PRESSES = ['on', 'off'] as const
export type PowerPress = (typeof POWER_PRESSES)[number]

const TROUBLES = [
  'address', // it may not be contacted
  'unreachable', // no answer, or none that ends
  'certificate', // another certificate than the one that is pinned
  'login', // user or password is refused
  'sessions', // it has too many sessions
  'unsupported', // it cannot do that
  'refused', // it refused
  'not-now', // the machine is on, or being written, and nobody asked to end that
  'answer', // it answered what cannot be understood
  'boot-lost', // the boot device that was set reads back as another
  'not-so', // it accepted, and the state never became so
  'tool', // a program that is needed is missing
  'busy', // too much is waiting for it already
] as const
type TroubleKind = (typeof TROUBLES)[number]

export interface PowerTrouble {
  readonly kind: TroubleKind
  /** A clause without a full stop. */
  readonly seen: string
  /** What to do, in a sentence. */
  readonly fix: string
  readonly passes: boolean
}

export interface PowerFailure extends PowerTrouble {
  readonly asked: string
  /** The last state read before. */
  readonly state: PowerState
}

export interface PowerDone {
  readonly state: PowerState
  /** False: sent, but this way cannot tell the result. */
  readonly confirmed: boolean
  /** False: it was so already, nothing was sent. */
  readonly changed: boolean
  /** `set`: read back; `own`: the machine's own order decides. */
  readonly boot: 'set' | 'sent' | 'own' | null
}

export const renderPowerFailure = ({ asked, seen, fix }: PowerFailure): string =>
  `${asked}: ${seen}. ${fix}`

export const lasting = (kind: TroubleKind, seen: string, fix: string): PowerTrouble => ({
  kind,
  seen,
  fix,
  passes: false,
})

export const passing = (kind: TroubleKind, seen: string, fix: string): PowerTrouble => ({
  kind,
  seen,
  fix,
  passes: true,
})

const MAX_WORDS = 200

export function quote(text: string): string {
  const line = printable(
    text
      .slice(0, 4 * MAX_WORDS)
      .trim()
      .replaceAll(/\s+/g, ' '),
  )
  return line.length > MAX_WORDS ? `${line.slice(0, MAX_WORDS)}…` : line
}

export interface PowerSeen {
  readonly state: PowerState
  /** ISO time; null: never read. */
  readonly at: string | null
  /** A later failure; null: none. */
  readonly failure: PowerFailure | null
}

export interface PowerAbilities {
  readonly reads: boolean
  readonly presses: readonly PowerPress[]
  readonly boots: readonly BootDevice[]
  readonly confirmsBoot: boolean
}

export interface PowerStep {
  readonly press: PowerPress
  readonly boot: BootOnce | null
}

/** What a BMC says of itself; null: nothing. */
export interface PowerAbout {
  readonly model: string | null
  readonly firmware: string | null
  readonly lacks: readonly (PowerPress | BootDevice)[]
}

/** What a test of a BMC found; nothing of it is kept. */
export interface PowerTested extends PowerAbout {
  /** Null: this way cannot tell. */
  readonly state: PowerState | null
  /** SHA-256 in hexadecimal, or `authority`; null: none was shown. */
  readonly certificate: string | null
  readonly can: readonly (PowerPress | BootDevice)[]
}

interface PowerPlan {
  readonly steps: readonly PowerStep[]
  /** This way cannot set the requested device: the machine's own order decides. */
  readonly isOwnOrder: boolean
}

/** `seen`: the state read just before. */
export function planPower(
  action: PowerAction,
  boot: BootOnce | null,
  seen: PowerState,
  abilities: PowerAbilities,
): Result<PowerPlan, PowerTrouble> {
  const isOwnOrder = boot?.device === 'network' && abilities.boots.length === 0
  const wanted = isOwnOrder ? null : boot
  if (wanted !== null && !abilities.boots.includes(wanted.device)) {
    return refuse(
      lasting('unsupported', `this type cannot boot from ${NAMES[wanted.device]}`, OTHER),
    )
  }
  const steps = listSteps(action, wanted, seen)
  if (!steps.ok) return steps
  const missing = steps.value.find(({ press }) => !abilities.presses.includes(press))
  if (missing !== undefined) {
    return refuse(lasting('unsupported', `this type cannot turn it ${missing.press}`, OTHER))
  }
  return accept({ steps: steps.value, isOwnOrder })
}

function listSteps(
  action: PowerAction,
  boot: BootOnce | null,
  seen: PowerState,
): Result<readonly PowerStep[], PowerTrouble> {
  const on = { press: 'on', boot } as const
  const off = { press: 'off', boot: null } as const
  switch (action) {
    case 'read':
      return accept([])
    case 'off':
      return accept(seen === 'off' ? [] : [off])
    case 'on':
      if (seen !== 'on') return accept([on])
      return boot === null ? accept([]) : refuse(lasting('not-now', IS_ON, RESTART))
    case 'restart':
      return accept(seen === 'off' ? [on] : [off, on])
  }
}

const NAMES: Readonly<Record<BootDevice, string>> = {
  network: 'the network',
  http: 'an address over HTTP',
  cd: 'a virtual CD',
}
const OTHER = 'Choose another action, or set up another type of power control.'
const IS_ON = 'it is on already, and only a restart would boot it'
const RESTART = 'Ask for a restart if what runs on it may end.'

export const renderHookUrl = (template: string, mac: Mac): URL =>
  new URL(
    template
      .replaceAll('{mac}', encodeURIComponent(mac))
      .replaceAll('%7Bmac%7D', encodeURIComponent(mac)),
  )

const WORDS: Readonly<Record<string, PowerState>> = {
  on: 'on',
  off: 'off',
  '1': 'on',
  '0': 'off',
  true: 'on',
  false: 'off',
}

const FIELDS = ['state', 'power', 'POWER', 'ison', 'on', 'status']

/** `on`, `off` or a synonym, as the whole text or a field of a JSON object; null: neither. */
export function readHookState(body: string): PowerState | null {
  const plain = WORDS[body.trim().toLowerCase()]
  if (plain !== undefined) return plain
  const document = parseJson(body)
  const entries = typeof document === 'object' && document !== null ? Object.entries(document) : []
  const known = new Map<string, unknown>(entries)
  for (const field of FIELDS) {
    const state = WORDS[String(known.get(field)).toLowerCase()]
    if (state !== undefined) return state
  }
  return null
}

/** A value this short in the URL is no secret. */
const MAX_PLAIN = 3

/** Hides the query of the URL and the password, which the answer may repeat. */
export function quoteHook(body: string, url: URL, password: string): string {
  const secrets = [password, url.search.slice(1), ...url.searchParams.values()]
  const hidden = secrets
    .flatMap((secret) => [secret, encodeURIComponent(secret), JSON.stringify(secret).slice(1, -1)])
    .filter((secret) => secret.length > MAX_PLAIN)
    .reduce((text, secret) => text.replaceAll(secret, '…'), body)
  return quote(hidden)
}

export interface ReachRules {
  readonly networks: readonly string[]
  readonly own: readonly string[]
  readonly ownPorts: readonly number[]
}

/**
 * Null: it may be contacted. Loopback may be an emulator, so it is refused only if no loopback
 * network allows it, or our own service listens there.
 */
export function refuseAddress(
  { address, port }: { readonly address: string; readonly port: number },
  { networks, own, ownPorts }: ReachRules,
): PowerTrouble | null {
  if (networks.length === 0) return lasting('address', 'no BMC network is allowed', SET_NETWORKS)
  const plain = plainAddress(address)
  if (isNoHost(plain))
    return lasting('address', `${plain} is not the address of a machine`, CORRECT)
  if (!isNamedBy(plain, networks)) {
    return lasting(
      'address',
      `${plain} is outside the networks of your BMCs`,
      `${CORRECT} ${SET_NETWORKS}`,
    )
  }
  const isOwn = isLoopback(plain) ? ownPorts.includes(port) : own.map(plainAddress).includes(plain)
  return isOwn ? lasting('address', `${plain} is this server itself`, CORRECT) : null
}

/** Null: the label's credential may be sent. `address` may come from a name server. */
export function refuseForLabel(
  address: string,
  { label, addresses }: { readonly label: string | null; readonly addresses: readonly string[] },
): PowerTrouble | null {
  const plain = plainAddress(address)
  if (isNamedBy(plain, addresses)) return null
  const seen = `the password of the label ${label} may not be sent to ${plain}`
  return lasting('address', seen, describeListing(label ?? ''))
}

/** For a label's password that may be sent nowhere, or not to an address. */
export const describeListing = (label: string): string =>
  `Make sure which BMCs have it, and list all of their addresses or ranges: PUT /power/credentials/labels/${encodeURIComponent(label)} {"addresses": ["10.20.0.0/24"]}.`

const IPMI_PORT = 623

/** As far as `networks` decides, for IPMI at an address not yet saved. */
export const mayContact = (address: string | null, networks: readonly string[]): boolean =>
  address !== null &&
  refuseAddress({ address, port: IPMI_PORT }, { networks, own: [], ownPorts: [] }) === null

const CORRECT = 'Correct the address of its BMC.'
const SET_NETWORKS = 'Add its network under Settings, Networks of BMCs.'
