/** Renders what a machine boots as a script of Debian's signed GRUB, which Secure Boot lets run ("/pxe/{mac}.grub"). */
import {
  type BootDecision,
  type BootHeader,
  type LiveSet,
  filesOf,
  ticketOf,
  type ToEntry,
  type ToLiveSystem,
  renderKernelArgs,
} from './boot-decision.ts'
import { comment, prose, word } from './ipxe.ts'
import type { BootArch } from './boot-set.ts'
import { planKernel } from './live-kernel.ts'
import type { Mac } from '#kit/net/rules/mac.ts'
import { parseHost } from '#kit/net/rules/host-header.ts'

/** `10.0.0.1:8080`: GRUB only knows HTTP, whatever machines use later. */
export type GrubServer = string

/** Always under 4 KB. When a script ends without a boot, `grub.cfg` asks again. */
export const renderGrub = (
  decision: BootDecision,
  header: BootHeader,
  server: GrubServer,
): string =>
  renderLines([
    comment(`flasher: ${header.mac}, mode ${header.mode}`),
    comment(`${header.rule}: ${header.reason}`),
    // Sent with the next request: a repeated offer was not booted, and counts as one boot.
    `set offered=${decision.kind}`,
    ...renderDecision(decision, header, server),
  ])

const renderLines = (lines: readonly string[]): string => `${lines.join('\n')}\n`

function renderDecision(
  decision: BootDecision,
  header: BootHeader,
  server: GrubServer,
): readonly string[] {
  const { mac, rule } = header
  switch (decision.kind) {
    case 'to-disk':
      return [`echo "flasher: ${mac} boots its own disk (${prose(rule)})"`, ...BOOT_DISK]
    case 'to-wait':
      return [
        `echo "flasher: ${mac} waits: ${prose(decision.saying)}"`,
        `sleep ${Math.max(1, Math.trunc(decision.seconds))}`,
      ]
    case 'to-live':
      return renderToLiveSystem(decision, header, server)
    case 'to-entry':
      return renderToEntry(decision, header, server)
  }
}

/** Paths on an EFI partition, by processor. `fbx64.efi` makes the last one restart. */
const listLoaders = (cpu: string): readonly string[] => [
  ...['debian', 'ubuntu', 'fedora', 'redhat', 'centos', 'rocky', 'almalinux'].map(
    (name) => `/EFI/${name}/shim${cpu}.efi`,
  ),
  ...['opensuse', 'sles'].map((name) => `/EFI/${name}/shim.efi`),
  `/EFI/systemd/systemd-boot${cpu}.efi`,
  '/EFI/Microsoft/Boot/bootmgfw.efi',
  `/EFI/BOOT/BOOT${cpu.toUpperCase()}.EFI`,
]

/**
 * GRUB cannot return to the boot order: `exit` leads to the firmware's menu. So it starts the boot
 * loader of the first disk that has one (which finds its files on `root`); without any, the machine
 * asks again.
 */
const BOOT_DISK: readonly string[] = [
  'if [ "$grub_cpu" = arm64 ]; then',
  `  set loaders="${listLoaders('aa64').join(' ')}"`,
  'else',
  `  set loaders="${listLoaders('x64').join(' ')}"`,
  'fi',
  'for disk in (hd*,*); do',
  '  for loader in $loaders; do',
  '    if [ -f "$disk$loader" ]; then',
  '      echo "flasher: starts $disk$loader"',
  '      set root="$disk"',
  '      if chainloader "$disk$loader"; then boot; fi',
  '    fi',
  '  done',
  'done',
  'echo "flasher: no disk has a boot loader that could be started"',
]

export const GRUB_EXIT = renderLines([
  comment('flasher: nothing is known or decided about this machine'),
  ...BOOT_DISK,
])

function renderToLiveSystem(
  decision: ToLiveSystem,
  header: BootHeader,
  server: GrubServer,
): readonly string[] {
  const { x86_64, arm64 } = decision.sets
  const set = (arch: BootArch, each: LiveSet | null) =>
    each === null ? [] : renderSet(decision, arch, each, { mac: header.mac, server })
  const [pc, arm] = [set('x86_64', x86_64), set('arm64', arm64)]
  const hasBoth = pc.length > 0 && arm.length > 0
  const others = listGrubServers(decision.others ?? [])
  const otherwise = renderDecision(decision.otherwise, header, server)
  return [
    `echo "flasher: ${header.mac} starts the live system (${prose(header.rule)})"`,
    ...(others.length === 0 ? [] : SHORT_AFTER_HOP),
    others.length === 0 ? 'for pause in 1 2 4 8 16 0; do' : 'for pause in $pauses; do',
    ...(hasBoth
      ? ['  if [ "$grub_cpu" = arm64 ]; then', ...arm, '  else', ...pc, '  fi']
      : [...pc, ...arm]),
    '  if [ $pause != 0 ]; then',
    '    echo "flasher: the live system is unavailable, next try in $pause s"',
    '    sleep $pause',
    '  fi',
    ...renderHop(others, header.mac),
    'done',
    ...(others.length === 0 ? otherwise : ['if [ -z "$hop" ]; then', ...otherwise, 'fi']),
  ]
}

/** One that ends, or cannot be started, leads on to the disk. */
function renderToEntry(
  decision: ToEntry,
  header: BootHeader,
  server: GrubServer,
): readonly string[] {
  const { entry, starts, hasInitrd, firmware, processor, otherwise } = decision
  const files = filesOf(decision)
  const args = decision.args(`http://${word(server)}${files}`).map((each) => ` ${quote(each)}`)
  const start = starts === 'kernel' ? 'linux' : 'chainloader'
  const boot = hasInitrd ? `if initrd ${fileOf(server, `${files}initrd`)}; then boot; fi` : 'boot'
  const platform = { any: '', bios: 'pc', uefi: 'efi' }[firmware]
  return [
    `echo "flasher: ${header.mac} starts ${prose(entry)} once"`,
    'set fits=1',
    ...(platform === '' ? [] : [`if [ "$grub_platform" != ${platform} ]; then set fits=; fi`]),
    `if [ "$grub_cpu" ${processor === 'arm64' ? '!=' : '='} arm64 ]; then set fits=; fi`,
    'if [ -n "$fits" ]; then',
    '  for pause in 1 2 4 8 16 0; do',
    `    if ${start} ${fileOf(server, `${files}${starts}`)}${args.join('')}; then`,
    `      ${boot}`,
    // A program that comes back has run; only what could not be fetched is tried again.
    ...(starts === 'program' ? ['      break'] : []),
    '    fi',
    '    if [ $pause != 0 ]; then',
    `      echo "flasher: ${prose(entry)} is unavailable, next try in $pause s"`,
    '      sleep $pause',
    '    fi',
    '  done',
    ...renderDecision(otherwise, header, server),
    'else',
    `  echo "flasher: ${prose(entry)} is for other machines"`,
    `  source "${scriptOf(server, header.mac)}&unfit=${ticketOf(decision)}"`,
    'fi',
  ]
}

/** A script reached from another server's makes one attempt and returns. */
const SHORT_AFTER_HOP: readonly string[] = [
  'set pauses="1 2 4 8 16 0"',
  'if [ -n "$hop" ]; then set pauses="0"; fi',
]

/** Other servers' scripts name their own files. Variables are global: the pause is over. */
const renderHop = (others: readonly GrubServer[], mac: Mac): readonly string[] =>
  others.length === 0
    ? []
    : [
        '  if [ -z "$hop" ]; then',
        '    set hop=1',
        ...others.map((other) => `    source "${scriptOf(other, mac)}"`),
        '    set hop=',
        '  fi',
      ]

const scriptOf = (server: GrubServer, mac: Mac): string =>
  `(http,${word(server)})/pxe/${mac}.grub?buildarch=$grub_cpu&platform=$grub_platform&server=${word(server)}`

function renderSet(
  decision: ToLiveSystem,
  arch: BootArch,
  set: LiveSet,
  { mac, server }: { readonly mac: Mac; readonly server: GrubServer },
): readonly string[] {
  const { vmlinuz, initrd, args } = planKernel(decision, arch, set, mac)
  const line = renderKernelArgs(args).split(' ').map(quote).join(' ')
  return [
    `    if linux ${fileOf(server, vmlinuz)} ${line}; then`,
    `      if initrd ${fileOf(server, initrd)}; then boot; fi`,
    '    fi',
  ]
}

const fileOf = (server: GrubServer, path: string) => `"(http,${word(server)})${word(path)}"`

/** GRUB expands `?`, `*` and brackets in file names, and `&` separates commands. */
const quote = (text: string): string => (/^[\w.:/=,@+-]+$/.test(text) ? text : `"${text}"`)

// `grub.cfg`: leads Debian's signed GRUB to the script of its machine, for as long as it takes ("/grub/grub.cfg").

/** Tried on the host that sent GRUB if nothing else is known. */
const PORTS = [8080, 80] as const
const PAUSE_SECONDS = 5

/**
 * `server`: host and port; null in a release, where nobody knows them. GRUB loaded by HTTP uses the
 * address that it came from. It waits for a silent one of `others` as long as it always does.
 */
export function renderGrubConfig(server: string | null, others: readonly string[] = []): string {
  const next = listGrubServers(others)
  if (server !== null && next.length > 0) return renderSeveral(server, next)
  const servers =
    server === null
      ? PORTS.map((port) => `"$net_default_server:${port}"`).join(' ')
      : `"${word(server)}"`
  return `${[
    ...BEGIN,
    'while true; do',
    `  for server in ${servers}; do`,
    '    if [ -n "$origin" ]; then set server="$origin"; fi',
    `    ${ASK}`,
    `    sleep ${PAUSE_SECONDS}`,
    '  done',
    'done',
  ].join('\n')}\n`
}

const BEGIN = [
  '# flasher: asks the server what this machine boots. A script that ends has booted nothing.',
  'if regexp --set=1:origin \'^\\(http,([^)]*)\\)\' "$prefix"; then true; fi',
]

/** GRUB moves on after silence. `source` always succeeds, but each script sets `offered`. */
function renderSeveral(server: string, others: readonly string[]): string {
  const turns = others.map((other, at) => {
    const before = at === 0 ? '$first' : word(others[at - 1] ?? '')
    return `if [ "$server" = "${before}" ]; then set server="${word(other)}"`
  })
  return `${[
    ...BEGIN,
    `set first="${word(server)}"`,
    'if [ -n "$origin" ]; then set first="$origin"; fi',
    'set server="$first"',
    'while true; do',
    '  set last="$offered"',
    '  set offered=',
    `  ${ASK.replace('$offered', '$last')}`,
    '  if [ -z "$offered" ]; then',
    '    set offered="$last"',
    `    ${turns.join('\n    el')}`,
    '    else set server="$first"; fi',
    '  fi',
    `  sleep ${PAUSE_SECONDS}`,
    'done',
  ].join('\n')}\n`
}

const QUERY = 'buildarch=$grub_cpu&platform=$grub_platform&server=$server&offered=$offered'
const ASK = `source "(http,$server)/pxe/$net_default_mac.grub?${QUERY}"`

/** GRUB's `Host` has no port, so `grub.cfg` adds `server`; another host is not believed. */
export function decideGrubServer(said: string | null, host: string): string {
  const named = parseHost(said ?? '')
  return named.ok && nameOf(named.value) === nameOf(host) ? named.value : host
}

const nameOf = (host: string) => host.replace(/:\d+$/, '')

/** `host:port`: GRUB only knows HTTP, and its paths begin at the root. */
export const listGrubServers = (others: readonly string[]): readonly string[] =>
  others.flatMap((other) => /^http:\/\/([^/]+)$/.exec(other)?.[1] ?? [])
