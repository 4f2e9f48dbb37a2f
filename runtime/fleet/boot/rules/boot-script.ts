/** Renders a boot decision, which is made once, in the words of the boot loader that asked. */
import {
  type BootDecision,
  type BootHeader,
  DEFAULT_DRIVE,
  type LiveSet,
  filesOf,
  ticketOf,
  type ToEntry,
  type ToLiveSystem,
  type ToWait,
  renderKernelArgs,
} from './boot-decision.ts'
import { GRUB_EXIT, renderGrub, type GrubServer } from './grub-script.ts'
import {
  ANSWER_MS,
  backOff,
  HELD_MS,
  patience,
  renderScript,
  START_PAUSE,
  word,
  comment,
  prose,
} from './ipxe.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'
import { SHIM_FILES } from '#appliance/assets.ts'
import type { BootArch } from './boot-set.ts'
import { planKernel } from './live-kernel.ts'

/** Null: iPXE; else how GRUB reaches this server. */
export type BootLoader = GrubServer | null

/** `grub`: null for iPXE. */
export const renderBoot = (
  decision: BootDecision,
  header: BootHeader,
  grub: BootLoader = null,
): string => (grub === null ? renderIpxe(decision, header) : renderGrub(decision, header, grub))

/** For an unknown machine, or without a decision: it boots what comes next. */
export const renderExit = (grub: BootLoader): string => (grub === null ? IPXE_EXIT : GRUB_EXIT)

// The scripts that lead iPXE to the script of its machine, however iPXE was loaded ("/pxe-bootstrap.ipxe").

/** What iPXE tells of its machine in the query of `/pxe/{mac}`; the host name is DHCP's. */
const ABOUT = '?buildarch=${buildarch}&platform=${platform}&hostname=${hostname:uristring}'

/**
 * On UEFI a program that ends well leads to the menu, a failed one to the next boot entry.
 * Firmware's own iPXE, a driver, continues either way.
 */
const LEAVE = ['iseq ${platform} efi && exit 1 ||', 'exit']

/**
 * With `mac` (our own iPXE knows the card in use) it leads to that machine's script; else iPXE
 * inserts its first card's, as in the specification. Our own iPXE's script takes an error for no
 * answer, and exits with one itself, so this one ends well.
 */
export function renderBootstrap(base: string, mac: Mac | null): string {
  const machine = mac === null ? '${net0/mac:hexhyp}' : `${renderHyphens(mac)}${ABOUT}`
  return renderScript(chain([`${word(`${base}/pxe/`)}${machine}`], mac === null ? LEAVE : ['exit']))
}

/**
 * `autoexec.ipxe`, which a plain iPXE 2.0 fetches from its own source. After UEFI HTTP Boot it
 * knows no server, so the script names one. With `others`, it asks each for the machine's script
 * itself: a server that dies in between costs a wait, not the patience of its bootstrap.
 */
export function renderAutoexec(base: string, others: readonly string[] = []): string {
  const urls =
    others.length === 0
      ? [`${word(`${base}/pxe-bootstrap.ipxe`)}?mac=${OWN_MAC}`]
      : [base, ...others].map((server) => `${word(`${server}/pxe/`)}${OWN_MAC}${ABOUT}`)
  return renderScript(['isset ${ip} || dhcp || goto end', ...chain(urls, LEAVE)])
}

const OWN_MAC = '${mac:hexhyp}'

/**
 * Asks until a server answers. A script that ended well has handed over to the firmware, so this
 * one ends well, too. At last it asks each of several servers patiently: one that holds requests
 * would have had the machine wait.
 */
function chain(urls: readonly string[], leave: readonly string[]): readonly string[] {
  const others = urls.slice(1)
  const ask = (waitMs?: number) =>
    urls.map((url) => `chain ${patience(others, waitMs)}${url} && goto end ||`)
  return [
    START_PAUSE,
    ':try',
    ...ask(),
    ...backOff('no answer from the server', 'try', others.length === 0 ? 'end' : 'held'),
    ...(others.length === 0 ? [] : [':held', ...ask(HELD_MS)]),
    ':end',
    ...leave,
  ]
}

// Renders what a machine boots as an iPXE script ("GET /pxe/{mac}").

const DRIVE = /^0x[0-9a-f]{1,2}$/i

/** Always under 4 KB; under 7 KB with the longest names of four other servers. */
const renderIpxe = (decision: BootDecision, header: BootHeader): string =>
  renderScript([
    comment(`flasher: ${header.mac}, mode ${header.mode}`),
    comment(`${header.rule}: ${header.reason}`),
    ...renderDecision(decision, header),
  ])

function renderDecision(decision: BootDecision, header: BootHeader): readonly string[] {
  const { mac, rule } = header
  switch (decision.kind) {
    case 'to-disk':
      return [
        `echo flasher: ${mac} boots its own disk (${prose(rule)})`,
        ...renderDisk(decision.drive),
      ]
    case 'to-wait':
      return [
        ':wait',
        `echo flasher: ${mac} waits: ${prose(decision.saying)}`,
        `sleep ${Math.max(1, Math.trunc(decision.seconds))} ||`,
        renderAskAgain(decision, mac),
      ]
    case 'to-live':
      return renderToLiveSystem(decision, header)
    case 'to-entry':
      return renderToEntry(decision, header)
  }
}

/** Asks until a server answers; after a silent round more patiently. */
function renderAskAgain({ base, others = [] }: ToWait, mac: Mac): string {
  const rounds = others.length === 0 ? [ANSWER_MS] : [ANSWER_MS, HELD_MS]
  const chains = rounds.flatMap((waitMs) =>
    [base, ...others].map(
      (server) => `chain ${patience(others, waitMs)}--replace --autofree ${scriptOf(server, mac)}`,
    ),
  )
  return [...chains, 'goto wait'].join(' || ')
}

const scriptOf = (server: string, mac: Mac) => word(`${server}/pxe/${renderHyphens(mac)}`)

/** `exit` ends the script, so a later line means that it failed. */
const renderDisk = (drive: string): readonly string[] => [
  'iseq ${platform} efi && exit ||',
  `sanboot --no-describe --drive ${DRIVE.test(drive) ? drive : DEFAULT_DRIVE} || exit`,
]

export const IPXE_EXIT = renderScript([
  comment('flasher: nothing is known or decided about this machine'),
  ...renderDisk(DEFAULT_DRIVE),
])

/** `imgfree` first: a leftover image would become part of the initrd. */
function renderToLiveSystem(decision: ToLiveSystem, header: BootHeader): readonly string[] {
  const { others = [] } = decision
  const { x86_64, arm64 } = decision.sets
  const hasBoth = x86_64 !== null && arm64 !== null
  return [
    'imgfree',
    `echo flasher: ${header.mac} starts the live system (${prose(header.rule)})`,
    // The script that sent the machine here goes on counting.
    others.length === 0 ? START_PAUSE : `isset \${hop} || ${START_PAUSE}`,
    ':try',
    ...(hasBoth ? ['iseq ${buildarch} arm64 && goto arm64 ||'] : []),
    ...(x86_64 === null ? [] : renderSet(decision, 'x86_64', x86_64, header.mac)),
    ...(hasBoth ? [':arm64'] : []),
    ...(arm64 === null ? [] : renderSet(decision, 'arm64', arm64, header.mac)),
    ':again',
    'imgfree',
    ...renderHop(others, header.mac),
    ...backOff('the live system is unavailable', 'try', 'otherwise'),
    ':otherwise',
    ...renderDecision(decision.otherwise, header),
  ]
}

/** One that ends, or cannot be started, leads on to the disk. */
function renderToEntry(decision: ToEntry, header: BootHeader): readonly string[] {
  const { base, entry, starts, hasInitrd, firmware, processor, otherwise } = decision
  const files = `${base}${filesOf(decision)}`
  const args = [...(hasInitrd ? ['initrd=initrd'] : []), ...decision.args(files)]
  const hasShim = starts === 'kernel' && processor === 'x86_64'
  return [
    'imgfree',
    `echo flasher: ${header.mac} starts ${prose(entry)} once`,
    ...FIRMWARE_CHECKS[firmware],
    PROCESSOR_CHECKS[processor],
    START_PAUSE,
    ':try',
    ['kernel', word(`${files}${starts}`), ...args, '|| goto again'].join(' '),
    ...(hasShim ? [`iseq \${platform} efi && shim ${word(`${base}/boot/${SHIM}`)} ||`] : []),
    ...(hasInitrd ? [`initrd --name initrd ${word(`${files}initrd`)} || goto again`] : []),
    // A program that failed has run; a kernel that failed has not.
    `boot && goto otherwise || goto ${starts === 'program' ? 'otherwise' : 'again'}`,
    ':again',
    'imgfree',
    ...backOff(`${prose(entry)} is unavailable`, 'try', 'otherwise'),
    ':misfit',
    `echo flasher: ${prose(entry)} is for other machines`,
    `chain --replace --autofree ${scriptOf(base, header.mac)}${ABOUT}&unfit=${ticketOf(decision)} || goto otherwise`,
    ':otherwise',
    ...renderDecision(otherwise, header),
  ]
}

const FIRMWARE_CHECKS = {
  any: [],
  bios: ['iseq ${platform} efi && goto misfit ||'],
  uefi: ['iseq ${platform} efi || goto misfit'],
} as const

const PROCESSOR_CHECKS = {
  x86_64: 'iseq ${buildarch} arm64 && goto misfit ||',
  arm64: 'iseq ${buildarch} arm64 || goto misfit',
} as const

/** Other servers' scripts return after one attempt, so that no machine bounces for ever. */
const renderHop = (others: readonly string[], mac: Mac): readonly string[] =>
  others.length === 0
    ? []
    : [
        'isset ${hop} && exit 1 ||',
        'set hop 1',
        ...others.map(
          (server) => `chain ${patience(others)}--autofree ${scriptOf(server, mac)} && exit ||`,
        ),
        'clear hop ||',
      ]

/** Trusts Debian's kernel where Secure Boot does not; iPXE asks for it only if needed. */
const SHIM = SHIM_FILES.x86_64

/** The EFI stub asks for the initrd by this name, whatever its URL. */
function renderSet(
  decision: ToLiveSystem,
  arch: BootArch,
  set: LiveSet,
  mac: Mac,
): readonly string[] {
  const { vmlinuz, initrd, args } = planKernel(decision, arch, set, mac)
  const wait = patience(decision.others ?? [])
  const url = (path: string) => word(`${decision.base}${path}`)
  const line = renderKernelArgs([['initrd', 'initrd'], ...args])
  return [
    `kernel ${wait}${url(vmlinuz)} ${line} || goto again`,
    ...(arch === 'arm64' ? [] : [`iseq \${platform} efi && shim ${url(`/boot/${SHIM}`)} ||`]),
    `initrd ${wait}--name initrd ${url(initrd)} || goto again`,
    'boot || goto again',
  ]
}
