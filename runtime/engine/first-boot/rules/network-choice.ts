/** The usual networks of a template as choices, and as the text that cloud-init reads; any other text stays one. */
import { z } from 'zod'

interface StaticNetwork {
  /** With its prefix length; placeholders are allowed in all three. */
  readonly address: string
  /** Empty: no route leads out of the network. */
  readonly gateway: string
  readonly nameservers: readonly string[]
}

export type NetworkChoice =
  | { readonly kind: 'image' }
  | { readonly kind: 'dhcp' }
  | ({ readonly kind: 'static' } & StaticNetwork)
  | { readonly kind: 'text'; readonly text: string }

export const NETWORK_KINDS = ['image', 'dhcp', 'static', 'text'] as const

const DHCP = 'version: 2\nethernets:\n  all:\n    match: {name: "e*"}\n    dhcp4: true\n'

/** Null: the image decides. */
export function renderNetwork(choice: NetworkChoice): string | null {
  switch (choice.kind) {
    case 'image':
      return null
    case 'dhcp':
      return DHCP
    case 'static':
      return renderStatic(choice)
    case 'text':
      return choice.text
  }
}

/** Some writers of network files of cloud-init know cards by name alone. */
function renderStatic({ address, gateway, nameservers }: StaticNetwork): string {
  const to = gateway.includes(':') ? '::/0' : '0.0.0.0/0'
  const lines = [
    'version: 2',
    'ethernets:',
    '  boot0:',
    '    match: {macaddress: "{{mac}}"}',
    '    set-name: boot0',
    `    addresses: ["${address}"]`,
    ...(gateway === '' ? [] : [`    routes: [{to: "${to}", via: "${gateway}"}]`]),
    ...(nameservers.length === 0
      ? []
      : [`    nameservers: {addresses: [${nameservers.map((each) => `"${each}"`).join(', ')}]}`]),
  ]
  return `${lines.join('\n')}\n`
}

/**
 * Only what `renderNetwork` writes, byte for byte, so that saving the choice again changes nothing.
 */
export function readNetwork(text: string | null): NetworkChoice {
  if (text === null) return { kind: 'image' }
  if (text === DHCP) return { kind: 'dhcp' }
  const nameservers = [...capture(text, NAMESERVERS).matchAll(/"([^"]*)"/g)].map(
    ([, each = '']) => each,
  )
  const choice = {
    kind: 'static',
    address: capture(text, ADDRESS),
    gateway: capture(text, GATEWAY),
    nameservers,
  } as const
  const isOurs = findNetworkMistakes(choice).length === 0 && renderStatic(choice) === text
  return isOurs ? choice : { kind: 'text', text }
}

const ADDRESS = /^ {4}addresses: \["([^"\n]*)"\]$/m
const GATEWAY = /^ {4}routes: .* via: "([^"\n]*)"\}\]$/m
const NAMESERVERS = /^ {4}nameservers: \{addresses: \[(.*)\]\}$/m

const capture = (text: string, pattern: RegExp): string => pattern.exec(text)?.[1] ?? ''

const [FOUR, SIX] = [z.ipv4(), z.ipv6()]
const HOSTS = z.union([FOUR, SIX])
const ADDRESSES = z.union([z.cidrv4(), z.cidrv6()])

export function findNetworkMistakes({
  address,
  gateway,
  nameservers,
}: StaticNetwork): readonly (keyof StaticNetwork)[] {
  const isAddress = ADDRESSES.safeParse(sample(address)).success
  // A gateway of the other family would never be used.
  const family = address.includes(':') ? SIX : FOUR
  const isGateway = gateway === '' || family.safeParse(sample(gateway)).success
  return [
    ...(isAddress ? [] : (['address'] as const)),
    ...(isGateway || !isAddress ? [] : (['gateway'] as const)),
    ...(nameservers.every((each) => HOSTS.safeParse(sample(each)).success)
      ? []
      : (['nameservers'] as const)),
  ]
}

const sample = (text: string): string => text.replaceAll(/\{\{[^{}\n"\\]*\}\}/g, '1')
