/** The blocks of http-api.md, power.md, first-boot.md, capture.md and cache.md, run in one shell against real servers and a machine. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { zstdCompressSync } from 'node:zlib'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { opened } from '#test/support/opened.ts'
import {
  blocksRunBy,
  openDocumentLab,
  type RanBlock,
} from '#test/support/documents/document-lab.ts'
import { readBlocks } from '#test/support/docs.ts'

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
const block = (words: string): string => {
  const found = api.filter((text) => text.includes(words))
  assert.is(found.length, 1, words)
  return found[0] ?? ''
}
/** The same assignment, without its removal at the end. */
const assign = () => block('ref=$(').replace(/^api -X DELETE.*$/m, '')

test('http-api.md: a session, tokens, and the machine that they read', async () => {
  await run(block('flasher=http'))
  const login = `curl -s -o /dev/null -c jar --data-urlencode password="$PASSWORD" $flasher/ui/login`
  await run(login)
  await run(`other=$(${renderMaking('other', '["read"]')} | jq -r .id)`)
  await run(
    `admin=$(${renderMaking('admin', '["admin", "read", "machines", "flash", "power"]')} | jq -r .token)`,
  )
  const sessions = await run(block('-c jar').replace('f5f3172dff40', '$other'))
  assert.is(sessions.requests.length, 4)
  assert.match(sessions.out, '"name":"ci"')
  await run(block('api() {'))
  await lab().discover()
  const read = await run(block('lshw.json'))
  assert.is(read.requests.length, 5)
  assert.match(read.out, '"S5GXNX0T123456"')
  assert.match(read.out, '"class":"system"')
})

test('http-api.md: it is assigned an image, removed, and assigned again', async () => {
  const { requests } = await run(block('ref=$('))
  assert.match(requests.join('\n'), /^200 GET \/images\n20[01] PUT .*\n204 DELETE /)
  assert.match(await valueOf('$ref'), /^[0-9a-f]{8,}/)
  await lab().discover()
  await run(assign())
})

test('http-api.md: a flash is waited for, twice', async () => {
  // The assignment has armed it; from here on only the block does.
  await lab().flash('3f2c1e9a-0000')
  const [flashed] = await Promise.all([run(block('--max-time 1860')), lab().flash()])
  assert.match(flashed.out, '"outcome":"flashed"')
  // The words of the block that follows the command are about the same machine.
  await run('mac=aa:bb:cc:dd:ee:01')
  await Promise.all([run(block('outcome=$(')), lab().flash('3f2c1e9a-0002')])
  assert.is(await valueOf('$outcome'), 'flashed')
})

test('http-api.md: many at once, runs and events', async () => {
  await run('ci=$token; token=$admin')
  const bulk = await run(block('"remove": ["rack1"]'))
  assert.is(bulk.requests.length, 3)
  const runs = await run(block('delivered.csv'))
  assert.is(runs.requests.length, 8)
  assert.match(runs.out, 'a log')
  const ids = (await run(`api "$flasher/events?limit=2" | jq -r '.events[].id'`)).out.trim()
  const [first = '', second = ''] = ids.split('\n')
  const events = block('/events/ack').replaceAll('19', first).replace('37', second)
  assert.is((await run(events)).requests.length, 5)
})

test('power.md and http-api.md: its BMC, which turns it off and on', async () => {
  const [own = '', shared = '', list = ''] = blocksRunBy(SELF, 'power.md')
  await run(own.replace('"user": "flasher"', '"user": "admin"'))
  await run(block('"action": "restart"'))
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
  const simulated = await run(block('try-00000001'))
  assert.is(simulated.requests.length, 5)
})

test.run()
