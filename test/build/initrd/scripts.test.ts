/** The initrd's scripts decide like the wizard, tell all, and leave one card only with an address. */
import { execFileSync } from 'node:child_process'
import { hash } from 'node:crypto'
import { mkdtempDisposableSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { BOOT_FACTS, IMAGES_PARTITION, KERNEL_ARGS, LIVE_PATHS } from '#appliance/contract.ts'
import { parseKernelArgs } from '#fleet/boot/rules/boot-decision.ts'
import { parseServerAddress } from '#kit/net/rules/host-header.ts'

const test = suite('scripts of the initrd, run')
/** A network of one's own needs root. */
const asRoot = process.getuid?.() === 0 ? test : test.skip
const FOLDER = join(import.meta.dirname, '../../../overlays/initrd')
const LEASE = join(FOLDER, 'etc/udhcpc.script')

/** What a shell says that has read these parts of ours before `script`. */
function say(parts: readonly string[], script: string, ...args: readonly string[]): string {
  const read = parts.map((part) => `. ${FOLDER}/lib/flasher/${part}.sh`)
  return execFileSync('sh', ['-c', [...read, script].join('\n'), 'sh', ...args], {
    encoding: 'utf8',
  })
}

/** The same with the cards `eth0` and `eth1` in a network of its own. */
function sayWithCards(parts: readonly string[], script: string): string {
  const cards = [
    'mount -t sysfs sys /sys',
    'ip link add eth0 address 02:00:00:00:00:0a type veth peer name eth1 address 02:00:00:00:00:0b',
    'for card in eth0 eth1; do ip link set "$card" up; done',
  ].join('\n')
  const read = parts.map((part) => `. ${FOLDER}/lib/flasher/${part}.sh`)
  const whole = ['set -e', cards, ...read, 'set +e', script].join('\n')
  return execFileSync('unshare', ['--net', '--mount', 'sh', '-c', whole], { encoding: 'utf8' })
}

const lease = (card: string, net: string) =>
  `interface=${card} ip=${net}.5 mask=24 router=${net}.1 dns=${net}.2 sh ${LEASE} bound`

test('a server is looked for where the wizard looks, in the same order', () => {
  const rows = [
    'lab',
    'lab/',
    'lab:80',
    'lab:3000',
    'lab/below',
    'lab:81/below/',
    '192.168.1.2',
    '[fe80::1]',
    '[fe80::1]:8080',
    'http://lab',
    'https://lab/below/',
  ]
  for (const given of rows) {
    const bases = parseServerAddress(given)
    const said = say(['machine'], 'bases_of "$1"', given).trim().split('\n')
    assert.equal(said, bases.ok ? bases.value : [], given)
  }
})

test('of an argument that is given twice the last counts, as for the wizard', () => {
  const rows = ['n.a=1 n.a=2', 'n.a=2', 'n.a=1 n.a=', 'n.a=', 'n.a', 'n.ab=1 xn.a=2', '']
  for (const line of rows) {
    const said = say(['machine'], 'command_line=$1; param n.a; echo "$value"', line)
    const value = parseKernelArgs(line).get('n.a') ?? ''
    assert.is(said.trim(), value, line)
  }
})

const ROOT = 'flasher-netboot-pc-x86_64-v1.2.3.squashfs'
const rootAt = (base: string) => `${base}/boot/${ROOT}`

/** Where the root is fetched from, in the order of two attempts; `silent` is a pattern of servers that do not answer. */
function findRoot(line: string, silent: string): readonly string[] {
  const script = [
    'command_line=$1 headers=/dev/null; say() { :; }; tame() { :; }',
    `wget() { shift 2; echo "$2 $3" >&3; case $3 in ${silent}) return 1 ;; esac; }`,
    `read_manifest() { name=${ROOT}; }`,
    'find_source; read_head 3>&1; read_head 3>&1; echo "$url $transfer_time"',
  ].join('\n')
  return say(['machine', 'network'], script, line).trim().split('\n')
}

test('a root that the first server does not send comes from the next, and stays there', () => {
  const [one, two] = ['http://one:8080', 'http://two:8080/below']
  const line = `flasher.server=${one} flasher.servers=${two},http://three flasher.squashfs=${rootAt(one)}`
  assert.equal(findRoot(line, '*//one*'), [
    `3 ${rootAt(one)}`,
    `3 ${rootAt(two)}`,
    `3 ${rootAt(two)}`,
    `${rootAt(two)} 10`,
  ])
  assert.equal(findRoot(`flasher.server=${one} flasher.servers=${two}`, 'none'), [
    `3 ${rootAt(one)}`,
    `3 ${rootAt(one)}`,
    `${rootAt(one)} 10`,
  ])
  // One server has more time.
  assert.equal(findRoot(`flasher.server=${one}`, 'none').at(-1), `${rootAt(one)} 20`)
})

/** A transfer as the initrd makes it; `wget` is what a shell has in its place. Says each digest, and at the end what `then` says. */
function transfer(wget: string, calls: number, then = 'ls $folder'): readonly string[] {
  using folder = mkdtempDisposableSync(join(tmpdir(), 'flasher-transfer-'))
  const script = [
    'say() { :; }; mib() { :; }; size_of() { stat -c %s "$1" 2>/dev/null || echo 0; }',
    'usleep() { sleep 0.01; }; sleep() { command sleep 0.02; }',
    `folder=${folder.path} image=$folder/image size=300000 url=any`,
    `wget() { ${wget}; }`,
    `for _ in $(seq ${calls}); do transfer; echo "$? $got"; done; ${then}`,
  ].join('\n')
  return say(['network'], script).trim().split('\n')
}

/** The order of the servers after a transfer that brought nothing. */
const urlsAfter = (others: string) =>
  transfer(`urls="any two three" others=${others}`, 1, 'echo $urls').at(-1)

test('after a transfer that brought nothing the next server is asked, where there is one', () => {
  assert.is(urlsAfter('two'), 'two three any')
  assert.is(urlsAfter(''), 'any two three')
})

const sha256Of = (bytes: Buffer) => hash('sha256', bytes)
const letters = (letter: string, count: number) => Buffer.alloc(count, letter)

test('a root that comes in pieces is hashed whole', () => {
  const pieces = [1, 2, 3].map(() => 'printf %100000s "" | tr " " a >>"$image"; sleep')
  assert.equal(transfer(pieces.join('; '), 1), [`0 ${sha256Of(letters('a', 300_000))}`, 'image'])
})

test('a transfer that broke off and goes on is hashed whole, also by a server that begins anew', () => {
  const goesOn = 'printf %150000s "" | tr " " a >>"$image"; sleep'
  const whole = sha256Of(letters('a', 300_000))
  const [first, ...rest] = transfer(goesOn, 2)
  assert.match(first ?? '', /^1 /)
  assert.equal(rest, [`0 ${whole}`, 'image'])
  // The first half was right, and then it is not: what lies there counts, not what was hashed before.
  const anew = [
    'if [ -s "$image" ]; then printf %300000s "" | tr " " b >"$image"',
    'else printf %150000s "" | tr " " a >>"$image"; fi; sleep',
  ].join('; ')
  assert.equal(transfer(anew, 2).slice(1), [`0 ${sha256Of(letters('b', 300_000))}`, 'image'])
})

test('a long message is sent in parts, without unprintable characters', () => {
  const told = 'tell_line() { echo "$2"; }; tell 5 "$1"'
  const disks = Array.from({ length: 300 }, (_, at) => `sd${at}`).join(', ')
  const parts = say(['tell'], told, disks).trimEnd().split('\n')
  assert.is(parts.join(''), disks)
  assert.ok(parts.every(({ length }) => length <= 900))
  assert.is(say(['tell'], told, 'a\u001b[2Jb\nc'), 'a?[2Jb?c\n')
})

asRoot('the card that the machine booted by comes first, others when it brings no address', () => {
  const list = 'echo $(list_candidates)'
  const script = [
    list,
    `mac=02:00:00:00:00:0b; ${list}`,
    `missed=3; ${list}`,
    `mac=02:00:00:00:00:0c; ${list}`,
    `missed=2; ${list}`,
  ].join('\n')
  assert.equal(sayWithCards(['network'], script).split('\n'), [
    'eth0 eth1',
    'eth1',
    'eth1 eth0',
    'eth0 eth1',
    '',
    '',
  ])
})

asRoot('the address of a card goes with all its ways when another card gets one', () => {
  const script = [
    'file=$(readlink -f /etc/resolv.conf)',
    'mount -t tmpfs none /mnt && touch /mnt/it && mount --bind /mnt/it "$file" || exit',
    lease('eth0', '10.9.1'),
    lease('eth1', '10.9.2'),
    'ip -4 -o addr show scope global; ip route; cat /etc/resolv.conf',
  ].join('\n')
  const said = sayWithCards([], script)
  assert.match(said, 'inet 10.9.2.5/24')
  assert.match(said, 'default via 10.9.2.1 dev eth1')
  assert.match(said, 'nameserver 10.9.2.2')
  assert.not.match(said, '10.9.1.')
})

const files = readdirSync(FOLDER, { recursive: true, encoding: 'utf8' })
  .map((name) => join(FOLDER, name))
  .filter((path) => statSync(path).isFile())
const text = files.map((path) => readFileSync(path, 'utf8')).join('\n')

test('arguments of the kernel command line', () => {
  const { server, mac, token, squashfs, sha256, media, verify } = KERNEL_ARGS
  for (const name of [server, mac, token, squashfs, sha256, media, verify]) {
    assert.match(text, new RegExp(String.raw`param ${name.replace('.', String.raw`\.`)}\b`), name)
  }
})

test('facts for later programs', () => {
  const noted = [...text.matchAll(/^\s*note (\w+) /gm)].map(([, key]) => key)
  assert.equal(new Set(noted), new Set(Object.values(BOOT_FACTS)))
})

test('paths and partitions', () => {
  assert.match(text, `facts=${LIVE_PATHS.bootFacts}\n`)
  assert.match(text, `PARTNAME=${IMAGES_PARTITION.name} `)
})

test('each failure comes with a hint', () => {
  const calls = [...text.matchAll(/^.*\bfail (?!\(\)).*$/gm)].map(([line]) => line)
  assert.ok(calls.length > 8)
  for (const call of calls) {
    const rest = text.slice(text.indexOf(call) + call.length)
    const whole = call.endsWith('\\') ? call + (rest.split('\n')[1] ?? '') : call
    assert.is((whole.match(/'[^']*'|"(?:[^"\\]|\\.)*"/g) ?? []).length >= 2, true, whole)
  }
})

test.run()
