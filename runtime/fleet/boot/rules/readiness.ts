/** Lists what network boot and flashing require, and which of it is set up (dashboard). */
import { renderSize } from '#kit/foundation/size.ts'
import { fill, fillCount } from '#kit/foundation/text.ts'
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { printable } from '#kit/foundation/printable.ts'

/** `missing`: nothing works without it; `unknown`: no proof yet; `optional`: some machines need it. */
type ReadinessState = 'ready' | 'attention' | 'missing' | 'unknown' | 'optional'

export interface ReadinessRow {
  readonly id: 'catalog' | 'netboot' | 'dhcp' | 'tftp' | 'disk'
  readonly state: ReadinessState
  readonly ok: boolean
  readonly title: string
  readonly text: string
  readonly why: string
  readonly href: string
  readonly action: string
}

export interface ReadinessFacts {
  readonly sets: readonly { readonly arch: string; readonly version: string | null }[]
  readonly catalog: {
    readonly images: number
    readonly error: string | null
    readonly isSet: boolean
  }
  readonly hasContact: boolean
  readonly tftp: TftpState
  /** Null: unreadable. */
  readonly disk: { readonly freeBytes: number; readonly isLow: boolean } | null
}

export const listReadiness = (facts: ReadinessFacts): readonly ReadinessRow[] => [
  judgeCatalog(facts),
  judgeNetboot(facts),
  judgeDhcp(facts),
  judgeTftp(facts),
  judgeDisk(facts),
]

function judgeCatalog({ catalog }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'catalog',
    title: 'Images',
    why: 'Machines are flashed with images from the cache.',
    href: '/ui/cache#add',
    action: 'Add an image',
  } as const
  const { images, error, isSet } = catalog
  if (!isSet)
    return row(
      { ...about, action: 'Connect a cache' },
      'missing',
      'No cache service is configured, so there are no images.',
    )
  const unavailable = { ...about, href: '/ui/cache', action: 'Check the cache' }
  if (images === 0 && error === null) return row(about, 'missing', 'There are no images yet.')
  if (images === 0) return row(unavailable, 'missing', 'The cache service is unavailable.')
  return error === null
    ? row(
        about,
        'ready',
        fillCount(
          { one: '1 image in the catalog.', other: '{count} images in the catalog.' },
          images,
        ),
      )
    : row(
        unavailable,
        'attention',
        fillCount(
          {
            one: '1 image known, but the cache service is unavailable.',
            other: '{count} images known, but the cache service is unavailable.',
          },
          images,
        ),
      )
}

function judgeNetboot({ sets }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'netboot',
    title: 'Live system',
    why: 'Machines boot it from the network to be flashed. Without it they can only boot their own disks.',
    action: 'Install a live system',
    href: '/ui/netboot#install',
  } as const
  if (sets.length === 0) return row(about, 'missing', 'No live system is installed.')
  const [first = '', second] = sets.map(
    ({ arch, version }) => `${version ?? 'an uploaded version'} (${arch})`,
  )
  const text =
    second === undefined ? `Machines boot ${first}.` : `Machines boot ${first} and ${second}.`
  return row(about, 'ready', text)
}

/** The DHCP server is not ours; only a machine's contact proves it. */
function judgeDhcp({ hasContact }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'dhcp',
    title: 'DHCP',
    why: 'Your DHCP server must tell machines to boot from this server.',
    action: 'Set up DHCP',
    href: '/ui/dhcp',
  } as const
  return hasContact
    ? row(about, 'ready', 'Machines find this server.')
    : row(about, 'unknown', 'No machine has booted from this server yet.')
}

function judgeTftp({ tftp }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'tftp',
    title: 'TFTP daemon',
    why: 'BIOS machines and most UEFI firmware load their first file by TFTP. UEFI HTTP Boot needs none.',
    action: 'Set up TFTP',
    href: '/ui/netboot#tftp',
  } as const
  const { text } = tftp
  if (tftp.isReady) return row(about, 'ready', text)
  if (!tftp.isChecked) return row(about, 'unknown', text)
  return row(about, tftp.isActive ? 'attention' : 'optional', text)
}

function judgeDisk({ disk }: ReadinessFacts): ReadinessRow {
  const about = {
    id: 'disk',
    title: 'Disk space',
    why: 'The server stops accepting changes when its disk is full.',
    action: 'Check storage',
    href: '/ui/settings#storage',
  } as const
  if (disk === null) return row(about, 'attention', 'Free space unknown.')
  const size = renderSize(disk.freeBytes)
  return disk.isLow
    ? row(about, 'attention', `Only ${size} free. Free up space on the server's disk.`)
    : row(about, 'ready', `${size} free.`)
}

const row = (
  about: Pick<ReadinessRow, 'id' | 'title' | 'why' | 'href' | 'action'>,
  state: ReadinessState,
  text: string,
): ReadinessRow => ({ ...about, state, ok: state === 'ready', text })

// The part of TFTP that requests one file from a daemon (RFC 1350), and the meaning of its response.

export const FIRST_FILE = SHIM_FILES.x86_64
const IPXE = 'ipxe.efi'

type Findings = Readonly<Partial<Record<TftpFinding['kind'], string>>>

/** The next probe, by file and finding: UEFI boots by shim and GRUB, or by iPXE. */
const NEXT: Readonly<Record<string, Findings>> = {
  [FIRST_FILE]: { serves: GRUB_FILES.x86_64, 'file-missing': IPXE },
  [GRUB_FILES.x86_64]: { serves: GRUB_CONFIG },
}

/** Null: the last finding says it all. */
export const nextProbe = (file: string, { kind }: TftpFinding): string | null =>
  NEXT[file]?.[kind] ?? null

/** The files that a last finding is about, if there were several. */
const SERVED: Readonly<Record<string, string>> = {
  [GRUB_CONFIG]: `${FIRST_FILE}, ${GRUB_FILES.x86_64}, ${GRUB_CONFIG}`,
}
const MISSING: Readonly<Record<string, string>> = { [IPXE]: `${FIRST_FILE} or ${IPXE}` }

export type TftpFinding =
  | { readonly kind: 'unasked' }
  | { readonly kind: 'serves' }
  | { readonly kind: 'file-missing' }
  /** An error answer, its words made harmless. */
  | { readonly kind: 'error'; readonly says: string }
  | { readonly kind: 'refused' }
  | { readonly kind: 'silent'; readonly seconds: number }
  | { readonly kind: 'unreachable'; readonly why: string }

export interface TftpState {
  /** False until the first answer or timeout. */
  readonly isChecked: boolean
  readonly isActive: boolean
  readonly isReady: boolean
  readonly text: string
  readonly hint: string | null
}

const [READ, DATA, ERROR, OPTIONS] = [1, 3, 5, 6]
const FILE_NOT_FOUND = 1

export const renderReadRequest = (name: string): Uint8Array =>
  Buffer.concat([Buffer.of(0, READ), Buffer.from(`${name}\0octet\0`, 'latin1')])

export const renderTftpError = (): Uint8Array =>
  Buffer.concat([Buffer.of(0, ERROR, 0, 0), Buffer.from('enough\0', 'latin1')])

/** Null: not TFTP. */
export function parseTftpAnswer(bytes: Uint8Array): TftpFinding | null {
  if (bytes.length < 4 || bytes[0] !== 0) return null
  if (bytes[1] === DATA || bytes[1] === OPTIONS) return { kind: 'serves' }
  if (bytes[1] !== ERROR) return null
  const code = Number(bytes[2]) * 256 + Number(bytes[3])
  if (code === FILE_NOT_FOUND) return { kind: 'file-missing' }
  const text = Buffer.from(bytes.subarray(4, 204)).toString('latin1').replace(/\0.*$/s, '')
  return { kind: 'error', says: printable(text) || `error ${code}` }
}

const ACTIVE: ReadonlySet<TftpFinding['kind']> = new Set(['serves', 'file-missing', 'error'])

const FINDINGS = {
  unasked: { text: 'The TFTP daemon on {host} is being checked.' },
  serves: { text: 'The TFTP daemon on {host} serves {file}.' },
  fileMissing: {
    text: 'The TFTP daemon on {host} answers, but has no {file}.',
    hint: 'Put {file} (and undionly.kpxe for BIOS machines) into its folder.',
  },
  error: {
    text: 'The TFTP daemon on {host} answers with an error: {error}.',
    hint: 'Check that it may read {file} in its folder.',
  },
  refused: {
    text: 'Nothing listens on UDP port 69 of {host}.',
    hint: 'Start the TFTP daemon there, or change the TFTP server to check under Settings.',
  },
  silent: {
    text: '{host} gave no TFTP answer within {seconds} s.',
    hint: 'Check that it is running, and that no firewall blocks UDP port 69 or the replies to it.',
  },
  unreachable: {
    text: '{host} cannot be reached: {reason}.',
    hint: 'Correct the TFTP server to check under Settings.',
  },
} as const

/** `file`: the last file asked for. */
export function describeTftp(
  finding: TftpFinding,
  host: string,
  file: string = FIRST_FILE,
): TftpState {
  const { kind } = finding
  const texts: FindingTexts = FINDINGS[kind === 'file-missing' ? 'fileMissing' : kind]
  const values = {
    host,
    file: (kind === 'serves' ? SERVED : MISSING)[file] ?? file,
    error: kind === 'error' ? finding.says : '',
    seconds: kind === 'silent' ? finding.seconds : 0,
    reason: kind === 'unreachable' ? printable(finding.why) : '',
  }
  return {
    isChecked: kind !== 'unasked',
    isActive: ACTIVE.has(kind),
    isReady: kind === 'serves',
    text: fill(texts.text, values),
    hint: texts.hint === undefined ? null : fill(texts.hint, values),
  }
}

interface FindingTexts {
  readonly text: string
  readonly hint?: string
}

/** With the boot loaders of the server's release. `baseUrl`: no trailing slash. */
export const renderTftpSetup = (baseUrl: string): string =>
  [
    'apt install dnsmasq ipxe curl',
    `mkdir -p /srv/tftp/${GRUB_CONFIG.replace(/\/.*/, '')}`,
    'cd /srv/tftp',
    'cp /usr/lib/ipxe/undionly.kpxe .',
    `curl -fO ${baseUrl}/boot/${SHIM_FILES.x86_64} -fO ${baseUrl}/boot/${GRUB_FILES.x86_64}`,
    `curl -fo ${GRUB_CONFIG} ${baseUrl}/${GRUB_CONFIG}`,
    `curl -fO ${baseUrl}/boot/ipxe.efi -fO ${baseUrl}/boot/autoexec.ipxe`,
    "printf 'port=0\\nenable-tftp\\ntftp-root=/srv/tftp\\n' > /etc/dnsmasq.d/flasher-tftp.conf",
    'systemctl restart dnsmasq',
    '',
  ].join('\n')
