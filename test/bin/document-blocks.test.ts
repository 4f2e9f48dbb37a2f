/** The blocks of http-api.md, power.md, first-boot.md, capture.md and cache.md, run in one shell against real servers and a machine. */
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { parseToml } from '#kit/config/rules/toml.ts'
import { parseArguments } from '#kit/terminal/command/rules/arguments.ts'
import { completeArguments } from '#kit/terminal/command/rules/command.ts'
import { COMMAND_LINE } from '#server/current/commands/rules/commands.ts'
import { parseSettings } from '#server/current/settings/rules/settings.ts'
import { readBlocks } from '#test/support/docs.ts'
import {
  blocksRunBy,
  openDocumentLab,
  type RanBlock,
} from '#test/support/documents/document-lab.ts'
import { createDnsmasqHost, HOST_ADDRESS } from '#test/support/net/dnsmasq-host.ts'
import { opened } from '#test/support/opened.ts'
import { createServerHome } from '#test/support/server/flasher-web.ts'

const test = suite('blocks of the documentation')
const SELF = 'test/bin/document-blocks.test.ts'

const lab = opened(test, () => openDocumentLab())

/** Runs a block; each of its requests is answered with a status below 400. */
async function run(text: string): Promise<RanBlock> {
  const ran = await lab().run(text)
  const failed = ran.requests.filter((request) => Number(request.slice(0, 3)) >= 400)
  assert.equal(failed, [], `${text}\n${ran.out}\n${ran.err}`)
  assert.is(ran.code, 0, `${text}\n${ran.out}\n${ran.err}`)
  return ran
}

/** What an expression of the shell has. */
const valueOf = async (expression: string) => (await lab().run(`echo "${expression}"`)).out.trim()

/** The key belongs to no pair that anybody has. */
const PUBLIC_KEY = `AAAAC3NzaC1lZDI1NTE5AAAAI${'A'.repeat(43)}`
const JSON_TYPE = `-H 'Content-Type: application/json'`
/** Makes a token with the session of `jar`. */
const renderMaking = (name: string, scopes: string) =>
  `curl -s -b jar ${JSON_TYPE} -d '{"name": "${name}", "scopes": ${scopes}}' $flasher/tokens`
const api = blocksRunBy(SELF, 'http-api.md')
const blockOf = (words: string): string => {
  const found = api.filter((text) => text.includes(words))
  assert.is(found.length, 1, words)
  return found[0] ?? ''
}
/** The same assignment, without its removal at the end. */
const assign = () => blockOf('ref=$(').replace(/^api -X DELETE.*$/m, '')

test('http-api.md: a session, tokens, and the machine that they read', async () => {
  await run(blockOf('flasher=http'))
  const login = `curl -s -o /dev/null -c jar --data-urlencode password="$PASSWORD" $flasher/ui/login`
  await run(login)
  await run(`other=$(${renderMaking('other', '["read"]')} | jq -r .id)`)
  await run(
    `admin=$(${renderMaking('admin', '["admin", "read", "machines", "flash", "power"]')} | jq -r .token)`,
  )
  const sessions = await run(blockOf('-c jar').replace('f5f3172dff40', '$other'))
  assert.is(sessions.requests.length, 4)
  assert.match(sessions.out, '"name":"ci"')
  await run(blockOf('api() {'))
  await lab().discover()
  const read = await run(blockOf('lshw.json'))
  assert.is(read.requests.length, 5)
  assert.match(read.out, '"S5GXNX0T123456"')
  assert.match(read.out, '"class":"system"')
})

test('http-api.md: it is assigned an image, removed, and assigned again', async () => {
  const { requests } = await run(blockOf('ref=$('))
  assert.match(requests.join('\n'), /^200 GET \/images\n20[01] PUT .*\n204 DELETE /)
  assert.match(await valueOf('$ref'), /^[0-9a-f]{8,}/)
  await lab().discover()
  await run(assign())
})

test('http-api.md: a flash is waited for, twice', async () => {
  // The assignment has armed it; from here on only the block does.
  await lab().flash('3f2c1e9a-0000')
  const [flashed] = await Promise.all([run(blockOf('--max-time 1860')), lab().flash()])
  assert.match(flashed.out, '"outcome":"flashed"')
  // The words of the block that follows the command are about the same machine.
  await run('mac=aa:bb:cc:dd:ee:01')
  await Promise.all([run(blockOf('outcome=$(')), lab().flash('3f2c1e9a-0002')])
  assert.is(await valueOf('$outcome'), 'flashed')
})

test('http-api.md: many at once, runs and events', async () => {
  await run('ci=$token; token=$admin')
  const bulk = await run(blockOf('"remove": ["rack1"]'))
  assert.is(bulk.requests.length, 3)
  const runs = await run(blockOf('delivered.csv'))
  assert.is(runs.requests.length, 8)
  assert.match(runs.out, 'a log')
  const ids = (await run(`api "$flasher/events?limit=2" | jq -r '.events[].id'`)).out.trim()
  const [first = '', second = ''] = ids.split('\n')
  const events = blockOf('/events/ack').replaceAll('19', first).replace('37', second)
  assert.is((await run(events)).requests.length, 5)
})

test('power.md and http-api.md: its BMC, which turns it off and on', async () => {
  const [own = '', shared = '', list = ''] = blocksRunBy(SELF, 'power.md')
  await run(own.replace('"user": "flasher"', '"user": "admin"'))
  await run(blockOf('"action": "restart"'))
  await run(shared)
  await run(`api -X PUT $flasher/machines/aa:bb:cc:dd:ee:12 -d '{}'`)
  const [csv = ''] = readBlocks('power.md', 'csv')
  await writeFile(join(lab().home.dir, 'bmcs.csv'), csv)
  await run(list)
})

test('first-boot.md: a template is made, listed and removed', async () => {
  const [template = ''] = blocksRunBy(SELF, 'first-boot.md')
  const { requests } = await run(template.replace('AAAA…', PUBLIC_KEY))
  assert.is(requests.length, 3)
})

test('capture.md: a capture is ordered and cancelled, and many are', async () => {
  await run(
    `api -X PUT $flasher/machines/aa:bb:cc:dd:ee:01 -d '{"boot_mode": "ipxe-exit", "labels": ["lab"], "target_disk_serial": "S4EWNX0N123456"}'`,
  )
  const [one = '', many = ''] = blocksRunBy(SELF, 'capture.md')
  assert.is((await run(one)).requests.length, 2)
  assert.match((await run(many)).out, '"done":1')
})

test('cache.md: an image is uploaded in parts', async () => {
  const [upload = ''] = blocksRunBy(SELF, 'cache.md')
  const name = 'uploaded.img.zst'
  await writeFile(join(lab().home.dir, name), zstdCompressSync(Buffer.alloc(2 ** 21, 7)))
  const { out, requests } = await run(upload.replace('debian-13.img.zst', name))
  assert.is(requests.length, 3)
  assert.match(out, `"${name}"`)
})

test('http-api.md: a machine is simulated', async () => {
  const simulated = await run(blockOf('try-00000001'))
  assert.is(simulated.requests.length, 5)
})

const BOOT = `http://${HOST_ADDRESS}:8080`
/** Option 93 as firmware sends it, who asks, the vendor class that it wants back, and its file. */
const MACHINES = [
  [0, 'firmware', 'PXEClient', 'undionly.kpxe'],
  [7, 'firmware', 'PXEClient', 'shimx64.efi'],
  [9, 'firmware', 'PXEClient', 'shimx64.efi'],
  [11, 'firmware', 'PXEClient', 'shimaa64.efi'],
  [16, 'http', 'HTTPClient', `${BOOT}/boot/shimx64.efi`],
  [19, 'http', 'HTTPClient', `${BOOT}/boot/shimaa64.efi`],
  [0, 'ipxe', 'PXEClient', `${BOOT}/pxe-bootstrap.ipxe`],
  [7, 'ipxe', 'PXEClient', `${BOOT}/pxe-bootstrap.ipxe`],
] as const

/** Reads a block of the page, with the addresses of the test's network in place of the documented ones. */
function readBlock(title: string): string {
  const page = readFileSync('docs/dhcp.md', 'utf8')
  const [, block = ''] = page.split(`\n## ${title}\n`)[1]?.split('```') ?? []
  return block
    .trimStart()
    .replaceAll('192.0.2.10', HOST_ADDRESS)
    .replaceAll('192.0.2.', '192.168.98.')
}

const wants = (block: string) => ({
  async answered(more: string, vendorOf: (wanted: string) => string) {
    await using host = await createDnsmasqHost()
    await using _ = await host.serve(`${more}${block}`)
    for (const [arch, who, vendor, file] of MACHINES) {
      const offer = await host.ask(arch, who)
      const shown = { file: '', vendor: '', ...(typeof offer === 'object' ? offer : {}) }
      assert.equal([shown.file, shown.vendor], [file, vendorOf(vendor)], `${arch} ${who}`)
    }
  },
})

test('dnsmasq as a proxy beside another DHCP server', async () => {
  const block = readBlock('dnsmasq, beside another DHCP server')
  assert.match(block, 'proxy')
  await wants(block).answered('', (vendor) => vendor)
})

test('several servers: the line for iPXE, in the block of a proxy and in that of a server', async () => {
  const line = readBlock('Several servers')
  const range = 'port=0\ndhcp-range=192.168.98.60,192.168.98.99,255.255.255.0,1h\n'
  for (const [title, more] of [
    ['dnsmasq', range],
    ['dnsmasq, beside another DHCP server', ''],
  ] as const) {
    const block = readBlock(title).replace(/^dhcp-boot=tag:ipxe,.*\n/m, line)
    await using host = await createDnsmasqHost()
    await using _ = await host.serve(`${more}${block}`)
    for (const arch of [0, 7]) {
      const offer = await host.ask(arch, 'ipxe')
      const shown = { file: '', next: '', ...(typeof offer === 'object' ? offer : {}) }
      assert.equal([shown.file, shown.next], ['autoexec.ipxe', HOST_ADDRESS], title)
    }
  }
})

test('dnsmasq that gives out the addresses', async () => {
  const range = 'port=0\ndhcp-range=192.168.98.60,192.168.98.99,255.255.255.0,1h\n'
  const block = readBlock('dnsmasq')
  // PXE firmware takes any answer, HTTP Boot only its own.
  await wants(block).answered(range, (vendor) => (vendor === 'HTTPClient' ? vendor : ''))
})

const ANALYSE = '/usr/bin/systemd-analyze'

if (existsSync(ANALYSE)) {
  test('systemd finds nothing wrong with the unit', async () => {
    const [unit = ''] = readBlocks('server.md', 'ini')
    const dir = await mkdtemp(join(tmpdir(), 'flasher-unit-'))
    try {
      // The program and its user are not installed here.
      const here = unit
        .replace('/usr/local/bin/flasher-web', process.execPath)
        .replaceAll(/^(User|Group)=flasher$/gm, '$1=daemon')
      const path = join(dir, 'flasher-web.service')
      await writeFile(path, here)
      const { status, stderr } = spawnSync(ANALYSE, ['verify', path], { encoding: 'utf8' })
      assert.is(stderr, '')
      assert.is(status, 0)
      const security = spawnSync(ANALYSE, ['security', '--offline=yes', '--threshold=30', path], {
        encoding: 'utf8',
      })
      assert.is(security.status, 0, security.stdout)
    } finally {
      await rm(dir, { recursive: true, force: true })
    }
  })
}

test('every configuration that it shows is one', () => {
  const blocks = readBlocks('server.md', 'toml')
  assert.ok(blocks.length >= 3)
  for (const text of blocks) {
    const parsed = parseToml(text)
    assert.ok(parsed.ok, text)
    if (!parsed.ok) continue
    const layers = [{ path: 'docs', text, values: parsed.value }]
    assert.equal(parseSettings({ env: {}, saved: {}, layers }).problems, [], text)
  }
})

test('every command that it shows is one', () => {
  const lines = readBlocks('server.md', 'sh').flatMap((block) => block.split('\n'))
  const commands = lines.filter((line) => line.startsWith('flasher-web '))
  assert.ok(commands.length >= 6)
  for (const line of commands) {
    const [, ...argv] = line.replace(/\s*#.*$/, '').split(' ')
    assert.is(parseArguments(COMMAND_LINE, completeArguments(COMMAND_LINE, argv)).ok, true, line)
  }
})

test('the client that it shows is one', async () => {
  const [script = ''] = readBlocks('remote.md', 'sh')
  await using home = await createServerHome()
  await using server = await home.start()
  const here = script.replace('http://flasher.lan:8080', server.url)
  assert.is.not(here, script)
  // Alone: the server answers from another process.
  const child = spawn('sh', ['-ec', here], { stdio: ['ignore', 'pipe', 'inherit'] })
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    said += text
  })
  const [code] = await once(child, 'close')
  assert.is(code, 0)
  assert.match(said, /^\{.*"inventory".*\}\{.*\}$/s)
})

test.run()
