/** Boot scripts for GRUB: the decision that iPXE gets, in other words. */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import type { BootDecision, BootHeader, LiveSets } from '#fleet/boot/rules/boot-decision.ts'
import { renderBoot, renderExit } from '#fleet/boot/rules/boot-script.ts'
import type { BootArch } from '#fleet/boot/rules/boot-set.ts'
import { decideGrubServer, renderGrubConfig } from '#fleet/boot/rules/grub-script.ts'
import { anyDecision, anyText } from '#test/support/boot/decisions.ts'
import { MAC, setOf } from '#test/support/server/machine-fixture.ts'

interface Doing {
  /** URLs; null: nothing is booted. */
  readonly kernel: string | null
  readonly initrd: string | null
  readonly args: readonly string[]
  /** The scripts of other servers that are asked for after a failed attempt. */
  readonly others: readonly string[]
  /** Seconds between the attempts. */
  readonly pauses: readonly number[]
  /** What follows when nothing was booted: `disk`, or seconds and what is said while it waits. */
  readonly end: string
}

const linesOf = (script: string): readonly string[] =>
  script
    .trimEnd()
    .split('\n')
    .map((line) => line.trim())

const find = (lines: readonly string[], pattern: RegExp): RegExpExecArray | null =>
  lines.map((line) => pattern.exec(line)).find((found) => found !== null) ?? null

const listAll = (lines: readonly string[], pattern: RegExp): readonly string[] =>
  lines.flatMap((line) => pattern.exec(line)?.[1] ?? [])

const wordsOf = (text = '') => text.split(' ').filter((word) => word !== '')

function readIpxe(script: string, arch: BootArch): Doing {
  const lines = linesOf(script)
  const own = pick(lines, lines.indexOf(':arm64'), {
    hasBranches: lines.includes('iseq ${buildarch} arm64 && goto arm64 ||'),
    isSecond: arch === 'arm64',
  })
  const kernel = find(own, /^kernel (?:--timeout 3000 )?(\S+) (.*) \|\| goto again$/)
  const limit = Number(find(lines, /^iseq \$\{pause\} (\d+) && goto otherwise/)?.[1] ?? 0)
  return {
    kernel: kernel?.[1] ?? null,
    initrd: find(own, /^initrd (?:--timeout 3000 )?--name initrd (\S+) /)?.[1] ?? null,
    args: wordsOf(kernel?.[2]).filter((word) => word !== 'initrd=initrd'),
    others: listAll(lines, /^chain --timeout 3000 --autofree (\S+) && exit \|\|$/),
    pauses: limit === 0 ? [] : Array.from({ length: Math.log2(limit) }, (_, n) => 2 ** n),
    end: readEnd(lines, 'iseq ${platform} efi && exit ||', lines.at(-2) ?? ''),
  }
}

function readGrub(script: string, arch: BootArch): Doing {
  const lines = linesOf(script)
  const loop = lines.slice(find(lines, /^for pause/) === null ? lines.length : 0)
  const own = pick(loop, loop.indexOf('else'), {
    hasBranches: loop.indexOf('else') !== -1 && loop.indexOf('else') < loop.indexOf('done'),
    isSecond: arch === 'x86_64',
  })
  const kernel = find(own, /^if linux (\S+) (.*); then$/)
  return {
    kernel: urlOf(kernel?.[1]),
    initrd: urlOf(find(own, /^if initrd (\S+); then boot; fi$/)?.[1]),
    args: wordsOf(kernel?.[2]).map((word) => word.replaceAll('"', '')),
    others: listAll(lines, /^source "\(http,([^?]*)\.grub\?/).map(
      (at) =>
        `http://${at
          .replace(')', '')
          .replaceAll(':', '-')
          .replace(/-(\d+\/)/, ':$1')}`,
    ),
    pauses: wordsOf(find(lines, /^(?:for pause in |set pauses=")(.*) 0(?:; do|")$/)?.[1]).map(
      Number,
    ),
    end: readEnd(
      lines,
      'if chainloader "$disk$loader"; then boot; fi',
      lines.findLast((line) => line !== 'fi') ?? '',
    ),
  }
}

interface Branches {
  readonly hasBranches: boolean
  readonly isSecond: boolean
}

const pick = (lines: readonly string[], at: number, { hasBranches, isSecond }: Branches) => {
  if (!hasBranches) return lines
  return isSecond ? lines.slice(at) : lines.slice(0, at)
}

function readEnd(lines: readonly string[], toDisk: string, sleep: string): string {
  if (lines.includes(toDisk)) return 'disk'
  const said = find(lines, / waits: ?(.*?)"?$/)?.[1]
  return `${/^sleep (\d+)/.exec(sleep)?.[1]} ${said}`
}

const urlOf = (file: string | undefined) =>
  file?.replace(/^"\(http,([^)]+)\)(.*)"$/, 'http://$1$2') ?? null

const test = suite('GRUB scripts')

const SERVER = '10.0.0.1:8080'
const BASE = `http://${SERVER}`
const HEADER: BootHeader = { mac: MAC, mode: 'flasher-flash-once', rule: 'flash', reason: 'Why.' }
const BOTH: LiveSets = { x86_64: setOf('x86_64'), arm64: setOf('arm64') }
const LIVE: BootDecision = {
  kind: 'to-live',
  base: BASE,
  sets: { x86_64: BOTH.x86_64, arm64: null },
  console: 'ttyS1',
  token: null,
  otherwise: { kind: 'to-disk', drive: '0x80' },
}
test('the live system: kernel, arguments and initrd, and six attempts', () => {
  const lines = linesOf(renderBoot(LIVE, HEADER, SERVER))
  const boot = `(http,${SERVER})/boot/flasher-netboot-pc-x86_64-v1.2.3`
  assert.is(lines[2], 'set offered=to-live')
  assert.ok(lines.includes('for pause in 1 2 4 8 16 0; do'))
  const kernel = lines.find((line) => line.startsWith('if linux '))
  assert.match(
    kernel ?? '',
    `if linux "${boot}.vmlinuz?mac=${MAC}" console=tty0 console=ttyS1,115200`,
  )
  assert.match(kernel ?? '', ` flasher.server=${BASE} flasher.mac=${MAC} `)
  // That is the name of an initrd for iPXE alone.
  assert.not.match(kernel ?? '', 'initrd=')
  assert.ok(lines.includes(`if initrd "${boot}.initrd?mac=${MAC}"; then boot; fi`))
})

test('the server of the files is the one that GRUB asked, whatever address machines get', () => {
  const script = renderBoot({ ...LIVE, base: 'https://flasher.lab' }, HEADER, SERVER)
  assert.match(
    script,
    /if linux "\(http,10\.0\.0\.1:8080\)\/boot\/\S+" .* flasher\.server=https:\/\/flasher\.lab /,
  )
})

test('the disk: each known boot loader, and the request is repeated where there is none', () => {
  const script = renderBoot({ kind: 'to-disk', drive: '0x81' }, HEADER, SERVER)
  for (const path of [
    '/EFI/debian/shimx64.efi',
    '/EFI/BOOT/BOOTX64.EFI',
    '/EFI/BOOT/BOOTAA64.EFI',
  ]) {
    assert.match(script, path)
  }
  // What `exit` leads to is a menu of the firmware, with nobody there.
  for (const text of [script, renderExit(SERVER)]) assert.not.match(text, /\bexit\b/)
  const loaders = script.match(/"(\/EFI\S+ .*)"/)?.[1]?.split(' ') ?? []
  // The loader at the path of removable media may restart the machine, so it comes last.
  assert.match(loaders.at(-1) ?? '', /^\/EFI\/BOOT\//)
})

test('a machine that waits is no boot', () => {
  const script = renderBoot(
    { kind: 'to-wait', base: BASE, seconds: 20, saying: 'place 3; of "9"' },
    HEADER,
    SERVER,
  )
  assert.equal(linesOf(script).slice(2), [
    'set offered=to-wait',
    `echo "flasher: ${MAC} waits: place 3? of ?9?"`,
    'sleep 20',
  ])
})

test('the same decision, the same boot: both loaders fetch, wait and refuse alike', () => {
  const seen = new Set<string>()
  fc.assert(
    fc.property(
      anyDecision,
      anyText,
      fc.constantFrom('x86_64', 'arm64'),
      (decision, text, arch) => {
        const header = { mac: MAC, mode: text, rule: text, reason: text }
        const server = decision.kind === 'to-disk' ? SERVER : decision.base.slice('http://'.length)
        const [ipxe, grub] = [renderBoot(decision, header), renderBoot(decision, header, server)]
        assert.equal(readGrub(grub, arch), readIpxe(ipxe, arch))
        seen.add(`${decision.kind} ${readGrub(grub, arch).end === 'disk'}`)
      },
    ),
    { numRuns: 3000 },
  )
  assert.equal([...seen].toSorted(), [
    'to-disk true',
    'to-live false',
    'to-live true',
    'to-wait false',
  ])
})

const shape = (lines: readonly string[]) => lines.map((line) => line.split(' ')[0])

const TEXT = String.raw`[\w .,:/()@%+=~'?-]*`
const VALUE = String.raw`[\w.:/=,@+~%&?[\]-]+`
/** Every line that a script consists of; what else it holds are values in their places. */
const LINES = [
  String.raw`# flasher: ${TEXT}`,
  String.raw`#( ${TEXT}:)? ?[\w .,:;/()@%+=~'?-]*`,
  'set offered=to-(disk|wait|live)',
  String.raw`echo "flasher: ${TEXT}(\$(pause s|disk\$loader))?"`,
  'sleep (\\d+|\\$pause)',
  'for pause in 1 2 4 8 16 0; do',
  'for pause in \\$pauses; do',
  'set pauses="1 2 4 8 16 0"',
  'if \\[ -n "\\$hop" \\]; then set pauses="0"; fi',
  'if \\[ -z "\\$hop" \\]; then',
  'set hop=1?',
  String.raw`source "\(http,${VALUE}\)/pxe/${MAC}\.grub\?buildarch=\$grub_cpu&platform=\$grub_platform&server=${VALUE}"`,
  'for disk in \\(hd\\*,\\*\\); do',
  'for loader in \\$loaders; do',
  'if \\[ "\\$grub_cpu" = arm64 \\]; then',
  'if \\[ -f "\\$disk\\$loader" \\]; then',
  'if \\[ \\$pause != 0 \\]; then',
  String.raw`if linux "\(http,${VALUE}\)/boot/${VALUE}"( ("${VALUE}"|[\w.:/=,@+-]+))*; then`,
  String.raw`if initrd "\(http,${VALUE}\)/boot/${VALUE}"; then boot; fi`,
  'if chainloader "\\$disk\\$loader"; then boot; fi',
  'set root="\\$disk"',
  'set loaders="[\\w/. -]+"',
  'else|fi|done',
].map((line) => new RegExp(`^(?:${line})$`))

test('whatever is in it, a script holds our commands only, in ASCII, LF and under 8 KB', () => {
  fc.assert(
    fc.property(anyDecision, anyText, anyText, anyText, (decision, mode, rule, reason) => {
      const script = renderBoot(decision, { mac: MAC, mode, rule, reason }, SERVER)
      assert.match(script, /^#[\n -~]*\n$/)
      assert.ok(script.length < 8192, `${script.length} bytes`)
      const lines = linesOf(script)
      for (const line of lines) {
        assert.ok(
          LINES.some((known) => known.test(line)),
          line,
        )
      }
      const frame = linesOf(renderBoot(decision, HEADER, SERVER))
      assert.equal(shape(lines), shape(frame), 'the texts change no command')
    }),
    { numRuns: 3000 },
  )
})

test('with what GRUB adds, the longest names leave a command line that the kernel takes', () => {
  const longest = setOf('x86_64', {
    vmlinuz: 'v'.repeat(72),
    initrd: 'i'.repeat(72),
    squashfs: 's'.repeat(72),
  })
  const server = `${'h'.repeat(60)}.${'h'.repeat(60)}.${'h'.repeat(12)}:65535`
  const decision: BootDecision = {
    ...LIVE,
    base: `http://${server}`,
    others: [...'abcd'].map((name) => `http://${name.repeat(60)}.example:8080`),
    token: 't'.repeat(70),
    sets: { x86_64: longest, arm64: longest },
  }
  const script = renderBoot(decision, HEADER, server)
  for (const [, file = '', args = ''] of script.matchAll(/if linux "(\S+)" (.*); then/g)) {
    assert.ok(`BOOT_IMAGE=${file} ${args}`.length < 2048)
  }
})

test('a server that was not checked is a fault, not a script', () => {
  for (const server of ['a b', 'a)/x', 'a"', 'a\nreboot', '']) {
    assert.throws(() => renderBoot(LIVE, HEADER, server), /cannot stand/)
    assert.throws(() => renderGrubConfig(server), /cannot stand/)
  }
})

test('grub.cfg asks for as long as it takes, at the server that GRUB came from', () => {
  const config = renderGrubConfig(SERVER)
  assert.match(config, /^while true; do$/m)
  assert.match(config, `for server in "${SERVER}"; do`)
  assert.match(
    config,
    /source "\(http,\$server\)\/pxe\/\$net_default_mac\.grub\?buildarch=\$grub_cpu&/,
  )
  assert.match(config, /&server=\$server&offered=\$offered"$/m)
  // The configuration of a release knows no server: it asks the one that sent GRUB, on our port and on
  // the usual one.
  assert.match(
    renderGrubConfig(null),
    'for server in "$net_default_server:8080" "$net_default_server:80"; do',
  )
})

test('several servers: grub.cfg stays with the one that answers, and goes round after silence', () => {
  const config = renderGrubConfig(SERVER, ['http://10.0.0.2:8080', 'https://a', 'http://c'])
  const at = linesOf(config).indexOf('while true; do')
  assert.equal(linesOf(config).slice(at - 3), [
    `set first="${SERVER}"`,
    'if [ -n "$origin" ]; then set first="$origin"; fi',
    'set server="$first"',
    'while true; do',
    // Its `source` succeeds without an answer, too: only a script sets `offered`.
    'set last="$offered"',
    'set offered=',
    'source "(http,$server)/pxe/$net_default_mac.grub?buildarch=$grub_cpu&platform=$grub_platform&server=$server&offered=$last"',
    'if [ -z "$offered" ]; then',
    'set offered="$last"',
    'if [ "$server" = "$first" ]; then set server="10.0.0.2:8080"',
    // GRUB knows no HTTPS.
    'elif [ "$server" = "10.0.0.2:8080" ]; then set server="c"',
    'else set server="$first"; fi',
    'fi',
    'sleep 5',
    'done',
  ])
  for (const others of [[], ['https://a'], ['http://b/path']]) {
    assert.is(renderGrubConfig(SERVER, others), renderGrubConfig(SERVER))
  }
})

test('several servers: after an attempt the others are asked, and come back after one of theirs', () => {
  const lines = linesOf(renderBoot({ ...LIVE, others: ['http://10.0.0.2:8080'] }, HEADER, SERVER))
  assert.equal(lines.slice(lines.indexOf('if [ -z "$hop" ]; then'), lines.indexOf('done') + 2), [
    'if [ -z "$hop" ]; then',
    'set hop=1',
    `source "(http,10.0.0.2:8080)/pxe/${MAC}.grub?buildarch=$grub_cpu&platform=$grub_platform&server=10.0.0.2:8080"`,
    'set hop=',
    'fi',
    'done',
    'if [ -z "$hop" ]; then',
  ])
  assert.ok(lines.includes('if [ -n "$hop" ]; then set pauses="0"; fi'))
})

test('the one of a release is the one that the server makes', () => {
  assert.is(readFileSync('overlays/grub/grub.cfg', 'utf8'), renderGrubConfig(null))
})

test('the port of the server comes from the query, its host does not', () => {
  assert.is(decideGrubServer('10.0.0.1:8080', '10.0.0.1'), '10.0.0.1:8080')
  assert.is(decideGrubServer('10.0.0.1:8080', '10.0.0.1:80'), '10.0.0.1:8080')
  assert.is(decideGrubServer('[fd00::1]:8080', '[fd00::1]'), '[fd00::1]:8080')
  for (const said of [null, '', 'elsewhere:8080', '10.0.0.1:0', '10.0.0.1:8080/x', 'a b']) {
    assert.is(decideGrubServer(said, '10.0.0.1'), '10.0.0.1', said ?? 'null')
  }
})

test.run()
