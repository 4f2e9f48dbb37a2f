/** The configuration of a machine's nginx, which a real nginx accepts, and what a server may put into it. */
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import {
  decideWindow,
  NeighboursSchema,
  parseOrigin,
  readShares,
  renameShares,
  renderPeerConfig,
} from '#flasher/link/rules/peer-config.ts'
import { NGINX } from '#test/support/http/nginx.ts'

const test = suite('configuration of a neighbour')
const runNginx = existsSync(NGINX) ? test : test.skip
const MIB = 1 << 20
const NEIGHBOURS = {
  key: '0123456789abcdef0123456789abcdef',
  before: ['10.0.0.5:8082', '[fd00::5]:8082'],
  hops: 2,
  allow: '10.0.0.0/24',
  ask_seconds: 5,
}

for (const before of [[], NEIGHBOURS.before]) {
  for (const allow of [null, '10.0.0.0/24', 'fd00::/64']) {
    runNginx(
      `nginx takes it with ${before.length} neighbours for ${allow ?? 'everybody'}`,
      async () => {
        await using folder = await mkdtempDisposable(join(tmpdir(), 'flasher-peer-'))
        const origin = parseOrigin('http://127.0.0.1:8081/b/dG9rZW4/a%20b.img.zst?sha256=00')
        if (origin === null) throw new Error('it is one')
        const path = join(folder.path, 'nginx.conf')
        const given = { ...NEIGHBOURS, before, allow, folder: folder.path, origin }
        await writeFile(path, renderPeerConfig({ ...given, windowBytes: 64 * MIB, hasIpv6: false }))
        execFileSync(NGINX, ['-t', '-q', '-e', join(folder.path, 'errors'), '-c', path])
      },
    )
  }
}

const HOSTILE: readonly object[] = [
  { key: '0123456789abcdef0123456789abcde/' },
  { key: '' },
  { before: ['10.0.0.5:8082; include /etc/shadow'] },
  { before: ['example.org:80'] },
  { before: ['999.0.0.5:8082'] },
  { before: ['10.0.5:8082'] },
  { before: ['10.0.0.5:99999'] },
  { before: ['[:::]:8082'] },
  { before: ['unix:/run/docker.sock'] },
  { before: ['[::1]:80 } }'] },
  { before: Array.from({ length: 9 }, () => '10.0.0.5:8082') },
  { allow: 'all; } location / { root /' },
  { allow: '10.0.0.0/24;' },
  { hops: -1 },
  { hops: 1e9 },
  { ask_seconds: 0 },
]
for (const wrong of HOSTILE) {
  test(`a server cannot say ${JSON.stringify(wrong).slice(0, 60)}`, () => {
    assert.is(NeighboursSchema.safeParse({ ...NEIGHBOURS, ...wrong }).success, false)
  })
}

test('what it says is taken', () => {
  assert.equal(NeighboursSchema.parse(NEIGHBOURS), NEIGHBOURS)
  assert.equal(NeighboursSchema.parse({ ...NEIGHBOURS, more: 1 }), NEIGHBOURS)
})

const ORIGINS: readonly (readonly [string, boolean])[] = [
  ['http://10.0.0.2:8081/b/dG9r/a.img.zst?sha256=00', true],
  ['http://cache.lab/b/dG9r/%7Ba%7D.img', true],
  ['https://10.0.0.2/a.img', false],
  ['oras://registry.lab/a:1', false],
  ['http://user:secret@10.0.0.2/a.img', false],
  ['http://10.0.0.2/$request_body', false],
  ["http://10.0.0.2/a'b", false],
  ['http://10.0.0.2/a;b', false],
]
for (const [address, isTaken] of ORIGINS) {
  test(`${address} is ${isTaken ? '' : 'not '}handed on`, () => {
    assert.is(parseOrigin(address) !== null, isTaken)
  })
}

test('half of the memory that is left is kept for others, and nothing where there is little', () => {
  assert.is(decideWindow({ available: 100 * MIB, free: 1000 * MIB }), null)
  assert.is(decideWindow({ available: 160 * MIB, free: 80 * MIB }), null)
  assert.is(decideWindow({ available: 160 * MIB, free: 1000 * MIB }), 32 * MIB)
  assert.is(decideWindow({ available: 4192 * MIB, free: 8000 * MIB }), 2048 * MIB)
  assert.is(decideWindow({ available: 4192 * MIB, free: 1000 * MIB }), 904 * MIB)
})

test('shares are those of whom nginx asked last; other lines count for nobody', () => {
  const log = [
    'unix:/dev/shm/a/cache.sock 1048576',
    '10.0.0.5:8082 100',
    '10.0.0.5:8082, 10.0.0.4:8082 0, 200',
    '10.0.0.5:8082 : 10.0.0.4:8082 0 : 1',
    '- -',
    '10.0.0.5:8082 -',
    'nonsense',
    '',
  ].join('\n')
  const shares = readShares(log, 'http://cache:8081')
  assert.is(shares.get('http://cache:8081'), 1048576)
  assert.is(shares.get('http://10.0.0.5:8082'), 100)
  assert.is(shares.get('http://10.0.0.4:8082'), 200)
})

test('the own nginx is never named; its trouble is that of the neighbours, and the order stays', () => {
  const own = 'http://127.0.0.1:8082'
  const shares = [
    { name: own, bytes: 50, trouble: 'it was slow' },
    { name: 'http://cache:8081', bytes: 7, trouble: null },
  ]
  const given = new Map([
    ['http://10.0.0.5:8082', 40],
    ['http://cache:8081', 10],
  ])
  assert.equal(renameShares(shares, own, given), [
    { name: 'http://cache:8081', bytes: 17, trouble: null },
    { name: 'http://10.0.0.5:8082', bytes: 40, trouble: 'it was slow' },
  ])
})

test.run()
