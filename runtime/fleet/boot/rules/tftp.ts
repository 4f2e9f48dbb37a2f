/** The part of TFTP that requests one file from a daemon (RFC 1350), and the meaning of its response. */
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '#appliance/assets.ts'
import { printable } from '#kit/foundation/printable.ts'
import { PAGES } from '#server/texts/texts.ts'
import { fill } from '#kit/texts/text.ts'

const t = PAGES.netboot.tftp.findings

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
  const texts: FindingTexts = t[kind === 'file-missing' ? 'fileMissing' : kind]
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
