import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { planDhcp, renderDhcpRecipes, type DhcpTarget } from '#fleet/boot/rules/dhcp.ts'
import { DHCP_DOCUMENT, renderDhcpDocument } from '#test/support/dhcp-document.ts'

const test = suite('DHCP recipes')

function targetOf(address = '192.0.2.10', prefix = 24, base = 'http://192.0.2.10:8080') {
  const target = planDhcp(address, prefix, base)
  if (!target.ok) throw new Error(target.refusal)
  return target.value
}

const TARGETS: readonly DhcpTarget[] = [
  targetOf(),
  targetOf('10.200.30.40', 22, 'https://flasher.example/below'),
  targetOf('172.16.0.1', 31, 'http://[2001:db8::1]:80'),
]

function textOf(target: DhcpTarget, id: string): string {
  const recipe = renderDhcpRecipes(target).find((one) => one.id === id)
  if (recipe === undefined) throw new Error(`no ${id}`)
  return recipe.text
}

/** What a tool says of a configuration; null: it takes it. */
async function judge(text: string, argv: (path: string) => readonly [string, ...string[]]) {
  const dir = await mkdtemp(join(tmpdir(), 'flasher-dhcp-'))
  try {
    const path = join(dir, 'block.conf')
    await writeFile(path, text)
    const [tool, ...args] = argv(path)
    const run = spawnSync(tool, args, {
      encoding: 'utf8',
      env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' },
    })
    return run.status === 0 ? null : `${run.error?.message ?? ''}${run.stdout}${run.stderr}`
  } finally {
    await rm(dir, { recursive: true })
  }
}

test('dnsmasq takes its blocks', async () => {
  for (const target of TARGETS) {
    for (const id of ['dnsmasq', 'dnsmasq-proxy']) {
      const text = textOf(target, id)
      assert.is(await judge(text, (path) => ['dnsmasq', '--test', `--conf-file=${path}`]), null)
    }
  }
})

test('Kea takes its block', async () => {
  for (const target of TARGETS) {
    assert.is(await judge(textOf(target, 'kea'), (path) => ['kea-dhcp4', '-t', path]), null)
  }
})

// Not among the packages that the tests install: it would be a DHCP server that starts by itself.
const hasIsc = spawnSync('/usr/sbin/dhcpd', ['--version']).error === undefined

test('ISC dhcpd takes its block, where it is installed', async () => {
  if (!hasIsc) return
  for (const target of TARGETS) {
    const subnet = 'subnet 192.0.2.0 netmask 255.255.255.0 { }\n'
    const text = `${textOf(target, 'isc')}${subnet}`
    assert.is(await judge(text, (path) => ['dhcpd', '-t', '-cf', path, '-lf', '/dev/null']), null)
  }
})

test('iPXE itself gets the script, and never an iPXE', () => {
  for (const { id, text } of renderDhcpRecipes(targetOf())) {
    if (id === 'unifi') continue
    assert.ok(text.includes('http://192.0.2.10:8080/pxe-bootstrap.ipxe'), id)
    assert.ok(text.includes('http://192.0.2.10:8080/boot/ipxe.efi'), id)
    assert.ok(text.includes('undionly.kpxe'), id)
  }
  const bare = textOf(targetOf(), 'dnsmasq')
    .split('\n')
    .filter((line) => /undionly|ipxe(-arm64)?\.efi/.test(line) && !line.includes('tag:!ipxe'))
  assert.equal(bare, [])
})

test('the network of an address', () => {
  assert.is(targetOf('10.200.30.40', 22).network, '10.200.28.0')
  assert.is(targetOf('192.0.2.10', 32).network, '192.0.2.10')
  assert.is(targetOf('192.0.2.10', 1).network, '128.0.0.0')
})

test('nothing that could be read as more than an address comes in', () => {
  const rows = [
    ['192.0.2.10\nx', 24, 'http://h'],
    ['192.0.2.256', 24, 'http://h'],
    ['fe80::1', 64, 'http://h'],
    ['192.0.2.10', 0, 'http://h'],
    ['192.0.2.10', 24, 'http://h/"; x'],
    ['192.0.2.10', 24, 'http://h\nport=1'],
    ['192.0.2.10', 24, "http://h'"],
    ['192.0.2.10', 24, 'http://h,x'],
    ['192.0.2.10', 24, 'ftp://h'],
  ] as const
  for (const [address, prefix, base] of rows) {
    assert.is(planDhcp(address, prefix, base).ok, false, `${address} ${prefix} ${base}`)
  }
})

test('several servers: iPXE gets the script that names them all, by TFTP, from every DHCP server', () => {
  const recipes = renderDhcpRecipes({ ...targetOf(), hasOthers: true })
  for (const { id, text } of recipes) assert.not.match(text, 'pxe-bootstrap', id)
  const named = recipes.flatMap(({ id, text }) => (text.includes('autoexec.ipxe') ? [id] : []))
  assert.equal(named, ['dnsmasq', 'dnsmasq-proxy', 'kea', 'isc', 'opnsense', 'windows', 'mikrotik'])
})

test('docs/dhcp.md is fresh: node test/support/dhcp-document.ts makes it', () => {
  assert.is(readFileSync(DHCP_DOCUMENT, 'utf8'), renderDhcpDocument())
})

test.run()
