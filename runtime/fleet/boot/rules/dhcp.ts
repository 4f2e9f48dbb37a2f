/** Configuration of DHCP servers that makes machines boot from this server, as blocks to paste. */
import { SHIM_FILES } from '#appliance/assets.ts'
import { accept, refuse, type Result } from '#kit/foundation/result.ts'

export interface DhcpTarget {
  /** IPv4, also of the TFTP daemon. */
  readonly address: string
  /** `http://192.0.2.10:8080`, no trailing slash. */
  readonly baseUrl: string
  /** The machines' network, for blocks that need it: `192.0.2.0`, 24. */
  readonly network: string
  readonly prefix: number
  readonly loader: FirmwareLoader
  /** By PXE from a proxy; absent: `loader`. */
  readonly pxeLoader?: FirmwareLoader
  /** The site has other servers: iPXE gets the script that names all, by TFTP. */
  readonly hasOthers?: boolean
}

/** By DHCP server: its name, the file or menu of the block, and a note. */
const RECIPES = {
  dnsmasq: {
    title: 'dnsmasq',
    where: '/etc/dnsmasq.d/flasher.conf',
    note: 'For a dnsmasq that assigns the addresses. Its own TFTP daemon can serve the files.',
  },
  'dnsmasq-proxy': {
    title: 'dnsmasq, beside another DHCP server',
    where: '/etc/dnsmasq.d/flasher.conf',
    note: 'Assigns no addresses and only adds what to boot. It must be in the same network.',
  },
  kea: {
    title: 'Kea',
    where: '/etc/kea/kea-dhcp4.conf',
    note: 'Add the client classes to your configuration; the subnet is only an example.',
  },
  isc: { title: 'ISC dhcpd', where: '/etc/dhcp/dhcpd.conf', note: 'Insert it before the subnets.' },
  opnsense: {
    title: 'OPNsense',
    where: 'Services: ISC DHCPv4: (your network): Network Booting',
    note: 'If its DHCP server is Kea or Dnsmasq, use their blocks above.',
  },
  windows: {
    title: 'Windows Server',
    where: 'PowerShell as administrator, on the DHCP server',
    note: 'It requires Windows Server 2012 or newer. Skip the first line if option 60 is defined already.',
  },
  mikrotik: {
    title: 'MikroTik RouterOS 7',
    where: 'a terminal of the router',
    note: 'The matchers require RouterOS 7.4 or newer. Replace defconf with the name of your DHCP server.',
  },
  unifi: {
    title: 'UniFi Network',
    where: 'Settings: Networks: (your network): DHCP Service Management',
    note: 'It gives every machine the same answer. Use the iPXE of a release, which finds the server itself, or add dnsmasq as a proxy.',
  },
} as const

type RecipeName = keyof typeof RECIPES

export interface DhcpRecipe {
  readonly id: string
  readonly title: string
  readonly where: string
  readonly note: string
  readonly text: string
}

/** Firmware loads these by TFTP; iPXE never gets them, or it would load itself for ever. */
export const BIOS_FILE = 'undionly.kpxe'
/** Debian's signed shim and GRUB, or iPXE, which Secure Boot refuses. */
export const FIRMWARE_LOADERS = ['grub', 'ipxe'] as const
export type FirmwareLoader = (typeof FIRMWARE_LOADERS)[number]
export const UEFI_FILES = {
  grub: { uefi: SHIM_FILES.x86_64, arm: SHIM_FILES.arm64 },
  ipxe: { uefi: 'ipxe.efi', arm: 'ipxe-arm64.efi' },
} as const satisfies Record<FirmwareLoader, Readonly<Record<'uefi' | 'arm', string>>>

/** Client architectures (RFC 4578 and the registry that follows it). */
const ARCH = { bios: 0, uefi: 7, uefiOld: 9, arm: 11, http: 16, httpArm: 19 } as const

type DhcpRefusal = 'not-ipv4' | 'not-a-url'

/** Blocks need no escaping: everything in them is checked here. */
export function planDhcp(
  address: string,
  prefix: number,
  baseUrl: string,
  loader: FirmwareLoader = 'ipxe',
): Result<DhcpTarget, DhcpRefusal> {
  const octets = /^\d{1,3}(\.\d{1,3}){3}$/.test(address) ? address.split('.').map(Number) : []
  const isPrefix = Number.isInteger(prefix) && prefix >= 1 && prefix <= 32
  if (octets.length !== 4 || octets.some((one) => one > 255) || !isPrefix) return refuse('not-ipv4')
  if (!/^https?:\/\/[\w.~:[\]/-]*[\w\]]$/.test(baseUrl) || baseUrl.length > 200) {
    return refuse('not-a-url')
  }
  const network = toAddress(toNumber(octets) & maskOf(prefix))
  return accept({ address: octets.join('.'), baseUrl, network, prefix, loader })
}

export const renderDhcpRecipes = (target: DhcpTarget): readonly DhcpRecipe[] => [
  recipe('dnsmasq', renderDnsmasq(target)),
  recipe('dnsmasq-proxy', renderProxy(target)),
  recipe('kea', renderKea(target)),
  recipe('isc', renderIsc(target)),
  recipe('opnsense', renderOpnsense(target)),
  recipe('windows', renderWindows(target)),
  recipe('mikrotik', renderMikrotik(target)),
  recipe('unifi', renderUnifi(target)),
]

const uefiOf = ({ loader }: DhcpTarget) => UEFI_FILES[loader].uefi
const armOf = ({ loader }: DhcpTarget) => UEFI_FILES[loader].arm
const pxeOf = ({ loader, pxeLoader = loader }: DhcpTarget) => UEFI_FILES[pxeLoader]
const recipe = (id: RecipeName, text: string): DhcpRecipe => ({
  id,
  ...RECIPES[id],
  text,
})

/** A name alone is a file of the TFTP daemon. */
export const scriptOf = ({
  baseUrl,
  hasOthers = false,
}: Pick<DhcpTarget, 'baseUrl' | 'hasOthers'>) =>
  hasOthers ? AUTOEXEC : `${baseUrl}/pxe-bootstrap.ipxe`
export const AUTOEXEC = 'autoexec.ipxe'
const httpOf = ({ baseUrl }: DhcpTarget, file: string) => `${baseUrl}/boot/${file}`
const lines = (...text: readonly string[]) => `${text.join('\n')}\n`

/** iPXE has its own user class and option 175. */
const dnsmasqTags = [
  'dhcp-userclass=set:ipxe,iPXE',
  'dhcp-match=set:ipxe,175',
  `dhcp-match=set:bios,option:client-arch,${ARCH.bios}`,
  `dhcp-match=set:efi,option:client-arch,${ARCH.uefi}`,
  `dhcp-match=set:efi,option:client-arch,${ARCH.uefiOld}`,
  `dhcp-match=set:arm,option:client-arch,${ARCH.arm}`,
  `dhcp-match=set:http,option:client-arch,${ARCH.http}`,
  `dhcp-match=set:httparm,option:client-arch,${ARCH.httpArm}`,
]

function renderDnsmasq(target: DhcpTarget): string {
  const { address } = target
  return lines(
    ...dnsmasqTags,
    '# Firmware loads its first file by TFTP',
    `dhcp-boot=tag:bios,tag:!ipxe,${BIOS_FILE},,${address}`,
    `dhcp-boot=tag:efi,tag:!ipxe,${uefiOf(target)},,${address}`,
    `dhcp-boot=tag:arm,tag:!ipxe,${armOf(target)},,${address}`,
    ...dnsmasqHttp(target),
  )
}

const dnsmasqHttp = (target: DhcpTarget, net = ''): readonly string[] => [
  '# or by UEFI HTTP Boot, which requires its own vendor class in the answer',
  `dhcp-option-force=${net}tag:http,tag:!ipxe,60,HTTPClient`,
  `dhcp-boot=${net}tag:http,tag:!ipxe,${httpOf(target, uefiOf(target))}`,
  `dhcp-option-force=${net}tag:httparm,tag:!ipxe,60,HTTPClient`,
  `dhcp-boot=${net}tag:httparm,tag:!ipxe,${httpOf(target, armOf(target))}`,
  '# iPXE goes on by HTTP',
  `dhcp-boot=${net}tag:ipxe,${scriptOf(target)},,${target.address}`,
]

const renderProxy = (target: DhcpTarget): string => `port=0\n${renderProxyDhcp(target)}`

/** With `pxe-service`: PXE firmware takes no `dhcp-boot` from a proxy. Several networks have a tag each. */
export function renderProxyDhcp(...targets: readonly DhcpTarget[]): string {
  const tagOf = (at: number, verb = 'tag') => (targets.length > 1 ? `${verb}:net${at},` : '')
  return lines(
    ...targets.map(
      ({ network, prefix }, at) =>
        `dhcp-range=${tagOf(at, 'set')}${network},proxy,${toAddress(maskOf(prefix))}`,
    ),
    '# A proxy answers these alone, each with its own name',
    'dhcp-pxe-vendor=PXEClient,HTTPClient',
    ...dnsmasqTags,
    ...targets.flatMap((target, at) => [
      '# Firmware loads its first file by TFTP',
      ...Object.entries({
        x86PC: BIOS_FILE,
        'X86-64_EFI': pxeOf(target).uefi,
        BC_EFI: pxeOf(target).uefi,
        ARM64_EFI: pxeOf(target).arm,
      }).map(
        ([system, file]) =>
          `pxe-service=${tagOf(at)}tag:!ipxe,${system},"flasher",${file},${target.address}`,
      ),
      ...dnsmasqHttp(target, tagOf(at)),
    ]),
  )
}

const IS_IPXE = "option[77].text == 'iPXE'"
/** Option 93 is a number of two bytes. */
const isKeaArch = (...archs: readonly number[]) =>
  `(${archs.map((arch) => `option[93].hex == 0x${arch.toString(16).padStart(4, '0')}`).join(' or ')}) and not (${IS_IPXE})`

function renderKea(target: DhcpTarget): string {
  const { address, network, prefix } = target
  const byTftp = (name: string, file: string, ...archs: readonly number[]) => ({
    name,
    test: isKeaArch(...archs),
    'next-server': address,
    'boot-file-name': file,
  })
  const byHttp = (name: string, file: string, arch: number) => ({
    name,
    test: isKeaArch(arch),
    'boot-file-name': httpOf(target, file),
    // A host's reservation comes first and must repeat both.
    'option-data': [
      { name: 'vendor-class-identifier', data: 'HTTPClient', 'always-send': true },
      { name: 'boot-file-name', data: httpOf(target, file) },
    ],
  })
  const config = {
    Dhcp4: {
      'client-classes': [
        {
          name: 'flasher-ipxe',
          test: IS_IPXE,
          'next-server': address,
          'boot-file-name': scriptOf(target),
        },
        byTftp('flasher-bios', BIOS_FILE, ARCH.bios),
        byTftp('flasher-uefi', uefiOf(target), ARCH.uefi, ARCH.uefiOld),
        byTftp('flasher-arm64', armOf(target), ARCH.arm),
        byHttp('flasher-http', uefiOf(target), ARCH.http),
        byHttp('flasher-http-arm64', armOf(target), ARCH.httpArm),
      ],
      subnet4: [{ id: 1, subnet: `${network}/${prefix}` }],
    },
  }
  return `${JSON.stringify(config, null, 2)}\n`
}

const isIscArch = (arch: number) => `option flasher-arch = 00:${arch.toString(16).padStart(2, '0')}`

function renderIsc(target: DhcpTarget): string {
  const http = (arch: number, file: string) => [
    `} elsif ${isIscArch(arch)} {`,
    '  option vendor-class-identifier "HTTPClient";',
    `  filename "${httpOf(target, file)}";`,
  ]
  return lines(
    'option flasher-arch code 93 = string;',
    `next-server ${target.address};`,
    'if exists user-class and option user-class = "iPXE" {',
    `  filename "${scriptOf(target)}";`,
    ...http(ARCH.http, uefiOf(target)),
    ...http(ARCH.httpArm, armOf(target)),
    `} elsif ${isIscArch(ARCH.uefi)} or ${isIscArch(ARCH.uefiOld)} {`,
    `  filename "${uefiOf(target)}";`,
    `} elsif ${isIscArch(ARCH.arm)} {`,
    `  filename "${armOf(target)}";`,
    '} else {',
    `  filename "${BIOS_FILE}";`,
    '}',
  )
}

const renderOpnsense = (target: DhcpTarget): string =>
  lines(
    'Enable network booting:   yes',
    `Next-server:              ${target.address}`,
    `TFTP server:              ${target.address}`,
    `Default BIOS file name:   ${BIOS_FILE}`,
    `x64 UEFI file name:       ${uefiOf(target)}`,
    `arm64 UEFI file name:     ${armOf(target)}`,
    `x64 UEFI/HTTPBoot URL:    ${httpOf(target, uefiOf(target))}`,
    `iPXE boot file name:      ${scriptOf(target)}`,
  )

/** Clients append to the class: `PXEClient:Arch:00007:UNDI:003016`. */
function renderWindows(target: DhcpTarget): string {
  const { address, network: scope } = target
  const policy = (name: string, order: number, match: string, ...options: readonly string[]) => [
    `Add-DhcpServerv4Policy -ScopeId ${scope} -Name ${name} -ProcessingOrder ${order} -Condition OR ${match}`,
    ...options.map(
      (option) =>
        `Set-DhcpServerv4OptionValue -ScopeId ${scope} -PolicyName ${name} -OptionId ${option}`,
    ),
  ]
  const clients = [
    ['flasher-bios', 'PXEClient', ARCH.bios, BIOS_FILE],
    ['flasher-uefi', 'PXEClient', ARCH.uefi, uefiOf(target)],
    ['flasher-uefi-old', 'PXEClient', ARCH.uefiOld, uefiOf(target)],
    ['flasher-arm64', 'PXEClient', ARCH.arm, armOf(target)],
    ['flasher-http', 'HTTPClient', ARCH.http, httpOf(target, uefiOf(target))],
    ['flasher-http-arm64', 'HTTPClient', ARCH.httpArm, httpOf(target, armOf(target))],
  ] as const
  return lines(
    'Add-DhcpServerv4OptionDefinition -OptionId 60 -Name PXEClient -Type String',
    "Add-DhcpServerv4Class -Name flasher-ipxe -Type User -Data 'iPXE'",
    ...clients.map(
      ([name, kind, arch]) =>
        `Add-DhcpServerv4Class -Name ${name} -Type Vendor -Data '${kind}:Arch:${String(arch).padStart(5, '0')}'`,
    ),
    '# iPXE first: it has the vendor class of its firmware as well',
    ...policy(
      'flasher-ipxe',
      1,
      '-UserClass EQ,flasher-ipxe',
      `66 -Value '${address}'`,
      `67 -Value '${scriptOf(target)}'`,
    ),
    ...clients.flatMap(([name, kind, , file], at) =>
      policy(
        name,
        at + 2,
        `-VendorClass EQ,'${name}*'`,
        kind === 'HTTPClient' ? "60 -Value 'HTTPClient'" : `66 -Value '${address}'`,
        `67 -Value '${file}'`,
      ),
    ),
  )
}

function renderMikrotik(target: DhcpTarget): string {
  const { address } = target
  return lines(
    routerOption('flasher-server', 66, address),
    routerOption('flasher-class', 60, 'HTTPClient'),
    routerOption('flasher-script', 67, scriptOf(target)),
    routerOption('flasher-bios', 67, BIOS_FILE),
    routerOption('flasher-uefi', 67, uefiOf(target)),
    routerOption('flasher-arm64', 67, armOf(target)),
    routerOption('flasher-http', 67, httpOf(target, uefiOf(target))),
    routerOption('flasher-http-arm64', 67, httpOf(target, armOf(target))),
    routerSet('flasher-ipxe', 'flasher-server', 'flasher-script'),
    routerSet('flasher-bios', 'flasher-server', 'flasher-bios'),
    routerSet('flasher-uefi', 'flasher-server', 'flasher-uefi'),
    routerSet('flasher-arm64', 'flasher-server', 'flasher-arm64'),
    routerSet('flasher-http', 'flasher-class', 'flasher-http'),
    routerSet('flasher-http-arm64', 'flasher-class', 'flasher-http-arm64'),
    '# iPXE first: the first one that matches counts',
    routerMatch('flasher-ipxe', 77, 'iPXE', 'flasher-ipxe'),
    routerMatch('flasher-http', 93, hexOf(ARCH.http), 'flasher-http'),
    routerMatch('flasher-http-arm64', 93, hexOf(ARCH.httpArm), 'flasher-http-arm64'),
    routerMatch('flasher-uefi', 93, hexOf(ARCH.uefi), 'flasher-uefi'),
    routerMatch('flasher-uefi-old', 93, hexOf(ARCH.uefiOld), 'flasher-uefi'),
    routerMatch('flasher-arm64', 93, hexOf(ARCH.arm), 'flasher-arm64'),
    routerMatch('flasher-bios', 93, hexOf(ARCH.bios), 'flasher-bios'),
  )
}

const routerOption = (name: string, code: number, value: string) =>
  `/ip dhcp-server option add name=${name} code=${code} value="'${value}'"`
const routerSet = (name: string, ...options: readonly string[]) =>
  `/ip dhcp-server option sets add name=${name} options=${options.join(',')}`
const routerMatch = (name: string, code: number, value: string, sets: string) =>
  `/ip dhcp-server matcher add name=${name} server=defconf code=${code} value="${value}" matching-type=exact option-set=${sets}`
const hexOf = (code: number) => `0x${code.toString(16).padStart(4, '0')}`

const renderUnifi = (target: DhcpTarget): string =>
  lines(
    'Network Boot:             on',
    `Server IP:                ${target.address}`,
    `Filename (UEFI):          ${uefiOf(target)}`,
    `TFTP Server (option 66):  ${target.address}`,
  )

const toNumber = (octets: readonly number[]) => octets.reduce((sum, octet) => (sum << 8) | octet, 0)
const toAddress = (number: number) =>
  [24, 16, 8, 0].map((shift) => (number >>> shift) & 255).join('.')
const maskOf = (prefix: number) => (prefix === 32 ? -1 : ~(0xffffffff >>> prefix))

// Decides what dnsmasq gets to be a DHCP proxy on one interface, from words that nobody has checked.

export interface InterfaceAddress {
  readonly device: string
  readonly address: string
  /** Bits of the network. */
  readonly prefix: number
  readonly family: 4 | 6
}

interface ActivationRequest {
  readonly device: string
  /** `a.b.c.d` or `a.b.c.d/nn`; host bits are ignored. */
  readonly subnet: string
  readonly port: string
  /** UEFI loads it; absent: iPXE. */
  readonly loader?: FirmwareLoader
}

export interface Activation {
  readonly device: string
  readonly target: DhcpTarget
}

export interface ActiveProxy {
  readonly device: string
  /** `192.0.2.0`. */
  readonly network: string
  /** Null: not in the file. */
  readonly port: number | null
  readonly loader: FirmwareLoader
}

const REFUSALS = {
  'no-interface': 'this host has no interface of that name',
  'no-ipv4': 'the interface has no IPv4 address',
  'not-a-subnet': 'the subnet must be written as a.b.c.d or a.b.c.d/nn, with nn from 8 to 30',
  'not-its-subnet': 'the interface has no address in that subnet',
  'not-a-port': 'the port must be a number from 1 to 65535',
} as const

type ActivationRefusal = keyof typeof REFUSALS

export const describeRefusal = (refusal: ActivationRefusal): string => REFUSALS[refusal]

/** Nothing that dnsmasq reads as more than a name: commas, blanks, a final `*`. */
const DEVICE = /^[A-Za-z0-9_][\w.:@-]{0,14}$/

/** Accepts only an existing interface, a subnet of its own, and a port. */
export function planActivation(
  { device, subnet, port, loader }: ActivationRequest,
  addresses: readonly InterfaceAddress[],
): Result<Activation, ActivationRefusal> {
  const own = DEVICE.test(device) ? addresses.filter((each) => each.device === device) : []
  if (own.length === 0) return refuse('no-interface')
  const usable = own.filter(({ family }) => family === 4)
  if (usable.length === 0) return refuse('no-ipv4')
  const asked = parseSubnet(subnet)
  if (asked === null) return refuse('not-a-subnet')
  if (!isPort(port)) return refuse('not-a-port')
  const chosen = usable.find(({ address, prefix }) => {
    const isMeant = asked.prefix === null || asked.prefix === prefix
    return (
      isMeant &&
      isPrefixLength(prefix) &&
      networkOf(address, prefix) === networkOf(asked.address, prefix)
    )
  })
  if (chosen === undefined) return refuse('not-its-subnet')
  const { address, prefix } = chosen
  const target = planDhcp(address, prefix, `http://${address}:${Number(port)}`, loader)
  return target.ok ? accept({ device, target: target.value }) : refuse('not-its-subnet')
}

export function renderNetwork({ address, prefix }: InterfaceAddress): string | null {
  const target = planDhcp(address, prefix, 'http://host')
  return target.ok ? `${target.value.network}/${prefix}` : null
}

/** No DNS or TFTP: dnsmasq refuses a keyword that two files set. */
export const renderActivation = ({ device, target }: Activation): string =>
  [
    '# Written by flasher-web-activate-pxe; it replaces the whole file.',
    'bind-dynamic',
    `interface=${device}`,
    renderProxyDhcp(target),
  ].join('\n')

/** Null: activates nothing. Reads the deployed servers' files, too. */
export function parseActivation(text: string): ActiveProxy | null {
  const device = /^interface=(\S+)$/m.exec(text)?.[1]
  const network = /^dhcp-range=([\d.]+),proxy(?:,|$)/m.exec(text)?.[1]
  if (device === undefined || network === undefined) return null
  const port = /^dhcp-boot=tag:ipxe,http:\/\/[^/]+:(\d{1,5})\//m.exec(text)?.[1]
  const loader = text.includes(`,${UEFI_FILES.grub.uefi},`) ? 'grub' : 'ipxe'
  return { device, network, port: port === undefined ? null : Number(port), loader }
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/

function parseSubnet(text: string) {
  const [address = '', bits, ...rest] = text.split('/')
  const octets = address.split('.')
  const isAddress =
    octets.length === 4 && octets.every((one) => OCTET.test(one) && Number(one) < 256)
  if (!isAddress || rest.length > 0) return null
  if (bits === undefined) return { address, prefix: null }
  const prefix = OCTET.test(bits) ? Number(bits) : 0
  return isPrefixLength(prefix) ? { address, prefix } : null
}

const isPrefixLength = (prefix: number) => prefix >= 8 && prefix <= 30

const isPort = (text: string) => /^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535

const networkOf = (address: string, prefix: number) => {
  const number = address.split('.').reduce((sum, octet) => sum * 256 + Number(octet), 0)
  return Math.floor(number / 2 ** (32 - prefix))
}

/** Chooses the address of this host that DHCP servers should name, from the one that the operator uses. */
type HostAddress = Omit<InterfaceAddress, 'device'>

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/
const UNKNOWN_PREFIX = 24

/** The request's address if machines can use it, else this host's first; null: none. */
export function decideDhcpTarget(
  baseUrl: string,
  addresses: readonly HostAddress[],
  loader: FirmwareLoader,
): DhcpTarget | null {
  const url = URL.parse(baseUrl)
  if (url === null) return null
  const chosen = chooseAddress(url, addresses)
  if (chosen === null) return null
  const port = url.port === '' ? '' : `:${url.port}`
  const base = LOOPBACK.test(url.hostname)
    ? `${url.protocol}//${chosen.address}${port}${url.pathname.replace(/\/$/, '')}`
    : baseUrl
  const target = planDhcp(chosen.address, chosen.prefix, base, loader)
  return target.ok ? target.value : null
}

function chooseAddress(
  { hostname }: URL,
  addresses: readonly HostAddress[],
): Pick<HostAddress, 'address' | 'prefix'> | null {
  const usable = addresses.filter(({ family }) => family === 4)
  const own = usable.find(({ address }) => address === hostname)
  const isElsewhere = own === undefined && /^\d+(\.\d+){3}$/.test(hostname)
  // Behind NAT or a proxy: machines see what the operator used.
  if (isElsewhere && !LOOPBACK.test(hostname)) return { address: hostname, prefix: UNKNOWN_PREFIX }
  return own ?? usable[0] ?? null
}
