/** Renders what a machine boots as an iPXE script ("GET /pxe/{mac}"). */
import { SHIM_FILES } from '#appliance/assets.ts'
import {
  DEFAULT_DRIVE,
  type BootDecision,
  type BootHeader,
  type LiveSet,
  type ToLiveSystem,
  type ToWait,
} from './boot-decision.ts'
import { backOff, comment, patience, prose, renderScript, START_PAUSE, word } from './ipxe.ts'
import { renderKernelArgs } from './kernel-args.ts'
import type { BootArch } from './boot-set.ts'
import { planKernel } from './live-kernel.ts'
import { ANSWER_MS, HELD_MS } from './other-servers.ts'
import { renderHyphens, type Mac } from '#kit/net/rules/mac.ts'

const DRIVE = /^0x[0-9a-f]{1,2}$/i

/** Always under 4 KB; under 7 KB with the longest names of four other servers. */
export const renderIpxe = (decision: BootDecision, header: BootHeader): string =>
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
