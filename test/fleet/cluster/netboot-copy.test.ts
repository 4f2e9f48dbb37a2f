/** A server copies live systems from others that lie, break off, fall silent or refuse: real HTTP, real folders, a real full disk. */
import { once } from 'node:events'
import { utimes, writeFile } from 'node:fs/promises'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { suite } from 'uvu'
import * as assert from 'uvu/assert'
import { Fault } from '#kit/foundation/fault.ts'
import { createClientSeal } from '#kit/web/http/entrance.ts'
import { copyNetboot, createNetbootFiles } from '#fleet/cluster/netboot-share.ts'
import { createMemberFiles } from '#server/app/standing-by.ts'
import { mountDisk } from '#test/support/cluster/small-disk.ts'
import { makeBootFolder, partName, type TestBootFolder } from '#test/support/server/boot-folder.ts'

const test = suite('copies of live systems')
const KEY = { key: 'a key of at least thirty-two characters', cluster: 'c' }
const VERSION = '1.0.0'
const NEVER = new AbortController().signal

async function listen(handler: RequestListener) {
  const server = createServer(handler).listen(0, '127.0.0.1')
  await once(server, 'listening')
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  const { port } = server.address() as AddressInfo
  return {
    name: `server ${port}`,
    url: `http://127.0.0.1:${port}`,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

const sealOf = (keys = KEY) => {
  const seal = createClientSeal(keys)
  return () => seal
}

/** Another server of the fleet, which has this folder. */
async function openMember(folder: TestBootFolder, keys = KEY) {
  const bootFiles = await folder.open()
  const files = createNetbootFiles(bootFiles, NEVER)
  const netboot = await files.read([])
  if (netboot === null) throw new Error('it is not read')
  const own = createMemberFiles({ seal: sealOf(keys), authorities: undefined, find: files.find })
  const asked: string[] = []
  const server = await listen((request, response) => {
    asked.push(`${request.headers.range ?? 'all'}`)
    if (!own.divert(request, response, () => undefined)) response.writeHead(404).end()
  })
  return {
    ...server,
    netboot,
    asked,
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      await bootFiles[Symbol.asyncDispose]()
    },
  }
}

type Member = Awaited<ReturnType<typeof openMember>>
type Sources = Parameters<typeof copyNetboot>[1]['sources']

/** What is missing in a folder is copied to it; returns what went wrong. */
async function copyTo(folder: TestBootFolder, { netboot: wanted }: Member, sources: Sources) {
  await using bootFiles = await folder.open()
  const { open: openFile } = createMemberFiles({
    seal: sealOf(),
    authorities: undefined,
    find: async () => null,
  })
  const order = {
    wanted,
    missing: wanted.files,
    choices: { x86_64: VERSION },
    sources,
    keep: 1,
    signal: NEVER,
  }
  const copied = copyNetboot({ bootFiles, openFile }, order)
  const fault = await copied.then(
    () => null,
    (thrown: unknown) => thrown,
  )
  if (fault !== null && !(fault instanceof Fault)) throw fault
  return { fault, active: bootFiles.active().x86_64?.version ?? null }
}

test('all files are put in place together, and the set is the one that machines boot', async () => {
  await using from = await makeBootFolder()
  await from.putTrio(VERSION)
  await from.put('ipxe.efi', 'a loader')
  await from.put('ipxe-x86_64.efi', 'a loader')
  await using to = await makeBootFolder()
  await to.putTrio('2.0.0')
  await using member = await openMember(from)
  const { active } = await copyTo(to, member, [member])
  assert.is(active, VERSION, 'a newer one that lay there by hand is not in its place')
  await using bootFiles = await to.open()
  const files = createNetbootFiles(bootFiles, NEVER)
  assert.is(await files.read([]), null, 'they may still be written')
  await files.trust(member.netboot.files)
  const local = await files.read([])
  assert.equal(local?.files, member.netboot.files)
  assert.is(
    (await to.names()).some((name) => name.startsWith('.copying')),
    false,
  )
})

test('a liar, a cut, a refusal and another key end in a sentence each, and the next server is asked', async () => {
  await using from = await makeBootFolder()
  await from.putTrio(VERSION)
  await using member = await openMember(from)
  const answers: Readonly<Record<string, RequestListener>> = {
    'others than those of the digest': (_, response) => response.end('x'.repeat(12)),
    'more bytes than the file has': (_, response) => response.end('x'.repeat(5000)),
    'ended after 3 of': (_, response) => response.end('vml'),
    'no longer has the file': (_, response) => response.writeHead(404).end(),
    'it answered 503': (_, response) => response.writeHead(503).end(),
    'ECONNRESET|socket hang up|aborted': (request, response) => {
      response.writeHead(200, { 'content-length': 13 }).write('vm')
      setTimeout(() => request.socket.destroy(), 20)
    },
  }
  for (const [words, answer] of Object.entries(answers)) {
    await using bad = await listen(answer)
    await using alone = await makeBootFolder()
    await alone.putTrio('0.9.0')
    const { fault, active } = await copyTo(alone, member, [bad])
    assert.match(fault?.message ?? '', new RegExp(`${bad.name}: .*(${words})`))
    assert.is(active, '0.9.0', 'what was there stays')
    const after = await copyTo(alone, member, [bad, member])
    assert.is(after.active, VERSION, words)
  }
  await using stranger = await openMember(from, {
    ...KEY,
    key: 'another key of thirty-two characters',
  })
  await using alone = await makeBootFolder()
  const { fault } = await copyTo(alone, member, [stranger])
  assert.match(fault?.message ?? '', /does not know the key/)
})

test('a cut is gone on with where it was, and only who has the key gets anything', async () => {
  await using from = await makeBootFolder()
  await from.putTrio(VERSION)
  await using member = await openMember(from)
  await using to = await makeBootFolder()
  await using cut = await listen((_, response) => response.end('ker'))
  await copyTo(to, member, [cut])
  const { active } = await copyTo(to, member, [member])
  assert.is(active, VERSION)
  assert.ok(member.asked.includes('bytes=3-'), member.asked.join(' '))
  const [file] = member.netboot.files
  assert.is((await fetch(`${member.url}/cluster/netboot/${file?.sha256}`)).status, 403)
  assert.is((await fetch(`${member.url}/cluster/netboot/state.db`)).status, 404)
})

test('a full disk is a sentence, and what was there stays', async () => {
  await using from = await makeBootFolder()
  await from.putTrio(VERSION)
  await writeFile(join(from.dir, partName(VERSION, 'squashfs')), Buffer.alloc(24 * 2 ** 20))
  await from.put(partName(VERSION, 'sha256'), '')
  await utimes(join(from.dir, partName(VERSION, 'squashfs')), 1000, 1000)
  await using member = await openMember(from)
  await using to = await makeBootFolder()
  await using disk = await mountDisk(to.dir, 30)
  await to.putTrio('0.9.0')
  const before = await copyTo(to, member, [member])
  assert.match(before.fault?.message ?? '', /The live system needs .* of free space/)
  assert.is(before.active, '0.9.0')
  await disk.empty()
})

test.run()
