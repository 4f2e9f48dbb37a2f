/** Lists what network boot and flashing require, and which of it is set up (dashboard). */
import { renderSize } from '#kit/foundation/size.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill, fillCount } from '#kit/texts/text.ts'
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { printable } from '#kit/foundation/printable.ts'

const t = PAGES.dashboard.setup.rows

/** `missing`: nothing works without it; `unknown`: no proof yet. */
type ReadinessState = 'ready' | 'attention' | 'missing' | 'unknown'

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
  const { title, why, texts, actions } = t.catalog
  const about = { id: 'catalog', title, why, href: '/ui/cache#add', action: actions.add } as const
  const { images, error, isSet } = catalog
  if (!isSet) return row({ ...about, action: actions.connect }, 'missing', texts.unset)
  const unavailable = { ...about, href: '/ui/cache', action: actions.check }
  if (images === 0 && error === null) return row(about, 'missing', texts.none)
  if (images === 0) return row(unavailable, 'missing', texts.unavailable)
  return error === null
    ? row(about, 'ready', fillCount(texts.ready, images))
    : row(unavailable, 'attention', fillCount(texts.stale, images))
}

function judgeNetboot({ sets }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.netboot
  const about = { id: 'netboot', title, why, action, href: '/ui/netboot#install' } as const
  if (sets.length === 0) return row(about, 'missing', texts.none)
  const [first = '', second] = sets.map(({ arch, version }) =>
    fill(texts.system, { version: version ?? texts.unnamed, arch }),
  )
  const text =
    second === undefined ? fill(texts.single, { first }) : fill(texts.both, { first, second })
  return row(about, 'ready', text)
}

/** The DHCP server is not ours; only a machine's contact proves it. */
function judgeDhcp({ hasContact }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.dhcp
  const about = { id: 'dhcp', title, why, action, href: '/ui/dhcp' } as const
  return hasContact ? row(about, 'ready', texts.ready) : row(about, 'unknown', texts.unknown)
}

function judgeTftp({ tftp }: ReadinessFacts): ReadinessRow {
  const about = { id: 'tftp', ...t.tftp, href: '/ui/netboot#tftp' } as const
  const { text } = tftp
  if (tftp.isReady) return row(about, 'ready', text)
  if (!tftp.isChecked) return row(about, 'unknown', text)
  return row(about, tftp.isActive ? 'attention' : 'missing', text)
}

function judgeDisk({ disk }: ReadinessFacts): ReadinessRow {
  const { title, why, action, texts } = t.disk
  const about = { id: 'disk', title, why, action, href: '/ui/settings#storage' } as const
  if (disk === null) return row(about, 'attention', texts.unknown)
  const size = renderSize(disk.freeBytes)
  return disk.isLow
    ? row(about, 'attention', fill(texts.low, { size }))
    : row(about, 'ready', fill(texts.ready, { size }))
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

/** `file`: the last file asked for. */
export function describeTftp(
  finding: TftpFinding,
  host: string,
  file: string = FIRST_FILE,
): TftpState {
  const { kind } = finding
  const texts: FindingTexts =
    PAGES.netboot.tftp.findings[kind === 'file-missing' ? 'fileMissing' : kind]
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
