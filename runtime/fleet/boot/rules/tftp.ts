/** The part of TFTP that requests one file from a daemon (RFC 1350), and the meaning of its response. */
import { GRUB_CONFIG, GRUB_FILES, SHIM_FILES } from '../../../../appliance/assets.ts'
import { printable } from '../../../kit/foundation/printable.ts'
import { PAGES } from '../../../server/texts/texts.ts'
import { fill } from '../../../kit/texts/text.ts'

const t = PAGES.netboot.tftp.findings

/** What firmware of a PC asks for first; the daemon is asked for it as well. */
export const FIRST_FILE = SHIM_FILES.x86_64
const IPXE = 'ipxe.efi'

type Findings = Readonly<Partial<Record<TftpFinding['kind'], string>>>

/** By file and what came of it: the file that is asked for next. UEFI boots by shim and GRUB, or by iPXE. */
const NEXT: Readonly<Record<string, Findings>> = {
  [FIRST_FILE]: { serves: GRUB_FILES.x86_64, 'file-missing': IPXE },
  [GRUB_FILES.x86_64]: { serves: GRUB_CONFIG },
}

/** Null: the last finding says it all. */
export const nextProbe = (file: string, { kind }: TftpFinding): string | null =>
  NEXT[file]?.[kind] ?? null

/** What the last finding is about, where others came before it. */
const SERVED: Readonly<Record<string, string>> = {
  [GRUB_CONFIG]: `${FIRST_FILE}, ${GRUB_FILES.x86_64}, ${GRUB_CONFIG}`,
}
const MISSING: Readonly<Record<string, string>> = { [IPXE]: `${FIRST_FILE} or ${IPXE}` }

export type TftpFinding =
  | { readonly kind: 'unasked' }
  /** It sent the file's first bytes. */
  | { readonly kind: 'serves' }
  | { readonly kind: 'file-missing' }
  /** It answered with an error; its own words, made harmless. */
  | { readonly kind: 'error'; readonly says: string }
  /** Nothing listens on the port. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'silent'; readonly seconds: number }
  | { readonly kind: 'unreachable'; readonly why: string }

export interface TftpState {
  /** False until the first answer, or the first silence. */
  readonly isChecked: boolean
  /** A daemon is there. */
  readonly isActive: boolean
  /** Machines can get what they ask for first. */
  readonly isReady: boolean
  /** What is true, in a sentence. */
  readonly text: string
  /** What to do; null: nothing. */
  readonly hint: string | null
}

const [READ, DATA, ERROR, OPTIONS] = [1, 3, 5, 6]
const FILE_NOT_FOUND = 1

export const renderReadRequest = (name: string): Uint8Array =>
  Buffer.concat([Buffer.of(0, READ), Buffer.from(`${name}\0octet\0`, 'latin1')])

/** Ends a transfer that nobody wants to go on. */
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

/** `host` is who was asked, `file` what was asked for last. */
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

/** With the boot loaders of the release that the server has. `baseUrl` has no slash at its end. */
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
