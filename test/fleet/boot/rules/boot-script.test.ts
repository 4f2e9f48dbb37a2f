/** Boot scripts: the commands of the specification, and nothing that anybody else could put in. */
import { createHmac } from 'node:crypto'
import * as fc from 'fast-check'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  type BootDecision,
  type BootHeader,
  type BootToken,
  hideBootTokens,
  isBootable,
  type LiveSets,
  parseBootToken,
  parseKernelArgs,
  renderBootToken,
  renderKernelArgs,
  type ToDisk,
} from '#fleet/boot/rules/boot-decision.ts'
import {
  IPXE_EXIT,
  renderAutoexec,
  renderBoot,
  renderBootstrap,
} from '#fleet/boot/rules/boot-script.ts'
import { parseHost } from '#kit/net/rules/host-header.ts'
import { anyDecision, anyText } from '#test/support/boot/decisions.ts'
import { MAC, macOf, setOf } from '#test/support/server/machine-fixture.ts'

const test = suite('boot scripts')

const BASE = 'http://10.0.0.1:8080'
const HEADER: BootHeader = { mac: MAC, mode: 'flasher-flash-once', rule: 'flash', reason: 'Why.' }
const TO_DISK: ToDisk = { kind: 'to-disk', drive: '0x81' }
const LIVE: BootDecision = {
  kind: 'to-live',
  base: BASE,
  sets: { x86_64: setOf('x86_64'), arm64: null },
  console: 'ttyS1',
  token: null,
  otherwise: TO_DISK,
}
const linesOf = (script: string) => script.trimEnd().split('\n')
const endOf = (script: string) => linesOf(script).slice(linesOf(script).indexOf(':end') + 1)
const shape = (script: string) => linesOf(script).map((line) => line.split(' ')[0])
/** Splits a script into words as iPXE does; comments and what is echoed are for people. */
const wordsOf = (script: string) =>
  linesOf(script)
    .filter((line) => !line.startsWith('# ') && !line.startsWith('echo '))
    .flatMap((line) => line.split(' '))

test('the disk: exit on UEFI, sanboot and then exit on a BIOS', () => {
  const lines = linesOf(renderBoot(TO_DISK, { ...HEADER, mode: 'ipxe-exit', rule: 'ipxe-exit' }))
  assert.equal(lines, [
    '#!ipxe',
    '# flasher: 52:54:00:12:34:56, mode ipxe-exit',
    '# ipxe-exit: Why.',
    'echo flasher: 52:54:00:12:34:56 boots its own disk (ipxe-exit)',
    'iseq ${platform} efi && exit ||',
    'sanboot --no-describe --drive 0x81 || exit',
  ])
  assert.equal(linesOf(IPXE_EXIT).slice(-2), [
    'iseq ${platform} efi && exit ||',
    'sanboot --no-describe --drive 0x80 || exit',
  ])
})

test('a comment keeps its semicolon, an echo has none: there it would begin a command', () => {
  const said = 'half written; reboot'
  const waits = { kind: 'to-wait', base: BASE, seconds: 20, saying: said } as const
  const lines = linesOf(renderBoot(waits, { ...HEADER, rule: 'a;b', reason: said }))
  assert.ok(lines.includes('# a;b: half written; reboot'), lines.join('\n'))
  assert.ok(lines.some((line) => /^echo .* waits: half written\? reboot$/.test(line)))
})

test('the live system: kernel, arguments and initrd of the active set', () => {
  const lines = linesOf(renderBoot(LIVE, HEADER))
  const boot = `${BASE}/boot/flasher-netboot-pc-x86_64-v1.2.3`
  const args = [
    'initrd=initrd console=tty0 console=ttyS1,115200 earlyprintk=ttyS1,115200 plymouth.enable=0',
    'modprobe.blacklist=nouveau,rndis_host nouveau.modeset=0 systemd.gpt_auto=0',
    `flasher.server=${BASE} flasher.mac=${MAC}`,
    `flasher.squashfs=${boot}.squashfs flasher.sha256=${'d'.repeat(64)}`,
  ].join(' ')
  assert.is(
    lines.find((line) => !/^#|^echo /.test(line)),
    'imgfree',
  )
  assert.ok(lines.includes(`kernel ${boot}.vmlinuz?mac=${MAC} ${args} || goto again`))
  assert.ok(lines.includes(`initrd --name initrd ${boot}.initrd?mac=${MAC} || goto again`))
  assert.is(lines.at(-1), 'sanboot --no-describe --drive 0x81 || exit')
  assert.not.ok(lines.some((line) => line.includes('arm64')))
})

test('both architectures: a branch, and each its console', () => {
  const both: LiveSets = { x86_64: setOf('x86_64'), arm64: setOf('arm64') }
  const script = renderBoot({ ...LIVE, sets: both }, HEADER)
  assert.match(script, /^iseq \$\{buildarch\} arm64 && goto arm64 \|\|$/m)
  assert.match(script, /kernel \S+arm64\S+ .* console=tty0 console=ttyAMA0 .*/)
  const alone = renderBoot({ ...LIVE, sets: { x86_64: null, arm64: both.arm64 } }, HEADER)
  assert.not.match(alone, /goto arm64|x86_64/)
})

test('Secure Boot: UEFI of a PC is shown the shim after the kernel, and boots on without one', () => {
  const both: LiveSets = { x86_64: setOf('x86_64'), arm64: setOf('arm64') }
  const lines = linesOf(renderBoot({ ...LIVE, sets: both }, HEADER))
  const shim = `iseq \${platform} efi && shim ${BASE}/boot/shimx64.efi ||`
  assert.equal(
    lines.flatMap((line, at) =>
      line.includes('shim ') ? [[lines[at - 1]?.split(' ')[0], line]] : [],
    ),
    [['kernel', shim]],
  )
  const arm64 = renderBoot({ ...LIVE, sets: { ...both, x86_64: null } }, HEADER)
  assert.not.match(arm64, 'shim')
})

const OTHERS = ['http://10.0.0.2:8080', 'https://three.example/flash']

test('several servers: every wait has an end, the others are asked for their script, and named to the live system', () => {
  const script = renderBoot({ ...LIVE, others: OTHERS }, HEADER)
  const lines = linesOf(script)
  assert.match(
    script,
    /^kernel --timeout 3000 http:\/\/10\.0\.0\.1:8080\/boot\/\S+ .* \|\| goto again$/m,
  )
  assert.match(script, /^initrd --timeout 3000 --name initrd \S+ \|\| goto again$/m)
  assert.match(script, ` flasher.server=${BASE} flasher.servers=${OTHERS.join(',')} flasher.mac=`)
  const hop = lines.slice(
    lines.indexOf(':again'),
    lines.indexOf('iseq ${pause} 32 && goto otherwise ||'),
  )
  assert.equal(hop, [
    ':again',
    'imgfree',
    // A script that was asked for by another server's comes back after one attempt.
    'isset ${hop} && exit 1 ||',
    'set hop 1',
    'chain --timeout 3000 --autofree http://10.0.0.2:8080/pxe/52-54-00-12-34-56 && exit ||',
    'chain --timeout 3000 --autofree https://three.example/flash/pxe/52-54-00-12-34-56 && exit ||',
    'clear hop ||',
  ])
  assert.ok(lines.includes('isset ${hop} || set pause:int32 1'))
})

const asks = (waitMs: number) => (server: string) =>
  `chain --timeout ${waitMs} --replace --autofree ${server}/pxe/52-54-00-12-34-56`

test('several servers: who waits asks each of them, who comes by autoexec.ipxe as well', () => {
  const wait = {
    kind: 'to-wait',
    base: BASE,
    seconds: 20,
    saying: 'in line',
    others: OTHERS,
  } as const
  assert.is(
    linesOf(renderBoot(wait, HEADER)).at(-1),
    `${[3000, 15_000].flatMap((ms) => [BASE, ...OTHERS].map(asks(ms))).join(' || ')} || goto wait`,
  )
  const about = '?buildarch=${buildarch}&platform=${platform}&hostname=${hostname:uristring}'
  const script = renderAutoexec(BASE, OTHERS)
  assert.equal(
    linesOf(script).filter((line) => line.startsWith('chain ')),
    // A server that holds the request for 12 s has something to say before the machine leaves.
    [3000, 15_000].flatMap((waitMs) =>
      [BASE, ...OTHERS].map(
        (server) => `chain --timeout ${waitMs} ${server}/pxe/\${mac:hexhyp}${about} && goto end ||`,
      ),
    ),
  )
  assert.ok(linesOf(script).includes('iseq ${pause} 32 && goto held ||'))
  assert.equal(endOf(script), ['iseq ${platform} efi && exit 1 ||', 'exit'])
})

test('a site with one server: not a word more than before', () => {
  for (const others of [undefined, []]) {
    const script = renderBoot({ ...LIVE, ...(others === undefined ? {} : { others }) }, HEADER)
    assert.not.match(script, /timeout|hop|flasher\.servers/)
    assert.is(renderAutoexec(BASE, others), renderAutoexec(BASE))
  }
})

test('a squashfs without a digest is named without one', () => {
  const sets = { x86_64: setOf('x86_64', { squashfsSha256: null }), arm64: null }
  assert.not.match(renderBoot({ ...LIVE, sets }, HEADER), /sha256/)
})

test('a machine that waits asks again, and has no way to its disk', () => {
  const wait = { kind: 'to-wait', base: BASE, seconds: 20, saying: 'place 3 of 9' } as const
  const script = renderBoot({ ...LIVE, otherwise: wait }, HEADER)
  assert.match(script, `chain --replace --autofree ${BASE}/pxe/52-54-00-12-34-56 || goto wait`)
  assert.match(script, 'waits: place 3 of 9')
  for (const text of [script, renderBoot(wait, HEADER)]) assert.not.match(text, /sanboot|exit/)
})

test('the bootstrap is one chain command in the words of the specification', () => {
  const chains = linesOf(renderBootstrap('http://flasher:8080', null)).filter((line) =>
    line.startsWith('chain '),
  )
  assert.equal(chains, ['chain http://flasher:8080/pxe/${net0/mac:hexhyp} && goto end ||'])
  assert.match(
    renderBootstrap(BASE, MAC),
    `chain ${BASE}/pxe/52-54-00-12-34-56?buildarch=\${buildarch}&platform=\${platform}&hostname=\${hostname:uristring} && goto end ||`,
  )
  assert.match(
    renderAutoexec(BASE),
    `chain ${BASE}/pxe-bootstrap.ipxe?mac=\${mac:hexhyp} && goto end`,
  )
})

test('scripts that firmware started leave with an error on UEFI; one that ours started without', () => {
  const leave = ['iseq ${platform} efi && exit 1 ||', 'exit']
  assert.equal(endOf(renderBootstrap(BASE, null)), leave)
  assert.equal(endOf(renderAutoexec(BASE)), leave)
  assert.equal(endOf(renderBootstrap(BASE, MAC)), ['exit'])
})

/** Commands and operators that our scripts consist of; every other word must be a value. */
const COMMANDS =
  /^(#!ipxe|imgfree|set|pause:int32|\d+|:\w+|iseq|goto|shim|\w+|inc|sleep|kernel|initrd|--name|boot|chain|--replace|--autofree|--timeout|sanboot|--no-describe|--drive|exit|&&|\|\||\$\{(platform|buildarch|pause|hop)\}|https?:\/\/[\w.~:/?=%@+[\]-]+|[\w.]+=[\w.~:/?=%@,+[\]-]+)$/

test('whatever is in it, a script holds our commands only, in ASCII, LF and under 4 KB', () => {
  fc.assert(
    fc.property(anyDecision, anyText, anyText, anyText, (decision, mode, rule, reason) => {
      const script = renderBoot(decision, { mac: MAC, mode, rule, reason })
      assert.match(script, /^#!ipxe\n[\n -~]*\n$/)
      assert.ok(script.length < (script.includes('hop') ? 7168 : 4096), `${script.length} bytes`)
      for (const word of wordsOf(script)) assert.match(word, COMMANDS)
      for (const line of linesOf(script)) {
        if (/^(# |echo )/.test(line)) {
          const said = line.slice(2).replace('${pause}', '')
          assert.not.match(
            said,
            line.startsWith('# ') ? /[\\$`|&"#{}]| -/ : /[\\$`;|&"#{}]| -/,
            line,
          )
        }
      }
      const frame = renderBoot(decision, HEADER)
      assert.equal(shape(script), shape(frame), 'the texts change no command')
    }),
    { numRuns: 5000 },
  )
})

/** The setting takes no more, and none that are longer. */
const LONGEST_OTHERS = [...'abcd'].map((name) => `http://${name.repeat(60)}.example:8080`)

test('the longest names and hosts still make a script under 4 KB', () => {
  const longest = setOf('x86_64', {
    vmlinuz: 'v'.repeat(72),
    initrd: 'i'.repeat(72),
    squashfs: 's'.repeat(72),
  })
  const host = parseHost(`${'h'.repeat(60)}.${'h'.repeat(60)}.${'h'.repeat(12)}:65535`)
  const base = `http://${host.ok ? host.value : ''}`
  assert.is(base.length, 'http://'.length + 140)
  const decision: BootDecision = {
    ...LIVE,
    token: 't'.repeat(70),
    base,
    sets: { x86_64: longest, arm64: longest },
    otherwise: {
      kind: 'to-wait',
      base,

      seconds: 20,
      saying: 's'.repeat(500),
    },
  }
  assert.ok(isBootable(longest))
  const long = 'x'.repeat(500)
  const on = { mac: MAC, mode: long, rule: long, reason: long }
  const script = renderBoot(decision, on)
  assert.ok(script.length < 4096, `${script.length} bytes`)
  const others = LONGEST_OTHERS
  const otherwise = { kind: 'to-wait', base, seconds: 20, saying: long, others } as const
  const several = renderBoot({ ...decision, others, otherwise }, on)
  assert.ok(several.length < 7168, `${several.length} bytes`)
})

test('a base that was not checked is a fault, not a script', () => {
  for (const base of ['http://a b', 'http://a/${x}', 'http://a\nreboot', 'http://a#b', '']) {
    const decision: BootDecision = { ...LIVE, base: `${base}\u0000` }
    assert.throws(() => renderBoot(decision, HEADER), /cannot (stand|be)/)
    assert.throws(() => renderBootstrap(`${base} `, null), /cannot stand/)
  }
})

test('names with values, and flags', () => {
  assert.is(
    renderKernelArgs([
      ['flasher.server', 'http://[::1]:8080'],
      ['console', 'ttyS0,115200'],
      ['gpt', null],
    ]),
    'flasher.server=http://[::1]:8080 console=ttyS0,115200 gpt',
  )
})

test('what could be read as anything else is a fault', () => {
  const values = ['', 'a b', 'a"b', "a'b", 'a\nb', '${x}', 'a;b', 'a|b', 'a#b', 'a\\b', 'ä', '\0']
  for (const value of values) assert.throws(() => renderKernelArgs([['a', value]]), /cannot be/)
  for (const name of ['', 'a b', 'a=b', '-a', '1']) {
    assert.throws(() => renderKernelArgs([[name, 'x']]), /cannot be/)
  }
  assert.throws(() => renderKernelArgs([['a', 'x'.repeat(2047)]]), /too long/)
})

test('the last of a name wins, quotes hold blanks together', () => {
  const line =
    'BOOT_IMAGE=/v  a=first b="b c" "d=e f" quiet a=second x=\ty= "flag with blanks" =z end="\n'
  assert.equal(
    [...parseKernelArgs(line)],
    [
      ['BOOT_IMAGE', '/v'],
      ['a', 'second'],
      ['b', 'b c'],
      ['d', 'e f'],
      ['quiet', ''],
      ['x', ''],
      ['y', ''],
      ['flag with blanks', ''],
      ['end', ''],
    ],
  )
})

test('what was rendered is parsed as it was', () => {
  const anyArg = fc.tuple(
    fc.stringMatching(/^[a-z][\w.-]{0,20}$/),
    fc.oneof(fc.constant(null), fc.stringMatching(/^[\w.~:/?=&%@,+[\]-]{1,30}$/)),
  )
  fc.assert(
    fc.property(fc.uniqueArray(anyArg, { selector: ([name]) => name, maxLength: 10 }), (args) => {
      const parsed = parseKernelArgs(renderKernelArgs(args))
      assert.equal(
        [...parsed],
        args.map(([name, value]) => [name, value ?? '']),
      )
    }),
  )
})

test('no line makes the parser fail', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (line) => {
      for (const [name] of parseKernelArgs(line)) assert.not.match(name, '=')
    }),
    { numRuns: 2000 },
  )
})

const sign = (text: string) => createHmac('sha256', 'key').update(text).digest('base64url')
const verify = (text: string, signature: string) => sign(text) === signature

const NOW = '2026-05-01T00:00:00.000Z'
const TOKEN: BootToken = {
  cycle: '2026-04-30T23:59:59.123Z',
  expiresAt: '2026-05-02T00:00:00.000Z',
}
const text = renderBootToken(MAC, TOKEN, sign)

test('says the cycle and when it ends, in words of a kernel command line', () => {
  assert.equal(parseBootToken(text, { mac: MAC, now: NOW, isOpen: false }, verify), {
    ok: true,
    value: TOKEN,
  })
  assert.ok(text.length < 70, text)
  assert.is(renderKernelArgs([['flasher.token', text]]), `flasher.token=${text}`)
})

test('holds for one machine, one server and until its time', () => {
  const parse = (mac: typeof MAC, now: string, given = text) =>
    parseBootToken(given, { mac, now, isOpen: false }, verify)
  assert.equal(parse(macOf('52:54:00:12:34:57'), NOW), { ok: false, refusal: 'foreign' })
  assert.equal(parse(MAC, TOKEN.expiresAt), { ok: false, refusal: 'expired' })
  assert.is(parse(MAC, '2026-05-01T23:59:59.999Z').ok, true)
  assert.equal(
    parseBootToken(text, { mac: MAC, now: NOW, isOpen: false }, () => false),
    {
      ok: false,
      refusal: 'foreign',
    },
  )
  for (const other of ['', 'x', `${text}=`, `${text} `, text.replaceAll('.', ','), 'a.b.c']) {
    assert.equal(parse(MAC, NOW, other), { ok: false, refusal: 'malformed' }, other)
  }
})

test('nobody lengthens it, or makes one of nothing', () => {
  const longText = fc.string({ minLength: 1, maxLength: 90, unit: 'binary' })
  fc.assert(
    fc.property(fc.nat(text.length - 1), fc.constantFrom(...'09az.-_A'), (at, character) => {
      const other = `${text.slice(0, at)}${character}${text.slice(at + 1)}`
      const parsed = parseBootToken(other, { mac: MAC, now: NOW, isOpen: false }, verify)
      assert.is(parsed.ok, other === text, other)
    }),
  )
  fc.assert(
    fc.property(longText, (other) => {
      assert.is(parseBootToken(other, { mac: MAC, now: NOW, isOpen: false }, verify).ok, false)
    }),
  )
})

test('is hidden where people read command lines', () => {
  const line = `console=tty0 flasher.token=${text} flasher.mac=${MAC}\nflasher.token="${text}"`
  assert.is(
    hideBootTokens(line),
    `console=tty0 flasher.token=hidden flasher.mac=${MAC}\nflasher.token=hidden`,
  )
})

test.run()
